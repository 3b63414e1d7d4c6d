//! Sets at the I/O server's socket what a program sets on its own socket.

use std::io;
use std::net::SocketAddr;

use baton_saps_protocol::wire::SocketOptions;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{TcpKeepCount, TcpKeepIdle, TcpKeepInterval, TcpUserTimeout};
use socket2::SockRef;
use tokio::net::TcpStream;

/// Sets the options that are given. An option that the kernel refuses is skipped and logged: the program that set it
/// has gone on.
pub(crate) fn set(stream: &TcpStream, options: &SocketOptions) {
    let socket = SockRef::from(stream);
    let client = stream.peer_addr().ok();
    report("TCP_NODELAY", options.nodelay, client, |on| {
        socket.set_tcp_nodelay(on)
    });
    set_before(&socket, options, client);
}

/// Sets those of the options that a socket must have before it connects.
pub(crate) fn set_before(
    socket: &socket2::Socket,
    options: &SocketOptions,
    client: Option<SocketAddr>,
) {
    report("SO_KEEPALIVE", options.keepalive, client, |on| {
        socket.set_keepalive(on)
    });
    // These are not set by socket2, which would turn keepalives on as well.
    report("TCP_KEEPIDLE", options.keep_idle, client, |time| {
        Ok(setsockopt(&socket, TcpKeepIdle, &time)?)
    });
    report("TCP_KEEPINTVL", options.keep_interval, client, |time| {
        Ok(setsockopt(&socket, TcpKeepInterval, &time)?)
    });
    report("TCP_KEEPCNT", options.keep_probes, client, |count| {
        Ok(setsockopt(&socket, TcpKeepCount, &count)?)
    });
    report("TCP_USER_TIMEOUT", options.user_timeout, client, |time| {
        Ok(setsockopt(&socket, TcpUserTimeout, &time)?)
    });
    report("SO_SNDBUF", options.send_buffer, client, |bytes| {
        socket.set_send_buffer_size(bytes as usize)
    });
    report("SO_RCVBUF", options.receive_buffer, client, |bytes| {
        socket.set_recv_buffer_size(bytes as usize)
    });
}

fn report<T>(
    name: &str,
    value: Option<T>,
    client: Option<SocketAddr>,
    set: impl FnOnce(T) -> io::Result<()>,
) {
    if let Some(Err(error)) = value.map(set) {
        tracing::debug!(name, ?client, %error, "the kernel refuses a program's socket option");
    }
}

#[cfg(test)]
mod tests {
    use nix::sys::socket::getsockopt;
    use std::net::Ipv4Addr;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn what_is_given_is_set_and_nothing_else() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let at = listener.local_addr().unwrap();
        let stream = TcpStream::connect(at).await.unwrap();
        let socket = SockRef::from(&stream);
        let before = socket.send_buffer_size().unwrap();
        let options = SocketOptions {
            nodelay: Some(true),
            keep_idle: Some(70),
            keep_interval: Some(7),
            keep_probes: Some(3),
            user_timeout: Some(9000),
            receive_buffer: Some(20_000),
            ..SocketOptions::default()
        };
        set(&stream, &options);
        assert!(socket.tcp_nodelay().unwrap());
        assert!(!socket.keepalive().unwrap());
        assert_eq!(getsockopt(&stream, TcpKeepIdle).unwrap(), 70);
        assert_eq!(getsockopt(&stream, TcpKeepInterval).unwrap(), 7);
        assert_eq!(getsockopt(&stream, TcpKeepCount).unwrap(), 3);
        assert_eq!(getsockopt(&stream, TcpUserTimeout).unwrap(), 9000);
        // The kernel doubles the requested size.
        assert_eq!(socket.recv_buffer_size().unwrap(), 40_000);
        assert_eq!(socket.send_buffer_size().unwrap(), before);
    }
}
