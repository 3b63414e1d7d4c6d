//! Reads a data server's own access log, whose lines have the form `CLIENT PORT "REQUEST" STATUS BYTES`.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// The log of one data server.
#[derive(Clone, Debug)]
pub struct AccessLog {
    /// The name of the data server.
    pub server: String,
    /// Every request that the data server answered, in the order of its log.
    pub entries: Vec<Entry>,
}

/// One request, as the data server logged it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The client's end of the connection, as the data server sees it.
    pub client: SocketAddr,
    /// The path of the request.
    pub path: String,
    /// The number of bytes of the body that the data server sent.
    pub bytes: u64,
}

/// The longest delay with which servers write their logs.
const DELAY: Duration = Duration::from_secs(3);

/// Reads the logs of servers, by name and file. It waits until `all` holds for the logs, but no longer than servers
/// may take to write them.
pub fn read(files: &[(&str, &Path)], all: impl Fn(&[AccessLog]) -> bool) -> Result<Vec<AccessLog>> {
    let begin = Instant::now();
    loop {
        let logs: Vec<AccessLog> = files
            .iter()
            .map(|(server, file)| read_one(server, file))
            .collect::<Result<_>>()?;
        if all(&logs) || begin.elapsed() >= DELAY {
            return Ok(logs);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn read_one(server: &str, file: &Path) -> Result<AccessLog> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    // A last line without its line end is still being written.
    let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    Ok(AccessLog {
        server: server.to_owned(),
        entries: whole.lines().map(entry).collect::<Result<_>>()?,
    })
}

fn entry(line: &str) -> Result<Entry> {
    let read = || {
        let (client, rest) = line.split_once(" \"")?;
        let (request, rest) = rest.split_once("\" ")?;
        let (ip, port) = client.split_once(' ')?;
        let ip: IpAddr = ip.parse().ok()?;
        Some(Entry {
            client: (ip, port.parse().ok()?).into(),
            path: request.split(' ').nth(1)?.to_owned(),
            bytes: rest.split(' ').nth(1)?.parse().ok()?,
        })
    };
    match read() {
        Some(entry) => Ok(entry),
        None => bail!("an access log has the line {line:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_understood() -> Result<()> {
        let line = r#"10.77.0.1 24084 "GET /whoami HTTP/1.1" 200 4"#;
        let expected = Entry {
            client: "10.77.0.1:24084".parse()?,
            path: "/whoami".to_owned(),
            bytes: 4,
        };
        assert_eq!(entry(line)?, expected);
        assert!(entry("10.77.0.1 24084").is_err());
        Ok(())
    }

    #[test]
    fn half_a_line_waits() -> Result<()> {
        let file = std::env::temp_dir().join(format!("baton-access-log-{}", std::process::id()));
        std::fs::write(
            &file,
            "10.77.0.1 1 \"GET / HTTP/1.1\" 200 4\n10.77.0.1 2 \"GE",
        )?;
        let logs = read(&[("ds1", &file)], |logs| logs[0].entries.len() == 1);
        std::fs::remove_file(&file)?;
        assert_eq!(logs?[0].entries[0].path, "/");
        Ok(())
    }
}
