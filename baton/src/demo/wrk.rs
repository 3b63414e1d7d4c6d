//! Sends many requests at once, by wrk on the client.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use baton_lab::Running;

/// The results of a run, as wrk reports them.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// The arguments that wrk was given: threads, connections, seconds and the page.
    pub words: String,
    /// The number of complete answers.
    pub requests: u64,
    /// The number of answers a second.
    pub rate: f64,
    /// The latency within which 50 % of the answers came, as wrk writes it.
    pub median: String,
    /// The latency within which 99 % of the answers came, as wrk writes it.
    pub slowest_hundredth: String,
    /// The errors, in wrk's words; `None` if there were none.
    pub errors: Option<String>,
}

const CONNECTIONS: u32 = 30;
const SECONDS: u32 = 3;

/// Runs wrk for a short time on one page.
pub fn run(lab: &Running, client: &str, at: SocketAddr, path: &str) -> Result<Load> {
    let words = format!("-t2 -c{CONNECTIONS} -d{SECONDS}s --latency http://{at}{path}");
    let output = lab
        .exec(client)?
        .arg("wrk")
        .args(words.split(' '))
        .output()
        .context("cannot run wrk")?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success(),
        "wrk: {}: {text}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    parse(&words, &text).with_context(|| format!("wrk says:\n{text}"))
}

fn parse(words: &str, text: &str) -> Option<Load> {
    let after = |begin: &str| {
        let lines = text.lines().map(str::trim);
        lines.filter_map(|line| line.strip_prefix(begin)).next()
    };
    let requests = text
        .lines()
        .find_map(|line| line.trim().split_once(" requests in "))?
        .0;
    let errors: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("Socket errors") || line.starts_with("Non-2xx"))
        .collect();
    Some(Load {
        words: words.to_owned(),
        requests: requests.parse().ok()?,
        rate: after("Requests/sec:")?.trim().parse().ok()?,
        median: after("50%")?.trim().to_owned(),
        slowest_hundredth: after("99%")?.trim().to_owned(),
        errors: (!errors.is_empty()).then(|| errors.join("; ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "Running 2s test @ http://10.77.0.100/4k
  2 threads and 32 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     2.03ms    3.52ms  34.28ms   89.96%
    Req/Sec    15.29k     2.73k   22.13k    70.00%
  Latency Distribution
     50%  708.00us
     75%    1.95ms
     90%    5.57ms
     99%   18.15ms
  60914 requests in 2.00s, 252.76MB read
Requests/sec:  30384.34
Transfer/sec:    126.08MB
";

    #[test]
    fn a_good_run_is_understood() {
        let load = parse("words", GOOD);
        let expected = Load {
            words: "words".to_owned(),
            requests: 60914,
            rate: 30384.34,
            median: "708.00us".to_owned(),
            slowest_hundredth: "18.15ms".to_owned(),
            errors: None,
        };
        assert_eq!(load, Some(expected));
    }

    #[test]
    fn errors_are_seen() {
        let bad = format!(
            "{GOOD}  Socket errors: connect 0, read 1, write 0, timeout 0\n  \
             Non-2xx or 3xx responses: 7\n"
        );
        let errors = parse("", &bad).and_then(|load| load.errors);
        let errors = errors.unwrap_or_default();
        assert!(
            errors.contains("read 1") && errors.contains("responses: 7"),
            "{errors}"
        );
        assert_eq!(parse("", "unable to connect"), None);
    }
}
