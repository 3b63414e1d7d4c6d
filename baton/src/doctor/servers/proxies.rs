//! Checks for programs of container engines that listen on a published port and pass its bytes on (docker-proxy,
//! rootlessport). A connection can be adopted into their listener like into any other, but then the server behind them
//! sees the host's address in place of the client's.

use std::{collections::HashSet, fs, path::Path};

use baton_net::listeners::{Listener, listeners};

use crate::doctor::{finding::Finding, servers::NamedService};

const NAME: &str = "container_proxy";
const PROXIES: [&str; 2] = ["docker-proxy", "rootlessport"];

/// Checks whether such a program listens for one of `services`, which are those of this node.
pub fn check(services: &[NamedService]) -> Finding {
    // If the listeners cannot be listed, the check of the servers reports it.
    let listeners = listeners().unwrap_or_default();
    let proxies = sockets_of_proxies(Path::new("/proc"));
    judge(services, &listeners, &proxies)
}

fn judge(services: &[NamedService], listeners: &[Listener], proxies: &HashSet<u32>) -> Finding {
    let by_proxy = |(_, at): &&NamedService| {
        let mut takers = listeners.iter().filter(|listener| listener.takes(*at));
        takers.any(|listener| proxies.contains(&listener.inode))
    };
    let found: Vec<String> = services
        .iter()
        .filter(by_proxy)
        .map(|(name, at)| format!("{name} ({at})"))
        .collect();
    if found.is_empty() {
        return Finding::good(NAME, "none listens for a service");
    }
    Finding::advice(
        NAME,
        format!(
            "a container engine's proxy listens for {}",
            found.join(", ")
        ),
        "Connections are adopted into the proxy, which copies their bytes to the container, and the server there \
         sees the host's address in place of the client's. Give the container the host's network \
         (docker run --network host), or let the node relay to it in the client's name: relay_to, see \
         docs/containers.md.",
    )
}

/// The inodes of all sockets that such programs on this machine have open.
fn sockets_of_proxies(proc: &Path) -> HashSet<u32> {
    let mut inodes = HashSet::new();
    for process in fs::read_dir(proc).into_iter().flatten().flatten() {
        let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
        if !PROXIES.contains(&name.trim_end()) {
            continue;
        }
        let open = fs::read_dir(process.path().join("fd"));
        for descriptor in open.into_iter().flatten().flatten() {
            let target = fs::read_link(descriptor.path()).unwrap_or_default();
            let inode = (target.to_str())
                .and_then(|text| text.strip_prefix("socket:["))
                .and_then(|text| text.strip_suffix(']'));
            inodes.extend(inode.and_then(|text| text.parse::<u32>().ok()));
        }
    }
    inodes
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::doctor::finding::Verdict::{Advice, Good};

    #[test]
    fn a_proxy_for_a_service() {
        let listener = |inode| Listener {
            address: "0.0.0.0:80".parse().expect("an address"),
            only_ipv6: false,
            mptcp: false,
            backlog: 511,
            inode,
        };
        let web: Vec<NamedService> =
            vec![("web".into(), "192.0.2.100:80".parse().expect("an address"))];
        let proxies = HashSet::from([7]);
        let advice = judge(&web, &[listener(7)], &proxies);
        assert_eq!(advice.verdict(), Advice);
        assert!(advice.found().contains("web (192.0.2.100:80)"));
        assert_eq!(judge(&web, &[listener(8)], &proxies).verdict(), Good);
        let other: Vec<NamedService> =
            vec![("tls".into(), "192.0.2.100:443".parse().expect("an address"))];
        assert_eq!(judge(&other, &[listener(7)], &proxies).verdict(), Good);
    }

    #[test]
    fn sockets_are_found_by_their_programs() {
        let directory = tempfile::tempdir().expect("a directory");
        for (pid, name, inode) in [("10", "docker-proxy\n", 7), ("11", "nginx\n", 8)] {
            let process = directory.path().join(pid);
            fs::create_dir_all(process.join("fd")).expect("a directory");
            fs::write(process.join("comm"), name).expect("a file");
            symlink("/dev/null", process.join("fd/0")).expect("a link");
            symlink(format!("socket:[{inode}]"), process.join("fd/4")).expect("a link");
        }
        assert_eq!(sockets_of_proxies(directory.path()), HashSet::from([7]));
    }
}
