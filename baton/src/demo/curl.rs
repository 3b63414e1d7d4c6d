//! Sends requests by curl on the client.

use std::net::{IpAddr, SocketAddr};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use baton_lab::Running;

/// A request and its answer, as curl reports them.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The path of the request.
    pub path: String,
    /// The HTTP status.
    pub status: u16,
    /// The first line of the body of a text; empty for a file.
    pub says: String,
    /// The server's end of the connection.
    pub server: SocketAddr,
    /// The client's end of the connection.
    pub client: SocketAddr,
    /// The number of connections that were made for the request: 0 or 1.
    pub connections: u32,
    /// The number of bytes of the body.
    pub bytes: u64,
    /// The seconds from the first SYN to the last byte.
    pub seconds: f64,
}

impl Answer {
    /// The server that gave a text. Its name is the first word of the text, and in some texts the only one.
    pub fn host(&self) -> &str {
        self.says.split(' ').next().unwrap_or_default()
    }
}

/// The format of curl's report: one line an answer, on standard error, so that standard output has only the body.
const TOLD: &str = "%{stderr}%{http_code} %{remote_ip} %{remote_port} %{local_ip} %{local_port} \
                    %{num_connects} %{size_download} %{time_total}\n";

/// A client that asks the cluster.
pub struct Curl<'a> {
    /// The lab in which the client is.
    pub lab: &'a Running,
    /// The name of the client's host.
    pub client: &'a str,
    /// The cluster's address and port.
    pub at: SocketAddr,
    /// How long each request may take.
    pub timeout: Duration,
}

impl Curl<'_> {
    /// Gets text pages, all over one connection if the server allows it.
    pub fn texts(&self, paths: &[&str]) -> Result<Vec<Answer>> {
        let mut curl = self.command()?;
        curl.args(paths.iter().map(|path| url(self.at, path)));
        let output = curl.output().context("cannot run curl")?;
        let told = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "curl: {}: {told}", output.status);
        let bodies = String::from_utf8_lossy(&output.stdout);
        let (bodies, told): (Vec<&str>, Vec<&str>) =
            (bodies.lines().collect(), told.lines().collect());
        ensure!(
            bodies.len() == paths.len() && told.len() == paths.len(),
            "curl asked for {} pages of a line each and got {bodies:?}, {told:?}",
            paths.len()
        );
        let answers = paths.iter().zip(bodies).zip(told);
        answers
            .map(|((path, body), told)| answer(path, body, told))
            .collect()
    }

    /// Gets a file. Returns the answer, and the body's SHA-256 in hex.
    pub fn file(&self, path: &str) -> Result<(Answer, String)> {
        let mut curl = self.command()?;
        curl.arg(url(self.at, path))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = curl.spawn().context("cannot run curl")?;
        let body = child.stdout.take().context("curl has no output")?;
        let sum = Command::new("sha256sum")
            .stdin(body)
            .output()
            .context("cannot run sha256sum")?;
        let output = child.wait_with_output().context("cannot wait for curl")?;
        let told = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "curl: {}: {told}", output.status);
        let sum = String::from_utf8_lossy(&sum.stdout);
        let sum = sum.split(' ').next().unwrap_or_default().to_owned();
        Ok((answer(path, "", told.trim_end())?, sum))
    }

    /// The curl command, without the user's own settings and proxies.
    fn command(&self) -> Result<Command> {
        let timeout = self.timeout.as_secs().to_string();
        let mut curl = self.lab.exec(self.client)?;
        curl.args(["curl", "-q", "-sS", "--noproxy", "*"])
            .args(["--max-time", &timeout, "-w", TOLD])
            .stdin(Stdio::null());
        Ok(curl)
    }
}

fn url(at: SocketAddr, path: &str) -> String {
    format!("http://{at}{path}")
}

fn answer(path: &str, body: &str, told: &str) -> Result<Answer> {
    let words: Vec<&str> = told.split(' ').collect();
    let [
        status,
        server,
        server_port,
        client,
        client_port,
        connections,
        bytes,
        seconds,
    ] = words[..]
    else {
        bail!("curl says of {path}: {told:?}");
    };
    let read = || -> Result<Answer> {
        Ok(Answer {
            path: path.to_owned(),
            status: status.parse()?,
            says: body.to_owned(),
            server: (server.parse::<IpAddr>()?, server_port.parse()?).into(),
            client: (client.parse::<IpAddr>()?, client_port.parse()?).into(),
            connections: connections.parse()?,
            bytes: bytes.parse()?,
            seconds: seconds.parse()?,
        })
    };
    read().with_context(|| format!("curl says of {path}: {told:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_curl_tells_is_understood() -> Result<()> {
        let told = "200 10.77.0.100 80 10.77.0.1 24066 1 4 0.004822";
        let answer = answer("/whoami", "ds2", told)?;
        assert_eq!(answer.server, "10.77.0.100:80".parse()?);
        assert_eq!(answer.client, "10.77.0.1:24066".parse()?);
        assert_eq!(
            (answer.status, answer.connections, answer.bytes),
            (200, 1, 4)
        );
        assert_eq!(answer.says, "ds2");
        Ok(())
    }

    #[test]
    fn anything_else_is_an_error() {
        assert!(answer("/", "", "curl: (7) Failed to connect").is_err());
        assert!(answer("/", "", "").is_err());
        assert!(answer("/", "", "200 10.77.0.100 80  0 1 4 0.1").is_err());
    }
}
