//! Checks this node's own address.

use baton_net::{Adapter, Link, Netlink};

use crate::doctor::{finding::Finding, subject::Placed};

/// Checks that this machine has the node's address on the interface that the configuration means. Messages between
/// nodes go from and to that address.
pub async fn check(placed: &Placed, adapters: &[Adapter], netlink: &Netlink) -> Finding {
    let holder = netlink.link_with(placed.me.address.ip()).await;
    judge(placed, adapters, holder.map_err(|error| error.to_string()))
}

const NAME: &str = "address";

fn judge(placed: &Placed, adapters: &[Adapter], holder: Result<Link, String>) -> Finding {
    let address = placed.me.address.ip();
    let why = "Nodes send each other messages from and to the addresses in the configuration:";
    let is_elsewhere = |link: &Link| {
        !adapters.is_empty() && adapters.iter().all(|adapter| adapter.index != link.index)
    };
    let names: Vec<&str> = adapters
        .iter()
        .map(|adapter| adapter.name.as_str())
        .collect();
    match holder {
        Ok(link) if is_elsewhere(&link) => Finding::advice(
            NAME,
            format!(
                "{address} is on {}, not on {}",
                link.name,
                names.join(" or ")
            ),
            format!(
                "{why} name {} among this node's interfaces, or move the address.",
                link.name
            ),
        ),
        Ok(link) => Finding::good(NAME, format!("{address} is on {}", link.name)),
        Err(error) => Finding::bad(
            NAME,
            error.lines().next().unwrap_or_default(),
            format!(
                "{why} give {address} to an interface, or correct the address of {}.",
                placed.me.name
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::{
        finding::Verdict::{Advice, Bad, Good},
        subject::tests::{adapter, link, placed},
    };

    #[test]
    fn held_where_meant() {
        let placed = placed("ds1");
        let verdict = |adapters: &[Adapter], holder| judge(&placed, adapters, holder).verdict();
        assert_eq!(verdict(&[adapter(2)], Ok(link(2))), Good);
        assert_eq!(verdict(&[], Ok(link(2))), Good);
        assert_eq!(verdict(&[adapter(3), adapter(2)], Ok(link(2))), Good);
        assert_eq!(verdict(&[adapter(3)], Ok(link(2))), Advice);
        assert_eq!(
            verdict(&[adapter(2)], Err("no interface holds it".into())),
            Bad
        );
    }
}
