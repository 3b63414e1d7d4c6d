//! Short requests over connections that stay open. Every answer is compared, and its data server checked.

use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use serde::Deserialize;

use super::super::http::{connect, get, read_response, served_by};
use super::super::page::Page;
use super::running::Orders;
use super::tally::{Failure, Tally};
use crate::span::Span;
use crate::world::World;

/// Starts connections, each of which asks for all these pages in turn.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requests {
    /// Files of the lab: any data server may answer /4k, and only dsN may answer /dsN/4k.
    paths: Vec<String>,
    #[serde(default = "four")]
    connections: usize,
    /// The pause after each answer. "0s" asks as fast as the machine can.
    #[serde(default = "a_moment")]
    pause: Span,
}

/// A complete answer, and whether it is right.
enum Answer {
    Right,
    /// The answer of another data server, by its name.
    OfAnother(String),
    /// A body that is not the page's, by its number of bytes.
    Wrong(usize),
}

/// A connection, and what its client knows.
struct Connection {
    stream: TcpStream,
    /// The data server that gave the last answer.
    owner: Option<String>,
}

impl Requests {
    /// Starts the connections.
    ///
    /// # Errors
    /// A page is not one of the lab's files.
    pub fn begin(
        &self,
        world: &World,
        orders: &Arc<Orders>,
    ) -> Result<Vec<(String, thread::JoinHandle<Tally>)>> {
        let pages = self.paths.iter().map(|path| Page::new(path));
        let pages = Arc::new(pages.collect::<Result<Vec<_>>>()?);
        let clients = (0..self.connections).map(|number| {
            let (pages, orders) = (Arc::clone(&pages), Arc::clone(orders));
            let (lab, pause) = (world.lab.clone(), self.pause);
            let client = move || {
                let work = || run(&pages, number, pause, &orders);
                lab.within("client", work).unwrap_or_else(|error| {
                    let failure = Failure {
                        servers: Vec::new(),
                        never_allowed: true,
                        what: error.to_string(),
                    };
                    let mut tally = Tally::default();
                    tally.failed.push(failure);
                    tally
                })
            };
            (format!("connection {number}"), thread::spawn(client))
        });
        Ok(clients.collect())
    }
}

/// Runs one client. If its connection fails, it makes another one.
fn run(pages: &[Page], number: usize, pause: Span, orders: &Orders) -> Tally {
    let mut tally = Tally::default();
    let mut connection = None;
    for page in pages.iter().cycle().skip(number % pages.len()) {
        let asked = Instant::now();
        let mut wrong = |connection: &mut Option<Connection>, what: String| {
            tally.failed.push(Failure {
                servers: servers(connection.take(), page),
                never_allowed: true,
                what: format!("{}: {what}", page.path),
            });
        };
        match ask(&mut connection, page) {
            Ok(Answer::Wrong(bytes)) => {
                let what = format!("{bytes} bytes that are not the page's {}", page.body.len());
                wrong(&mut connection, what);
            }
            Ok(Answer::OfAnother(server)) => {
                wrong(&mut connection, format!("it is {server:?}'s answer"));
            }
            Ok(Answer::Right) => {
                tally.done += 1;
                tally.bytes += page.body.len() as u64;
                tally.waits.add(orders.phases.now(), asked.elapsed());
            }
            Err(error) => {
                let error = error.context(format!("{}, after {:.1?}", page.path, asked.elapsed()));
                tally.fail(servers(connection.take(), page), &error);
            }
        }
        if orders.ended() {
            break;
        }
        thread::sleep(pause.0);
    }
    tally
}

/// Asks for a page and compares the answer.
fn ask(connection: &mut Option<Connection>, page: &Page) -> Result<Answer> {
    let Connection { stream, owner } = match connection {
        Some(connection) => connection,
        None => connection.insert(Connection {
            stream: connect(None, 80)?,
            owner: None,
        }),
    };
    get(stream, &page.path)?;
    let (head, body) = read_response(stream)?;
    *owner = served_by(&head).map(str::to_owned);
    if !head.starts_with("HTTP/1.1 200 ") {
        let first = head.lines().next().unwrap_or_default();
        return Err(anyhow!("the answer is {first:?}"));
    }
    if body != page.body {
        return Ok(Answer::Wrong(body.len()));
    }
    match &page.server {
        Some(server) if page.server != *owner => {
            let by = owner
                .clone()
                .unwrap_or_else(|| format!("nobody, not {server}"));
            Ok(Answer::OfAnother(by))
        }
        _ => Ok(Answer::Right),
    }
}

fn servers(connection: Option<Connection>, page: &Page) -> Vec<String> {
    let owner = connection.and_then(|connection| connection.owner);
    owner.into_iter().chain(page.server.clone()).collect()
}

impl Tally {
    fn fail(&mut self, servers: Vec<String>, error: &anyhow::Error) {
        self.failed.push(Failure {
            servers,
            never_allowed: false,
            what: format!("{error:#}"),
        });
    }
}

fn four() -> usize {
    4
}

fn a_moment() -> Span {
    Span(Duration::from_millis(10))
}
