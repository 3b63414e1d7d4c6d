//! Checks servers in containers to which this node relays (`relay_to`).

use std::{
    net::{SocketAddrV4, TcpStream},
    time::Duration,
};

use crate::doctor::finding::Finding;

const NAME: &str = "relay_to";
const PATIENCE: Duration = Duration::from_secs(1);

/// A relayed service: its name, and the address of its server.
pub type Relayed = (String, SocketAddrV4);

/// Checks each server by connecting to it once. Returns `None` if no service is relayed.
pub fn check(relayed: &[Relayed]) -> Option<Finding> {
    let failed: Vec<(&Relayed, String)> = relayed
        .iter()
        .filter_map(|one| {
            let connected = TcpStream::connect_timeout(&one.1.into(), PATIENCE);
            Some((one, connected.err()?.to_string()))
        })
        .collect();
    judge(relayed, &failed)
}

fn judge(relayed: &[Relayed], failed: &[(&Relayed, String)]) -> Option<Finding> {
    if relayed.is_empty() {
        return None;
    }
    if failed.is_empty() {
        let servers: Vec<String> = relayed
            .iter()
            .map(|(name, server)| format!("{name} at {server}"))
            .collect();
        return Some(Finding::good(
            NAME,
            format!("accepts: {}", servers.join(", ")),
        ));
    }
    let failed: Vec<String> = failed
        .iter()
        .map(|((name, server), error)| format!("{name} at {server}: {error}"))
        .collect();
    Some(Finding::bad(
        NAME,
        failed.join("\n"),
        "This node relays connections to a server that does not accept them. See that the container runs and has \
         this address still (docker inspect; docker network create --subnet and docker run --ip fix it), and \
         that the port is the one inside the container.",
    ))
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpListener};

    use super::*;
    use crate::doctor::finding::Verdict::{Bad, Good};

    #[test]
    fn a_server_accepts_or_not() {
        assert_eq!(check(&[]), None);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let SocketAddr::V4(at) = listener.local_addr().expect("it is bound") else {
            panic!("bound to IPv4");
        };
        let web = [("web".to_owned(), at)];
        assert_eq!(check(&web).expect("one is relayed").verdict(), Good);
        drop(listener);
        let bad = check(&web).expect("one is relayed");
        assert_eq!(bad.verdict(), Bad);
        assert!(
            bad.found().starts_with(&format!("web at {at}: ")),
            "{}",
            bad.found()
        );
    }
}
