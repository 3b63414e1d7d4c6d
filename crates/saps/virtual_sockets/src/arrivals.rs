//! Connections that clients make to programs.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use baton_core::counters::count;
use baton_dataplane::AppListener;
use socket2::{Domain, Socket, Type};
use tokio::{
    net::{TcpSocket, TcpStream},
    time::sleep,
};
use tracing::{debug, info, warn};

use crate::{
    Accepted, AppOptions, Family, Far, FarListening as _, FarStream,
    options::Known,
    relay::{prepare, relay},
    shared::Shared,
};

/// How long a refused port rests before the next attempt. Each further rest is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The port and IP versions that the I/O server must listen on for a listener.
pub(crate) fn port_of(listener: &AppListener) -> (u16, Family) {
    let family = match (listener.ipv6, listener.only_ipv6) {
        (false, _) => Family::V4,
        (true, true) => Family::V6,
        // The socket is bound to one address.
        (true, false) if !listener.wanted.ip().is_unspecified() => match listener.wanted {
            SocketAddr::V4(_) => Family::V4,
            SocketAddr::V6(_) => Family::V6,
        },
        // The socket is bound to ::ffff:0.0.0.0.
        (true, false) if listener.wanted.is_ipv4() => Family::V4,
        (true, false) => Family::Both,
    };
    (listener.at.port(), family)
}

/// Delivers to programs the connections that clients make to this port, until dropped.
pub(crate) async fn serve<F: Far>(shared: Arc<Shared<F>>, port: u16, family: Family) {
    let mut pause = FIRST_PAUSE;
    let asked = shared.refused.ask(port, family);
    loop {
        match shared.far.listen(port, family).await {
            Ok(mut listening) => {
                asked.granted();
                info!(port, ?family, "the I/O server listens");
                pause = FIRST_PAUSE;
                let error = loop {
                    match listening.accept().await {
                        Ok(accepted) => {
                            let shared = Arc::clone(&shared);
                            tokio::spawn(async move { shared.deliver(accepted).await });
                        }
                        Err(error) => break error,
                    }
                };
                asked.refused(&error);
                warn!(
                    port,
                    ?family,
                    "the I/O server has given up the port: {error}; asking again"
                );
            }
            Err(error) => {
                count(&shared.counters.listens_refused);
                asked.refused(&error);
                warn!(
                    port,
                    ?family,
                    "a program listens here, but the I/O server does not: {error}; trying again in {pause:?}"
                );
            }
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

impl<F: Far> Shared<F> {
    async fn deliver(&self, accepted: Accepted<F::Stream>) {
        let target = choose(&self.listeners.borrow(), accepted.peer, accepted.local).copied();
        let joined = match target {
            Some(listener) => self.join(&listener, &accepted).await,
            None => Err(io::ErrorKind::ConnectionRefused.into()),
        };
        match joined {
            Ok((local, _known)) => {
                count(&self.counters.arrivals);
                relay(local, accepted.stream, &self.counters).await;
            }
            Err(error) => {
                debug!(peer = %accepted.peer, local = %accepted.local, %error, "no program took a connection");
                count(&self.counters.arrivals_refused);
                accepted.stream.reset();
            }
        }
    }

    /// Connects to the program's listener. The client's address is announced to the hooks before the connection is
    /// made.
    async fn join(
        &self,
        listener: &AppListener,
        accepted: &Accepted<F::Stream>,
    ) -> io::Result<(TcpStream, Known)> {
        let at = listener.at;
        let socket = Socket::new(Domain::for_address(at), Type::STREAM.nonblocking(), None)?;
        prepare(&socket)?;
        socket.bind(&SocketAddr::new(source(at), 0).into())?;
        let own = socket.local_addr()?.as_socket();
        let own = own.ok_or(io::ErrorKind::InvalidData)?;
        let (peer, local) = (accepted.peer, accepted.local);
        let number = self.setters.number();
        (self.maps.announce(own, number, peer, local)).map_err(io::Error::other)?;
        let set = accepted.stream.setter();
        // Reads the options again: the program may have set some since the listeners were last looked at.
        let now = self.maps.listener_options(listener.cookie);
        let options = now.map_err(io::Error::other)?.unwrap_or(listener.options);
        if options != AppOptions::default() {
            set(options);
        }
        let known = self.setters.know(number, set);
        let joined = TcpSocket::from_std_stream(socket.into()).connect(at).await;
        if joined.is_err() {
            // The next connection from this port must not be mistaken for that client's.
            self.maps.withdraw(own);
        }
        Ok((joined?, known))
    }
}

/// The loopback address to connect from. Each source address has about 28,000 ports for connections to one listener,
/// so many addresses of IPv4 take turns. IPv6 has only ::1.
fn source(at: SocketAddr) -> IpAddr {
    static TURN: AtomicU32 = AtomicU32::new(0);
    match at {
        SocketAddr::V4(_) => {
            // The last byte is 1 to 250, so the address is no broadcast address.
            let last = TURN.fetch_add(1, Ordering::Relaxed) % 250 + 1;
            Ipv4Addr::from(0x7f56_0000 | last).into()
        }
        SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    }
}

/// Chooses as the kernel would: a listener for the very address before one for any address, and one for the client's
/// IP version alone before one for both.
fn choose(listeners: &[AppListener], peer: SocketAddr, local: SocketAddr) -> Option<&AppListener> {
    let takes = |one: &&AppListener| {
        let wanted = one.wanted.ip();
        one.at.port() == local.port()
            && (wanted.is_unspecified() || wanted == local.ip())
            && match port_of(one).1 {
                Family::V4 => peer.is_ipv4(),
                Family::V6 => peer.is_ipv6(),
                Family::Both => true,
            }
    };
    let rank = |one: &&AppListener| {
        (
            one.wanted.ip().is_unspecified(),
            port_of(one).1 == Family::Both,
        )
    };
    listeners.iter().filter(takes).min_by_key(rank)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listener(at: &str, wanted: &str, ipv6: bool, only_ipv6: bool) -> AppListener {
        AppListener {
            cookie: 0,
            at: at.parse().unwrap(),
            wanted: wanted.parse().unwrap(),
            ipv6,
            only_ipv6,
            options: AppOptions::default(),
        }
    }

    #[test]
    fn who_gets_what() {
        let v4 = listener("127.0.0.1:80", "0.0.0.0:80", false, false);
        let v6 = listener("[::1]:80", "[::]:80", true, true);
        let both = listener("127.0.0.1:81", "[::]:81", true, false);
        let one = listener("127.0.0.1:82", "10.77.0.100:82", false, false);
        let all = [v4, v6, both, one];
        let chosen = |peer: &str, local: &str| {
            let found = choose(&all, peer.parse().unwrap(), local.parse().unwrap());
            found.map(|listener| listener.at)
        };
        assert_eq!(chosen("192.0.2.1:9", "10.77.0.100:80"), Some(v4.at));
        assert_eq!(chosen("[2001:db8::1]:9", "[fd77::100]:80"), Some(v6.at));
        assert_eq!(chosen("192.0.2.1:9", "10.77.0.100:81"), Some(both.at));
        assert_eq!(chosen("[2001:db8::1]:9", "[fd77::100]:81"), Some(both.at));
        assert_eq!(chosen("192.0.2.1:9", "10.77.0.100:82"), Some(one.at));
        assert_eq!(chosen("192.0.2.1:9", "10.77.0.101:82"), None);
        assert_eq!(chosen("[2001:db8::1]:9", "[fd77::100]:82"), None);
        assert_eq!(chosen("192.0.2.1:9", "10.77.0.100:83"), None);
    }

    #[test]
    fn the_family_asked_for() {
        let port = |at, wanted, ipv6, only| port_of(&listener(at, wanted, ipv6, only));
        assert_eq!(
            port("127.0.0.1:80", "0.0.0.0:80", false, false),
            (80, Family::V4)
        );
        assert_eq!(port("[::1]:80", "[::]:80", true, true), (80, Family::V6));
        assert_eq!(
            port("127.0.0.1:80", "[::]:80", true, false),
            (80, Family::Both)
        );
        assert_eq!(
            port("127.0.0.1:80", "0.0.0.0:80", true, false),
            (80, Family::V4)
        );
        assert_eq!(
            port("[::1]:80", "[fd77::100]:80", true, false),
            (80, Family::V6)
        );
    }
}
