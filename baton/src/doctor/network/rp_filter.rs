//! Checks the reverse path filter.

use crate::doctor::{finding::Finding, kernel::proc};

/// Checks that filtering is not strict. Strict filtering drops a client's packet that comes in by another interface
/// than the route back to the client would take. Clients' packets come by way of the connection server, not by that
/// route.
pub fn check(interface: &str) -> Finding {
    let read = |of: &str| proc::setting(&format!("net/ipv4/conf/{of}/rp_filter"));
    judge(
        read("all").as_deref(),
        read(interface).as_deref(),
        interface,
    )
}

const NAME: &str = "rp_filter";

/// Judges the larger of the two settings, which is the one that holds (Documentation/networking/ip-sysctl.rst): 0 is
/// off, 1 strict, 2 loose.
fn judge(all: Option<&str>, own: Option<&str>, interface: &str) -> Finding {
    let value = |text: Option<&str>| text.and_then(|text| text.parse::<u8>().ok());
    match value(all).max(value(own)) {
        Some(1) => Finding::advice(
            NAME,
            format!("strict on {interface}"),
            format!(
                "A data server gets clients' packets from the connection server; if the route back to a \
                 client leaves by another interface, strict filtering drops them silently. Make it loose \
                 where that may be: sysctl -w net.ipv4.conf.{interface}.rp_filter=2"
            ),
        ),
        Some(0) => Finding::good(NAME, format!("off on {interface}")),
        Some(_) => Finding::good(NAME, format!("loose on {interface}")),
        None => Finding::good(NAME, "this kernel has none"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict::{Advice, Good};

    #[test]
    fn the_larger_value_holds() {
        let verdict = |all, own| judge(Some(all), Some(own), "eth0").verdict();
        assert_eq!(verdict("0", "0"), Good);
        assert_eq!(verdict("0", "1"), Advice);
        assert_eq!(verdict("1", "0"), Advice);
        assert_eq!(verdict("1", "2"), Good);
        assert_eq!(judge(None, None, "eth0").verdict(), Good);
    }
}
