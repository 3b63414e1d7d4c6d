//! Waits until servers and programs that were started can be used.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::{Error, LogTail, Result};
use crate::file::{Host, Port, Thing};
use crate::netns::Namespace;
use crate::process::Process;

/// The default for how long a program may take to become ready.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// The longest time of one try.
const TRY: Duration = Duration::from_secs(1);
/// The time in which a program without a port is expected to fail if it fails at once, for example because of wrong
/// arguments.
const FALSE_START: Duration = Duration::from_millis(100);

/// Waits until a thing is ready. A server is ready when it answers /health on its own port (no server logs
/// that page), or with TLS when it accepts there, a node when its control socket accepts, a program with a port when it accepts there. A program
/// without a port is ready when it runs or has ended with success.
pub(crate) fn wait(
    host: &Host,
    thing: &Thing,
    process: &Process,
    namespace: &Namespace,
    patience: Duration,
) -> Result<()> {
    let begin = Instant::now();
    let not_ready = |why: String| Error::NotReady {
        host: host.name.as_str().to_owned(),
        thing: thing.name().to_owned(),
        waited: begin.elapsed(),
        why,
        log: Box::new(LogTail::of(&process.start.log)),
    };
    if matches!(thing, Thing::Program(program) if program.port.is_none()) {
        return process.started_well(FALSE_START).map_err(not_ready);
    }
    loop {
        let answer = probe(host, thing, process, namespace)?;
        process.started_well(Duration::ZERO).map_err(not_ready)?;
        match (answer, process.is_alive()) {
            (Ok(()), true) => return Ok(()),
            (_, false) => return Err(not_ready("it has ended".to_owned())),
            (Err(why), true) if begin.elapsed() >= patience => return Err(not_ready(why)),
            (Err(_), true) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// The address at which servers of a host listen. Virtual sockets listen on loopback.
fn listens_at(host: &Host) -> IpAddr {
    if host.is_app() {
        Ipv4Addr::LOCALHOST.into()
    } else {
        host.address()
    }
}

/// Tries once whether a thing is ready. The inner error says why it is not ready yet, the outer error that the
/// host could not be entered.
fn probe(
    host: &Host,
    thing: &Thing,
    process: &Process,
    namespace: &Namespace,
) -> Result<Result<(), String>> {
    match thing {
        Thing::Node => Ok(answers_locally(
            &process.start.directory.join("control.sock"),
        )),
        Thing::Server(server) => {
            let at = (server.container).map_or_else(|| listens_at(host), IpAddr::V4);
            namespace.within(|| match server.tls {
                true => connect(at, server.port).map(drop),
                false => is_healthy(at, server.port),
            })
        }
        Thing::Program(program) => match program.port {
            Some(port) => namespace.within(|| connect(listens_at(host), port).map(drop)),
            None => Ok(Ok(())),
        },
    }
}

fn answers_locally(socket: &Path) -> Result<(), String> {
    UnixStream::connect(socket)
        .map(drop)
        .map_err(|error| format!("its control socket {}: {error}", socket.display()))
}

fn is_healthy(address: IpAddr, port: Port) -> Result<(), String> {
    let mut connection = connect(address, port)?;
    let mut answer = String::new();
    write!(
        connection,
        "GET /health HTTP/1.0\r\nHost: {address}\r\n\r\n"
    )
    .and_then(|()| connection.read_to_string(&mut answer))
    .map_err(|error| format!("GET /health: {error}"))?;
    match answer.split_once("\r\n\r\n") {
        Some((head, "ok\n")) if head.contains(" 200 ") => Ok(()),
        _ => Err(format!("its answer to GET /health is {answer:?}")),
    }
}

fn connect(address: IpAddr, port: Port) -> Result<TcpStream, String> {
    let at = SocketAddr::new(address, port.number());
    let connection = TcpStream::connect_timeout(&at, TRY)
        .map_err(|error| format!("connect to {at}: {error}"))?;
    connection
        .set_read_timeout(Some(TRY))
        .and_then(|()| connection.set_write_timeout(Some(TRY)))
        .map_err(|error| format!("set timeouts: {error}"))?;
    Ok(connection)
}
