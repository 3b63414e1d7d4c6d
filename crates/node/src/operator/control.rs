//! The control socket: each connection carries one JSON request on a line and one JSON answer.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::{fs::PermissionsExt as _, net::UnixStream},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, anyhow};
use baton_config::Config;
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixListener,
    sync::{mpsc, oneshot},
};
use tracing::debug;

use crate::status::Status;
use crate::{
    connection_server::migration,
    service_manager::{News, tell},
};

/// What an operator asks of the daemon about draining.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DrainRequest {
    /// The name of the node that is to drain.
    pub node: String,
    /// Whether the node is to take requests again instead.
    pub undo: bool,
    /// Whether the node is to drain even if no other one takes its requests.
    pub force: bool,
    /// Whether the node is to drain only until its daemon ends. This can be asked only at that node.
    pub until_end: bool,
}

/// What a running node can be asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Asks for the node's status.
    Status,
    /// Asks the node to read its configuration file again.
    Reload,
    /// Asks that one connection server, this node or another, gives another one its TCB entries and then the cluster
    /// addresses.
    Migrate {
        /// The name of the connection server that gives them.
        from: String,
        /// The name of the connection server that gets them.
        to: String,
    },
    /// Asks how a migration is getting on.
    Migration {
        /// The name of the giving connection server, as in [`Request::Migrate`].
        from: String,
        /// The name of the getting connection server, as in [`Request::Migrate`].
        to: String,
    },
    /// Asks that a data server takes no new requests, or takes them again.
    Drain(DrainRequest),
}

/// What a running node answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Response {
    /// The node's status, in answer to [`Request::Status`].
    Status(Box<Status>),
    /// The state of a migration, in answer to [`Request::Migrate`] and [`Request::Migration`].
    Migration(Box<migration::State>),
    /// What was asked was done.
    Done {
        /// What was done, for people.
        message: String,
    },
    /// Nothing of what was asked was done.
    Failed {
        /// The reason, for people.
        message: String,
    },
}

impl Response {
    /// The error for one who has asked for something else than this.
    pub fn unexpected(self) -> anyhow::Error {
        match self {
            Response::Failed { message } | Response::Done { message } => anyhow!(message),
            Response::Status(_) | Response::Migration(_) => anyhow!(
                "the node's answer does not match the request: does its daemon run another version?"
            ),
        }
    }
}

/// The answer that a request failed, with the error and its causes.
impl From<anyhow::Error> for Response {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed {
            message: format!("{error:#}"),
        }
    }
}

/// A request and the channel for its answer.
pub type Call = (Request, oneshot::Sender<Response>);

/// The path of the socket at which the node of this configuration listens. The file exists while the node is ready.
pub fn socket_path(config: &Config) -> PathBuf {
    config.local.run_dir.join("control.sock")
}

/// Asks the running node of this configuration, and waits at most 30 s for its answer.
pub fn ask(file: &Path, request: &Request) -> Result<Response> {
    let path = socket_path(&Config::read(file)?.config);
    let mut stream = UnixStream::connect(&path).with_context(|| {
        format!(
            "no node answers at {}: is `baton node --config {}` running?",
            path.display(),
            file.display()
        )
    })?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    serde_json::to_writer(&mut stream, request)?;
    stream.write_all(b"\n")?;
    let mut line = String::new();
    BufReader::new(stream)
        .read_line(&mut line)
        .context("the node did not answer within 30 s")?;
    serde_json::from_str(&line).context("the node's answer is of another version")
}

/// Asks the running node of this configuration for its status.
pub fn status(file: &Path) -> Result<Box<Status>> {
    match ask(file, &Request::Status)? {
        Response::Status(status) => Ok(status),
        other => Err(other.unexpected()),
    }
}

/// The length of the longest request that is read, in bytes.
const REQUEST_MAX: u64 = 4096;

/// Listens at `path`, for root only, and passes requests on. Call this when the node is ready: the file is there when
/// this returns, and the service manager is told that the node is ready.
pub fn listen(path: &Path, calls: mpsc::Sender<Call>) -> Result<()> {
    // A daemon that was killed leaves its file behind, and `bind()` would fail.
    let _ = fs::remove_file(path);
    let listener =
        UnixListener::bind(path).with_context(|| format!("cannot listen at {}", path.display()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    tell(&[News::Ready, News::Status("serves".into())]);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let calls = calls.clone();
            tokio::spawn(async move {
                if let Err(error) = answer(stream, calls).await {
                    debug!("control socket: {error:#}");
                }
            });
        }
    });
    Ok(())
}

async fn answer(stream: tokio::net::UnixStream, calls: mpsc::Sender<Call>) -> Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut line = String::new();
    tokio::io::BufReader::new(reader.take(REQUEST_MAX))
        .read_line(&mut line)
        .await?;
    let response = match serde_json::from_str(&line) {
        Ok(request) => {
            let (reply, answered) = oneshot::channel();
            calls.send((request, reply)).await?;
            answered.await?
        }
        Err(error) => Response::Failed {
            message: format!("cannot read the request: {error}"),
        },
    };
    let mut text = serde_json::to_vec(&response)?;
    text.push(b'\n');
    writer.write_all(&text).await?;
    Ok(())
}
