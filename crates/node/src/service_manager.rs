//! Tells the service manager that has started this process about its state: sd_notify(3). If no service manager has
//! started it, nobody is told.

use std::{
    env, io,
    os::{
        linux::net::SocketAddrExt as _,
        unix::{
            ffi::OsStrExt as _,
            net::{SocketAddr, UnixDatagram},
        },
    },
    time::Duration,
};

use nix::time::{ClockId, clock_gettime};
use tracing::debug;

/// Something that the service manager wants to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// The node serves. The first one ends the start, each later one ends a reload.
    Ready,
    /// The node reads its configuration again; [`News::Ready`] follows.
    Reloading,
    /// The node takes back what it has done to the host.
    Stopping,
    /// What the node does, in words for people.
    Status(String),
    /// What is under way takes at least this much longer, and must not be killed before.
    Longer(Duration),
}

/// Sends the news to the service manager. If nobody listens, the news is lost; only what the manager shows depends on
/// it.
pub fn tell(news: &[News]) {
    let Some(socket) = env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    let lines: Vec<String> = news.iter().map(line).collect();
    if let Err(error) = send(socket.as_bytes(), lines.join("\n").as_bytes()) {
        debug!("cannot tell the service manager: {error}");
    }
}

/// Sends to the socket at a path, or, if `socket` begins with "@", to the abstract name behind it.
fn send(socket: &[u8], message: &[u8]) -> io::Result<()> {
    let to = match socket.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(socket))?,
    };
    UnixDatagram::unbound()?.send_to_addr(message, &to)?;
    Ok(())
}

fn line(news: &News) -> String {
    match news {
        News::Ready => "READY=1".into(),
        News::Reloading => format!("RELOADING=1\nMONOTONIC_USEC={}", monotonic().as_micros()),
        News::Stopping => "STOPPING=1".into(),
        // A second line would be another variable.
        News::Status(text) => format!("STATUS={}", text.replace('\n', " ")),
        News::Longer(time) => format!("EXTEND_TIMEOUT_USEC={}", time.as_micros()),
    }
}

/// The time of the clock by which the service manager goes as well.
fn monotonic() -> Duration {
    // The kernel always has this clock.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_one_line() {
        assert_eq!(
            line(&News::Status("two\nREADY=1".into())),
            "STATUS=two READY=1"
        );
    }

    #[test]
    fn times_are_microseconds() {
        let time = Duration::from_millis(1500);
        assert_eq!(line(&News::Longer(time)), "EXTEND_TIMEOUT_USEC=1500000");
        let reloading = line(&News::Reloading);
        let since = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=");
        assert!(since.is_some_and(|since| since.parse::<u64>().is_ok_and(|since| since > 0)));
    }

    #[test]
    fn it_arrives_at_paths_and_at_abstract_names() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("notify");
        let name = format!("@baton-test-{}", std::process::id());
        let by_path = UnixDatagram::bind(&path)?;
        let by_name =
            UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name.as_bytes()[1..])?)?;
        for (receiver, socket) in [
            (by_path, path.as_os_str().as_bytes()),
            (by_name, name.as_bytes()),
        ] {
            receiver.set_read_timeout(Some(Duration::from_secs(5)))?;
            send(socket, b"READY=1")?;
            let mut buffer = [0; 64];
            let length = receiver.recv(&mut buffer)?;
            assert_eq!(&buffer[..length], b"READY=1");
        }
        assert!(send(b"/no/such/socket", b"READY=1").is_err());
        Ok(())
    }
}
