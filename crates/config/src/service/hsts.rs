//! `hsts`: the value of the header field Strict-Transport-Security (RFC 6797, section 6.1).

use crate::reading::problem::Problem;
use crate::values::name::name;

/// A value of Strict-Transport-Security: `max-age` in seconds, and perhaps `includeSubDomains` and `preload`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hsts(String);

name!(Hsts, is_value);

fn is_value(text: &str) -> Result<(), Problem> {
    let mut ages = 0;
    let mut is_directive = |directive: &str| {
        let directive = directive.trim_matches(' ').to_ascii_lowercase();
        let Some(age) = directive.strip_prefix("max-age=") else {
            return matches!(&*directive, "includesubdomains" | "preload");
        };
        ages += 1;
        age.parse::<u32>().is_ok() && age.bytes().all(|byte| byte.is_ascii_digit())
    };
    if text.split(';').all(&mut is_directive) && ages == 1 {
        return Ok(());
    }
    Err(Problem::new(
        format!(
            "hsts = \"{}\" is no value of Strict-Transport-Security",
            text.escape_debug()
        ),
        "write seconds, like \"max-age=31536000\" for a year, and \"; includeSubDomains\" or \"; preload\" behind it if you \
         want that",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_browsers_understand_is_a_value() {
        for text in [
            "max-age=0",
            "max-age=31536000",
            "Max-Age=63072000; includeSubDomains; preload",
            "includeSubDomains;max-age=1",
        ] {
            assert!(text.parse::<Hsts>().is_ok(), "{text}");
        }
        for text in [
            "",
            "1y",
            "max-age",
            "max-age=",
            "max-age=-1",
            "max-age=+1",
            "max-age=1y",
            "max-age=99999999999",
            "includeSubDomains",
            "max-age=1; max-age=2",
            "max-age=1;",
            "max-age=1; other",
            "max-age=1\r\nX: y",
            "max-age=1;\tpreload",
        ] {
            assert!(text.parse::<Hsts>().is_err(), "{text}");
        }
    }
}
