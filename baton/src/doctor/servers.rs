//! Checks the servers of this data server: whether they listen, and whether they can adopt.

pub mod accept_queue;
pub mod proxies;
pub mod receive_window;
pub mod relayed;
pub mod tcp_settings;

use std::net::SocketAddr;

use baton_net::listeners::{Listener, listeners};

use super::finding::Finding;
use crate::doctor::kernel::proc;

/// A service of this node: its name, and the address that clients reach.
pub type NamedService = (String, SocketAddr);

/// Checks the servers of this node's services. `services` is `None` if they are not known.
pub fn check(services: Option<&[NamedService]>) -> Vec<Finding> {
    let enabled = proc::setting("net/mptcp/enabled");
    let listeners = match listeners() {
        Ok(listeners) => listeners,
        Err(error) => {
            return vec![Finding::advice(
                "servers",
                error.to_string(),
                "Whether a server listens on each service's port could not be found out: run a kernel \
                 built with CONFIG_INET_DIAG=y, or look yourself with `ss -tln`.",
            )];
        }
    };
    let mut findings = vec![judge_mptcp(enabled.as_deref(), &listeners, services)];
    findings.extend(services.map(|services| judge_present(&listeners, services)));
    findings
}

/// Finds services without a server. Every connection is adopted by the server that listens on the service's own port;
/// without a listener the connection is refused, and goes to another data server.
fn judge_present(listeners: &[Listener], services: &[NamedService]) -> Finding {
    let (served, missing): (Vec<&NamedService>, Vec<&NamedService>) = services
        .iter()
        .partition(|(_, at)| listeners.iter().any(|listener| listener.takes(*at)));
    let named = |places: &[&NamedService]| {
        let places: Vec<String> = places
            .iter()
            .map(|(name, at)| format!("{name} ({at})"))
            .collect();
        places.join(", ")
    };
    match (missing.is_empty(), served.is_empty()) {
        (true, true) => Finding::good("servers", "no service needs a server here"),
        (true, false) => Finding::good("servers", format!("listening for {}", named(&served))),
        (false, _) => Finding::advice(
            "servers",
            format!("nothing listens for {}", named(&missing)),
            "This data server refuses connections that nothing here listens for, and they go to another. \
             Start the server, and let it listen on the service's port, at any address (0.0.0.0) or at \
             the cluster address (which the node holds while it runs). A server in a container with a network \
             of its own does not listen here: give the container the host's network \
             (docker run --network host), or name its address under relay_to; see docs/containers.md.",
        ),
    }
}

/// Finds servers that use MPTCP. The kernel adopts for plain TCP listeners only (`bpf_sk_assign_tcp_reqsk` refuses
/// MPTCP), so the daemon adopts for an MPTCP server itself and relays. That is slower, and relayed connections end
/// with the daemon.
fn judge_mptcp(
    enabled: Option<&str>,
    listeners: &[Listener],
    services: Option<&[NamedService]>,
) -> Finding {
    let concerned = |listener: &&Listener| {
        let ours = |services: &[NamedService]| services.iter().any(|(_, at)| listener.takes(*at));
        listener.mptcp && services.is_none_or(ours)
    };
    let mut at: Vec<String> = listeners
        .iter()
        .filter(concerned)
        .map(|listener| listener.address.to_string())
        .collect();
    at.sort();
    at.dedup();
    if at.is_empty() {
        let state = if enabled.unwrap_or("0") == "0" {
            "off"
        } else {
            "on, but no server here uses it"
        };
        return Finding::good("mptcp", state);
    }
    Finding::advice(
        "mptcp",
        format!("listening with MPTCP: {}", at.join(", ")),
        "The kernel adopts for plain TCP listeners only, so the daemon takes these connections itself and \
         relays them: slower, and they end when the daemon does. Make the server listen with plain TCP: \
         for one in Go set GODEBUG=multipathtcp=0 in its environment; for all of them sysctl -w \
         net.mptcp.enabled=0 and start them again.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict::{Advice, Good};

    fn listener(address: &str, mptcp: bool) -> Listener {
        Listener {
            address: address.parse().expect("an address"),
            only_ipv6: false,
            mptcp,
            backlog: 511,
            inode: 0,
        }
    }

    fn web() -> Vec<NamedService> {
        vec![("web".into(), "192.0.2.100:80".parse().expect("an address"))]
    }

    #[test]
    fn somebody_has_to_listen() {
        let there = [listener("0.0.0.0:80", false)];
        let elsewhere = [
            listener("192.0.2.11:80", false),
            listener("0.0.0.0:8080", false),
        ];
        assert_eq!(judge_present(&there, &web()).verdict(), Good);
        assert_eq!(judge_present(&[], &[]).verdict(), Good);
        let missing = judge_present(&elsewhere, &web());
        assert_eq!(missing.verdict(), Advice);
        assert_eq!(missing.found(), "nothing listens for web (192.0.2.100:80)");
    }

    #[test]
    fn mptcp_matters_on_service_ports() {
        let listeners = [listener("[::]:80", true), listener("0.0.0.0:22", false)];
        let verdict = |listeners: &[Listener], services: Option<&[NamedService]>| {
            judge_mptcp(Some("1"), listeners, services).verdict()
        };
        let web = web();
        assert_eq!(verdict(&listeners, Some(&web)), Advice);
        assert_eq!(verdict(&listeners, None), Advice);
        assert_eq!(verdict(&listeners, Some(&[])), Good);
        let plain = [listener("0.0.0.0:80", false)];
        assert_eq!(verdict(&plain, Some(&web)), Good);
        assert_eq!(judge_mptcp(None, &[], None).found(), "off");
    }
}
