//! The result of one check.

use std::fmt;

use serde::Serialize;

/// What a check has found, and what to do about it. A finding that is not good always has a remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    name: &'static str,
    verdict: Verdict,
    found: String,
    remedy: Option<String>,
}

/// The judgement of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The machine is as baton wants it.
    Good,
    /// baton works, but could work better, or may behave differently than expected.
    Advice,
    /// baton cannot work, or not for every client.
    Bad,
}

impl Finding {
    /// A finding that the machine is as baton wants it.
    pub fn good(name: &'static str, found: impl Into<String>) -> Self {
        Self {
            name,
            verdict: Verdict::Good,
            found: found.into(),
            remedy: None,
        }
    }

    /// A finding that baton works, but could work better. `remedy` says why that matters and what to change.
    pub fn advice(name: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Advice,
            remedy: Some(remedy.into()),
            ..Self::good(name, found)
        }
    }

    /// A finding that baton cannot work. `remedy` says why and what to change.
    pub fn bad(name: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Bad,
            remedy: Some(remedy.into()),
            ..Self::good(name, found)
        }
    }

    /// Adds the name of the interface at which this was found, for checks of several interfaces.
    pub fn at(mut self, interface: &str) -> Self {
        self.found = format!("{interface}: {}", self.found);
        self
    }

    /// The name of the check: a word on which scripts can rely.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The judgement of the check.
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// The state that the check has found.
    pub fn found(&self) -> &str {
        &self.found
    }

    /// Why the finding matters and what to do; `None` exactly if the finding is good.
    pub fn remedy(&self) -> Option<&str> {
        self.remedy.as_deref()
    }
}

/// Shows the finding on one line: the name, what was found, what to do.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.found.replace('\n', " "))?;
        match &self.remedy {
            Some(remedy) => write!(f, ". {remedy}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_a_contract() {
        let json = |finding| serde_json::to_value(finding).expect("a finding is plain data");
        assert_eq!(
            json(Finding::good("kernel", "6.18")),
            serde_json::json!({ "name": "kernel", "verdict": "good", "found": "6.18", "remedy": null })
        );
        assert_eq!(
            json(Finding::bad("kernel", "6.1", "upgrade")),
            serde_json::json!({ "name": "kernel", "verdict": "bad", "found": "6.1", "remedy": "upgrade" })
        );
        assert_eq!(json(Finding::advice("a", "b", "c"))["verdict"], "advice");
    }
}
