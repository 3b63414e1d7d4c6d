//! The choice of scenarios that the command line makes.

use anyhow::{Result, bail, ensure};

use crate::scenario::Scenario;

/// The patterns and flags of the command line that choose scenarios.
pub struct Choice<'a> {
    patterns: &'a [String],
    core: bool,
}

impl<'a> Choice<'a> {
    /// Chooses the scenarios whose name fits one of the patterns, or all if there are no patterns; with `core`, only
    /// those of them that every change has to pass.
    pub fn new(patterns: &'a [String], core: bool) -> Choice<'a> {
        Choice { patterns, core }
    }

    /// Keeps the chosen ones of these scenarios.
    ///
    /// # Errors
    /// A pattern fits no scenario: a misspelt name must not count as a good run.
    pub fn of(&self, mut scenarios: Vec<Scenario>) -> Result<Vec<Scenario>> {
        for pattern in self.patterns {
            if !scenarios.iter().any(|one| fits(pattern, &one.name)) {
                bail!("no scenario is called '{pattern}': `--list` lists them");
            }
        }
        scenarios.retain(|one| {
            let is_named = self.patterns.iter().any(|pattern| fits(pattern, &one.name));
            (self.patterns.is_empty() || is_named) && (one.core || !self.core)
        });
        ensure!(!scenarios.is_empty(), "no scenario is left to run");
        Ok(scenarios)
    }
}

/// Whether a name fits a pattern, in which `*` stands for any characters.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(name) = name.strip_prefix(start) else {
        return false;
    };
    (name.char_indices().map(|(at, _)| at).chain([name.len()])).any(|at| fits(rest, &name[at..]))
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn a_star_stands_for_any_characters() {
        let cases = [
            ("drain", "drain", true),
            ("drain", "drain-both", false),
            ("drain*", "drain", true),
            ("drain*", "drain-both", true),
            ("*both", "drain-both", true),
            ("*-*-*", "drain-both", false),
            ("d*-*h", "drain-both", true),
            ("*", "", true),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }
}
