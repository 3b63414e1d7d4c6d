//! A step that makes a given number of handovers.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::net::TcpStream;
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow, ensure};
use serde::Deserialize;

use super::get::has_bytes_of;
use super::http::{connect, read_response};
use crate::guard::own_resets;
use crate::step::checks::counters::{Moved, shown};
use crate::step::checks::log::until;
use crate::step::checks::no_connections::connections;
use crate::world::World;

/// The environment variable that overrides `handovers`.
const LENGTH: &str = "BATON_SOAK_HANDOVERS";
/// The number of handovers after which the step pauses to check that each connection has one socket, and to empty the
/// logs.
const LEG: u64 = 1_000_000;
const CS: &str = "cs1";

/// Opens connections that stay open, and asks over each for pages of another data server with every request. Each
/// answer must have all the page's bytes and come from the data server that its path names. However often a connection
/// has moved, it must have exactly one socket in the whole cluster.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Soak {
    /// The pages /dsN/FILE, which are asked for in turn. Neighbours in the list, and its last and first page, must be
    /// of different data servers.
    pages: Vec<String>,
    connections: u64,
    /// The least number of handovers of all connections together.
    handovers: u64,
}

/// One connection.
struct Runner {
    stream: TcpStream,
    /// The number of requests so far; `began` is the index in `pages` of the first one.
    asked: usize,
    began: usize,
}

/// A page and its right answer.
struct Page<'a> {
    path: &'a str,
    request: String,
    served_by: String,
    body: Vec<u8>,
}

impl Soak {
    /// Runs the step.
    ///
    /// # Errors
    /// An answer is wrong, a connection ended, there is a socket too many, or there were fewer handovers.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let wanted = self.wanted()?;
        let pages = self.pages(world)?;
        let (begin, before) = (Instant::now(), world.counters(CS)?);
        let mut runners = self.begin(world, &pages)?;
        let mut done = 0;
        while done < wanted {
            let each = LEG.min(wanted - done).div_ceil(self.connections);
            let ran = world
                .lab
                .within("client", || leg(&mut runners, &pages, each))?;
            ran.map_err(|error| anyhow!("{error:#}{}", what_nodes_counted(world)))?;
            done += each * self.connections;
            self.one_socket_each(world)?;
            empty_logs(world)?;
            let rate = done as f64 / begin.elapsed().as_secs_f64();
            eprintln!("  {done} handovers, {rate:.0} a second");
        }
        Moved::by(CS, "cs_moved_on", done).since(world, before)
    }

    fn wanted(&self) -> Result<u64> {
        match std::env::var(LENGTH) {
            Ok(text) => text
                .parse()
                .with_context(|| format!("{LENGTH} is {text:?}: write a number, such as 1000000")),
            Err(_) => Ok(self.handovers),
        }
    }

    /// The pages with their bodies. Each file is fetched once for that, and compared with the lab's file.
    fn pages(&self, world: &World) -> Result<Vec<Page<'_>>> {
        let mut files = BTreeMap::new();
        self.pages
            .iter()
            .map(|path| {
                let mut parts = path.split('/').skip(1);
                let (server, name) = (parts.next().zip(parts.next()))
                    .with_context(|| format!("{path} is not /dsN/FILE"))?;
                if !files.contains_key(name) {
                    files.insert(name, file(world, name)?);
                }
                Ok(Page {
                    path,
                    request: request(path),
                    served_by: format!("X-Served-By: {server}"),
                    body: files[name].clone(),
                })
            })
            .collect()
    }

    /// Opens the connections and sends the first request of each, which is no handover.
    fn begin(&self, world: &World, pages: &[Page]) -> Result<Vec<Runner>> {
        world.lab.within("client", || {
            (0..self.connections as usize)
                .map(|began| {
                    let mut runner = Runner {
                        stream: connect(None, 80)?,
                        asked: 0,
                        began,
                    };
                    runner.ask(pages)?;
                    Ok(runner)
                })
                .collect()
        })?
    }

    fn one_socket_each(&self, world: &World) -> Result<()> {
        until(crate::step::patience(), || {
            let mut sockets = 0;
            for host in world.hosts_with("nginx") {
                sockets += connections(world, &host, &[])?.lines().count() as u64;
            }
            ensure!(
                sockets == self.connections,
                "{} connections have {sockets} sockets",
                self.connections
            );
            Ok(())
        })
    }
}

/// Sends `each` requests over each connection, on all connections at the same time.
fn leg(runners: &mut [Runner], pages: &[Page], each: u64) -> Result<()> {
    thread::scope(|scope| {
        let running: Vec<_> = runners
            .iter_mut()
            .map(|runner| scope.spawn(move || (0..each).try_for_each(|_| runner.ask(pages))))
            .collect();
        running.into_iter().try_for_each(|one| {
            let ran = one.join();
            ran.map_err(|_| anyhow!("a connection's thread panicked"))?
        })
    })
}

impl Runner {
    fn ask(&mut self, pages: &[Page]) -> Result<()> {
        let page = &pages[(self.began + self.asked) % pages.len()];
        page.ask(&mut self.stream).with_context(|| {
            let port = self.stream.local_addr().map_or(0, |local| local.port());
            format!("port {port}, request {} ({})", self.asked, page.path)
        })?;
        self.asked += 1;
        Ok(())
    }
}

impl Page<'_> {
    fn ask(&self, stream: &mut TcpStream) -> Result<()> {
        stream.write_all(self.request.as_bytes())?;
        let (head, body) = read_response(stream)?;
        ensure!(head.starts_with("HTTP/1.1 200 "), "the answer is {head}");
        ensure!(
            head.lines().any(|line| line == self.served_by),
            "not {}, but {head}",
            self.served_by
        );
        ensure!(
            body == self.body,
            "{} bytes, and not the page's {}",
            body.len(),
            self.body.len()
        );
        Ok(())
    }
}

/// The counters of all nodes: a packet that was misrouted shows in a counter of its own.
fn what_nodes_counted(world: &World) -> String {
    let hosts = world.hosts_with("node");
    (hosts.iter())
        .map(|host| {
            let counted = world.counters(host).map_or_else(
                |error| format!("  unknown: {error:#}\n"),
                |counters| shown(&counters),
            );
            let resets = own_resets(&world.lab, host);
            let resets = resets.map_or(String::new(), |sent| format!("  RSTs to clients {sent}\n"));
            format!("\n{host}:\n{counted}{resets}")
        })
        .collect()
}

fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: cluster\r\n\r\n")
}

fn file(world: &World, name: &str) -> Result<Vec<u8>> {
    let (_, body) = world.lab.within("client", || {
        let mut stream = connect(None, 80)?;
        stream.write_all(request(&format!("/{name}")).as_bytes())?;
        read_response(&mut stream)
    })??;
    let path = world.scratch.path().join(name);
    std::fs::write(&path, &body)?;
    has_bytes_of(&path, name).with_context(|| format!("/{name}"))?;
    Ok(body)
}

/// Empties the servers' access logs. Servers append to them, so they can go on logging.
fn empty_logs(world: &World) -> Result<()> {
    for host in world.hosts_with("nginx") {
        let path = world.log_path(&host, "access")?;
        let log = File::options().write(true).open(&path);
        log.and_then(|log| log.set_len(0))
            .with_context(|| format!("cannot empty {}", path.display()))?;
    }
    Ok(())
}
