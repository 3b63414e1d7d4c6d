//! A step whose clients send further requests without waiting for answers.

use std::io::Write as _;

use anyhow::{Context as _, Result, ensure};
use baton_lab::servers::FILES;
use serde::Deserialize;

use super::http::{connect, get, is_by_pool, read_response, request};
use crate::world::World;

/// Sends several requests at once, cut into two segments at different places in turn. The answers must be right and in
/// the right order, whichever data servers give them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pipeline {
    /// The numbers of requests under way at once, with one connection after the other for each number.
    depths: Vec<usize>,
    /// The paths, which are asked for in turn. Each begins with /dsN/.
    paths: Vec<String>,
    /// The distance between the places of the cut, in bytes.
    every: usize,
    /// Whether one request with its answer comes first, so that the connection has moved already.
    #[serde(default)]
    after_one: bool,
    /// Whether each request must be answered by the data server that its path names.
    #[serde(default)]
    by_pool: bool,
}

impl Pipeline {
    /// Runs the step.
    ///
    /// # Errors
    /// An answer is missing, or belongs to another request.
    pub fn run(&self, world: &mut World) -> Result<()> {
        world.lab.within("client", || {
            self.depths.iter().try_for_each(|depth| self.at(*depth))
        })?
    }

    fn at(&self, depth: usize) -> Result<()> {
        let paths: Vec<&String> = self.paths.iter().cycle().take(depth).collect();
        let requests: String = paths.iter().map(|path| request(path)).collect();
        for cut in (1..requests.len()).step_by(self.every) {
            self.ask(&paths, requests.split_at(cut))
                .with_context(|| format!("{depth} requests, cut after {cut} bytes"))?;
        }
        Ok(())
    }

    fn ask(&self, paths: &[&String], (first, second): (&str, &str)) -> Result<()> {
        let mut stream = connect(None, 80)?;
        if self.after_one {
            for path in &self.paths {
                get(&mut stream, path)?;
                read_response(&mut stream)?;
            }
        }
        // The socket has no delay (TCP_NODELAY), so each piece is a segment of its own.
        stream.write_all(first.as_bytes())?;
        stream.write_all(second.as_bytes())?;
        for path in paths {
            let (head, body) = read_response(&mut stream).with_context(|| format!("for {path}"))?;
            ensure!(
                head.starts_with("HTTP/1.1 200 ") && is_of(path, &body),
                "{path} is answered with {head}"
            );
            ensure!(
                !self.by_pool || is_by_pool(path, &head),
                "{path} is answered by another pool: {head}"
            );
        }
        Ok(())
    }
}

/// Whether a body is this page's: the host's name and the path, or one of the lab's files, judged by its length.
fn is_of(path: &str, body: &[u8]) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    match FILES.iter().find(|(known, _)| *known == name) {
        Some((_, bytes)) => body.len() as u64 == *bytes,
        None => body.trim_ascii_end().ends_with(path.as_bytes()),
    }
}
