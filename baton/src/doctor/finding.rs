//! What one check says.

use std::fmt;

use serde::Serialize;

/// What is found, and what to do about it. Anything but good has a remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    name: &'static str,
    verdict: Verdict,
    found: String,
    remedy: Option<String>,
}

/// How it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As baton wants it.
    Good,
    /// baton works, but could work better, or may not do what was expected.
    Advice,
    /// baton cannot work, or not for every client.
    Bad,
}

impl Finding {
    /// As baton wants it.
    pub fn good(name: &'static str, found: impl Into<String>) -> Self {
        Self {
            name,
            verdict: Verdict::Good,
            found: found.into(),
            remedy: None,
        }
    }

    /// Works, but: `remedy` says why that matters and what to change.
    pub fn advice(name: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Advice,
            remedy: Some(remedy.into()),
            ..Self::good(name, found)
        }
    }

    /// Does not work: `remedy` says why and what to change.
    pub fn bad(name: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Bad,
            remedy: Some(remedy.into()),
            ..Self::good(name, found)
        }
    }

    /// The same, found at one of several interfaces.
    pub fn at(mut self, interface: &str) -> Self {
        self.found = format!("{interface}: {}", self.found);
        self
    }

    /// What was checked: a word that scripts can rely on.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// How it is.
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// What is there, as it is.
    pub fn found(&self) -> &str {
        &self.found
    }

    /// Why it matters and what to do; `None` exactly if it is good.
    pub fn remedy(&self) -> Option<&str> {
        self.remedy.as_deref()
    }
}

/// On one line: what, how it is, what to do.
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
