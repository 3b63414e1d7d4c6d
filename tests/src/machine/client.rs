//! The client, which runs in a machine. Each of its connections asks for all pages in turn, the next one as soon as an
//! answer is there, and compares the body with the page.

use std::collections::BTreeMap;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::step::clients::http::{connect, get, read_response, served_by};
use crate::step::clients::page::Page;

/// The directory of the pages, the same in every machine.
const PAGES: &str = "/srv/www";

/// The client's command line: `PATH[,PATH]... CONNECTIONS PAUSE COUNT|FILE [PORT]`.
struct Orders {
    paths: Vec<String>,
    connections: usize,
    /// The pause after each answer.
    pause: Duration,
    until: Until,
    /// The port of the cluster address that the client asks.
    port: u16,
}

enum Until {
    /// The client ends when all connections together have sent so many requests.
    Count(usize),
    /// The client ends when this file exists.
    File(PathBuf),
}

/// The results of a client.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// Answers that came whole and right.
    pub right: usize,
    /// Right answers, by the name of the server that gave them.
    pub by_server: BTreeMap<String, usize>,
    /// Right answers whose server is another one than that of the previous answer on the same connection.
    pub changes: usize,
    /// Right answers whose server is another one than the path names. A connection stays with its owner if a packet
    /// came late or twice, because it is then uncertain whether a request begins.
    pub by_others: usize,
    /// Connections that were made.
    pub connections: usize,
    /// The longest time that a right answer took, in milliseconds.
    pub longest_ms: u64,
    /// The time from the first request to the last answer, in seconds.
    pub seconds: f64,
    /// Requests whose answer did not come or was wrong.
    pub failed: Vec<Failure>,
}

/// A request that got no right answer.
#[derive(Debug, Serialize, Deserialize)]
pub struct Failure {
    /// The path, the time until the failure, and the error.
    pub what: String,
    /// The server of the previous answer on the connection.
    pub server: Option<String>,
    /// When it failed, in seconds since the client began.
    pub at: f64,
}

struct Connection {
    stream: TcpStream,
    server: Option<String>,
}

/// Runs the client by its command line, and returns its report as JSON.
///
/// # Errors
/// The command line is wrong, or a page is missing.
pub fn run(arguments: impl Iterator<Item = String>) -> Result<String> {
    let orders = Orders::parse(&arguments.collect::<Vec<_>>())?;
    let pages: Vec<Page> = (orders.paths.iter())
        .map(|path| page(path))
        .collect::<Result<_>>()?;
    let begun = Instant::now();
    let (sent, ended) = (AtomicUsize::new(0), AtomicBool::new(false));
    let mut report = Report::default();
    std::thread::scope(|scope| {
        let (orders, pages, sent, ended) = (&orders, &pages, &sent, &ended);
        let clients: Vec<_> = (0..orders.connections)
            .map(|number| scope.spawn(move || client(number, orders, pages, begun, sent, ended)))
            .collect();
        if let Until::File(file) = &orders.until {
            while !file.exists() {
                std::thread::sleep(Duration::from_millis(100));
            }
            ended.store(true, Relaxed);
        }
        for client in clients {
            report.add(client.join().unwrap_or_default());
        }
    });
    report.seconds = begun.elapsed().as_secs_f64();
    Ok(serde_json::to_string(&report)?)
}

/// Runs one client: it uses one connection after the other until the orders are carried out.
fn client(
    number: usize,
    orders: &Orders,
    pages: &[Page],
    begun: Instant,
    sent: &AtomicUsize,
    ended: &AtomicBool,
) -> Report {
    let mut report = Report::default();
    let mut connection = None;
    for page in pages.iter().cycle().skip(number % pages.len()) {
        match orders.until {
            Until::Count(count) if sent.fetch_add(1, Relaxed) >= count => break,
            Until::File(_) if ended.load(Relaxed) => break,
            _ => {}
        }
        let asked = Instant::now();
        let before = (connection.as_ref()).and_then(|one: &Connection| one.server.clone());
        match ask(&mut connection, orders.port, page, &mut report) {
            Ok(server) => {
                report.right += 1;
                report.changes += usize::from(before.is_some_and(|before| before != server));
                *report.by_server.entry(server).or_default() += 1;
                let took = u64::try_from(asked.elapsed().as_millis()).unwrap_or(u64::MAX);
                report.longest_ms = report.longest_ms.max(took);
            }
            Err(error) => {
                connection = None;
                report.failed.push(Failure {
                    what: format!("{}, after {:.1?}: {error:#}", page.path, asked.elapsed()),
                    server: before,
                    at: begun.elapsed().as_secs_f64(),
                });
                // Asking again at once is useless if nobody answers.
                std::thread::sleep(Duration::from_millis(200));
            }
        }
        std::thread::sleep(orders.pause);
    }
    report
}

/// Asks for a page and checks the answer. Returns the server's name.
fn ask(
    connection: &mut Option<Connection>,
    port: u16,
    page: &Page,
    report: &mut Report,
) -> Result<String> {
    let connection = match connection {
        Some(connection) => connection,
        None => {
            report.connections += 1;
            connection.insert(Connection {
                stream: connect(None, port)?,
                server: None,
            })
        }
    };
    let stream = &mut connection.stream;
    stream.set_read_timeout(Some(Duration::from_secs(120)))?;
    get(stream, &page.path)?;
    let (head, body) = read_response(stream)?;
    let first = head.lines().next().unwrap_or_default();
    ensure!(head.starts_with("HTTP/1.1 200 "), "the answer is {first:?}");
    let server = served_by(&head).context("the answer does not say whose it is")?;
    connection.server = Some(server.to_owned());
    ensure!(
        body == page.body,
        "{} bytes from {server} are not the page's {}",
        body.len(),
        page.body.len()
    );
    report.by_others += usize::from(page.server.as_deref().is_some_and(|named| named != server));
    Ok(server.to_owned())
}

fn page(path: &str) -> Result<Page> {
    let name = Path::new(path).file_name().unwrap_or_default();
    Page::from_file(path, &Path::new(PAGES).join(name))
}

impl Orders {
    fn parse(words: &[String]) -> Result<Orders> {
        let (words, port) = match words {
            [words @ .., port] if words.len() == 4 => (words, port.parse()?),
            words => (words, 80),
        };
        let [paths, connections, pause, until] = words else {
            bail!("usage: client PATH[,PATH]... CONNECTIONS PAUSE COUNT|FILE [PORT]");
        };
        let until = match until.parse() {
            Ok(count) => Until::Count(count),
            Err(_) => Until::File(until.into()),
        };
        Ok(Orders {
            paths: paths.split(',').map(str::to_owned).collect(),
            connections: connections.parse()?,
            pause: humantime::parse_duration(pause)?,
            until,
            port,
        })
    }
}

impl Report {
    fn add(&mut self, other: Report) {
        self.right += other.right;
        for (server, count) in other.by_server {
            *self.by_server.entry(server).or_default() += count;
        }
        self.changes += other.changes;
        self.by_others += other.by_others;
        self.connections += other.connections;
        self.longest_ms = self.longest_ms.max(other.longest_ms);
        self.failed.extend(other.failed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read() -> Result<()> {
        let words = ["/ds1/4k,/4k", "8", "10ms", "/run/stop"].map(str::to_owned);
        let orders = Orders::parse(&words)?;
        assert_eq!((orders.paths.len(), orders.connections), (2, 8));
        assert!(matches!(orders.until, Until::File(_)));
        assert_eq!(orders.port, 80);
        let words: Vec<String> = words.into_iter().chain(["8080".into()]).collect();
        assert_eq!(Orders::parse(&words)?.port, 8080);
        assert!(Orders::parse(&words[..3]).is_err());
        Ok(())
    }
}
