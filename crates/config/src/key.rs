//! The key that all nodes share, as the configuration gives it.

use baton_wire::{ClusterKey, Error};

use crate::problem::Problem;

/// From 64 hex digits; white space around them is ignored. No error repeats what was given.
pub(crate) fn parse_key(text: &str) -> Result<ClusterKey, Problem> {
    text.parse().map_err(|error| {
        let what = match error {
            Error::KeyLength { found: 0 } => "the key is empty".into(),
            Error::KeyLength { found } => {
                format!("the key has {found} characters instead of 64 hex digits")
            }
            Error::KeyDigit { position } => {
                format!("the key's character {position} is not a hex digit")
            }
            Error::KeyZero => "the key is all zero".into(),
            other => other.to_string(),
        };
        Problem::new(what, "make one with: openssl rand -hex 32")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_and_never_repeats() {
        let short = "ab".repeat(31) + "a";
        let long = "ab".repeat(33);
        let odd = "ag".repeat(32);
        let wide = "ä".repeat(32);
        let zero = "0".repeat(64);
        for bad in ["", "  \n", &short, &long, &odd, &wide, &zero] {
            let problem = parse_key(bad).unwrap_err();
            assert!(bad.trim().is_empty() || !problem.to_string().contains(bad));
        }
    }
}
