//! A step that expects an answer to be broken off.

use std::io::Read as _;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::http::{connect_to, get};
use crate::step::{Step, meanwhile};
use crate::world::World;

/// Asks for a page that takes long. When the answer has begun, other steps run, which end the connection. The client
/// must notice the end instead of waiting on, and must not have got the whole page.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BrokenOff {
    path: String,
    /// The data server that answers.
    by: String,
    /// The steps that end the connection.
    meanwhile: Vec<Step>,
}

impl BrokenOff {
    /// Runs the step.
    ///
    /// # Errors
    /// A step failed, or the answer came to its regular end or to none at all.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let mut stream = world.lab.within("client", || connect_to(&self.by))??;
        get(&mut stream, &self.path)?;
        let mut answer = vec![0; 4096];
        let begun = stream.read(&mut answer).context("no answer began")?;
        ensure!(
            answer.starts_with(b"HTTP/1.1 200 "),
            "the answer begins with {:?}",
            String::from_utf8_lossy(&answer[..begun])
        );
        answer.truncate(begun);
        meanwhile(&self.meanwhile, world)?;
        match stream.read_to_end(&mut answer) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                return Err(error).context("the client never heard that its connection is gone");
            }
            // An orderly end and a RST both tell the client that the connection is over.
            Ok(_) | Err(_) => {}
        }
        // An answer that is complete ends with an empty chunk (RFC 9112, section 7.1).
        ensure!(
            !answer.ends_with(b"\r\n0\r\n\r\n"),
            "the answer came to its regular end"
        );
        Ok(())
    }
}
