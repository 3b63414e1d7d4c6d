use std::os::unix::net::UnixListener as Blocking;

use tokio::io::AsyncReadExt as _;
use tokio::net::UnixListener;

use super::super::settings::ClientAddress;
use super::*;

fn ends() -> Ends {
    Ends {
        client: "203.0.113.7:56324".parse().unwrap(),
        cluster: "192.0.2.100:443".parse().unwrap(),
    }
}

/// The server at this socket.
fn server(path: &Path, client_address: ClientAddress) -> LocalServer {
    let address = ServerAddress::Socket {
        path: path.to_owned(),
        client_address,
    };
    LocalServer::new("web", address, 0, Arc::default())
}

#[tokio::test]
async fn a_server_at_a_socket_learns_the_clients_address() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("web.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let line = "PROXY TCP4 203.0.113.7 192.0.2.100 56324 443\r\n";
    for (client_address, header, forwarded_for) in [
        (
            ClientAddress::ForwardedFor,
            Vec::new(),
            Some(Ipv4Addr::new(203, 0, 113, 7)),
        ),
        (ClientAddress::ProxyV1, line.as_bytes().to_vec(), None),
        (
            ClientAddress::ProxyV2,
            ClientAddress::ProxyV2.header(&ends()),
            None,
        ),
    ] {
        let server = server(&path, client_address);
        assert_eq!(server.forwarded_for(&ends()), forwarded_for);
        let mut stream = server.connect(ends()).await.unwrap();
        stream.write_all(b"GET").await.unwrap();
        drop(stream);
        let mut said = Vec::new();
        let (mut accepted, _) = listener.accept().await.unwrap();
        accepted.read_to_end(&mut said).await.unwrap();
        assert_eq!(said, [&header, &b"GET"[..]].concat());
    }
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("web.sock");
    let server = server(&path, ClientAddress::ProxyV2);
    for count in 1..3 {
        let error = server.connect(ends()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert_eq!(server.counters.unreachable.load(Relaxed), count);
    }
    // A socket whose server has died stays in its folder.
    drop(Blocking::bind(&path).unwrap());
    let error = server.connect(ends()).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn a_server_whose_queue_is_full_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("web.sock");
    let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None).unwrap();
    socket
        .bind(&socket2::SockAddr::unix(&path).unwrap())
        .unwrap();
    socket.listen(0).unwrap();
    socket.set_nonblocking(true).unwrap();
    let server = Arc::new(server(&path, ClientAddress::ProxyV1));
    // The queue has room for one connection.
    let first = server.connect(ends()).await.unwrap();
    let second = {
        let server = Arc::clone(&server);
        tokio::spawn(async move { server.connect(ends()).await })
    };
    sleep(4 * AGAIN).await;
    assert!(!second.is_finished());
    drop(socket.accept().unwrap());
    assert!(second.await.unwrap().is_ok());
    assert_eq!(server.counters.unreachable.load(Relaxed), 0);
    drop(first);
}
