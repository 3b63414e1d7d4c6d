//! Reads requests that one packet does not decide: heads in several segments, targets that need normalising, old
//! spellings.
//!
//! ```text
//!  client --part of a head--> this agent's socket, adopted where the request begins
//!  client --the rest of it--> the same; nothing is taken out of it, and nothing is said
//!  agent  --the request, as frames of the client--> the data server's program --here--> the local server's socket
//!                                                                             \-------> another data server
//! ```
//!
//! The agent has a connection for milliseconds. Nothing of a response has been sent, so the connection is as quiet as
//! it was before the request's first byte. Therefore the program can let it go on from there, with another socket
//! (`bpf/data_server/agent/reader.h`). What has been acknowledged to the client is owed to that socket. The agent takes
//! nothing out of its own socket, so this is never more than the program lets through. The agent sends it until the new
//! socket has it; if the agent's process ends before, the next process does so (`store`). The server reads the request
//! as its client wrote it, and answers it directly.

mod answer;
mod keeping;
mod store;
mod verdict;

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use baton_abi::{
    DOOR_BROKEN, DOOR_NOBODY, DOOR_STAMPED, Door, HaveRead, Kept, NO_POOL, READ_ANSWERS,
    READ_CHUNKED, READ_SWITCHES, TcbKey,
};
use baton_core::rules::Request;
use baton_net::Result;
use baton_net::client_frame::{PIECE, Stream};
use nix::sys::socket::{MsgFlags, recv};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use self::answer::Answer;
use self::keeping::{Given, Keeping, State};
use self::store::Left;
pub use self::store::Store;
use self::verdict::{Extent, LONGEST, Verdict, hide_http2, judge, requests};
use crate::client::{Ends, Services};
use crate::listener::Listener;
use crate::position;

/// The program has to let a connection go on within this time. After that the agent answers.
const GIVES_UP: Duration = Duration::from_secs(3);

/// The first pause between two tries.
const SOON: Duration = Duration::from_millis(1);
/// The longest pause between two tries, until the program has let the connection go on.
const LATE: Duration = Duration::from_millis(100);
/// The longest pause between two tries, until the connection's next socket has all data.
const LATEST: Duration = Duration::from_secs(1);

/// This many packets are enough for the connection server to find out that nobody has a connection: it asks all data
/// servers twice, and lets some seconds pass.
const PROBES: usize = 8;

/// The pause after these packets. As many follow with this pause, in case that a data server could not be asked, or that
/// another connection server has taken over meanwhile.
const PROBES_AGAIN: Duration = Duration::from_secs(10);

/// Receive buffer of the agent's sockets, bytes. Linux doubles it, and uses between half and nine tenths of that for
/// the window, which is more than the program lets through.
const BUFFER: usize = 1 << 17;

/// Where a request goes, by this node's routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lead {
    /// The route that the request takes. `None`: no route takes it, and its pool is the service's own.
    pub route: Option<Route>,
    /// The hash of the request's normalised path.
    pub path: Option<u64>,
}

/// A route that leads to a pool, both as the numbers by which the program knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Number of the route.
    pub number: u16,
    /// Number of the route's pool.
    pub pool: u16,
}

/// The data server's program, and the routes that decide where requests go.
pub trait Program: Send + Sync + 'static {
    /// Returns the door of the connection that this socket has.
    ///
    /// # Errors
    /// The program's maps cannot be read.
    fn door(&self, socket: BorrowedFd<'_>, flow: &TcbKey) -> io::Result<Option<Door>>;

    /// How long clients of this cluster address and port may take for the head of a request. `None`: nobody answers
    /// there anymore.
    fn head_timeout(&self, cluster: SocketAddrV4) -> Option<Duration>;

    /// Where a request to this cluster address and port goes. `None`: that is not known yet.
    fn lead(&self, cluster: SocketAddrV4, request: &Request) -> Option<Lead>;

    /// Tells the program what was read of the request with which this socket's connection begins.
    ///
    /// # Errors
    /// The program's maps cannot be written.
    fn tell(&self, socket: BorrowedFd<'_>, read: &HaveRead) -> io::Result<()>;

    /// Tells the program that this node keeps, from the sequence number `begin` on, what was read of the connection,
    /// until the connection's next socket has it.
    ///
    /// # Errors
    /// The program's maps cannot be written.
    fn keep(&self, flow: &TcbKey, begin: u32) -> io::Result<()>;

    /// What is known of the connection's next socket, on whatever data server it is. `None`: there was no room for the
    /// connection.
    ///
    /// # Errors
    /// The program's maps cannot be read.
    fn kept(&self, flow: &TcbKey) -> io::Result<Option<Kept>>;

    /// The MAC address of the interface by which frames are sent in.
    fn mac(&self) -> [u8; 6];

    /// Sends a client's frame in, as if it came from the network.
    ///
    /// # Errors
    /// The kernel refuses it.
    fn send(&self, frame: &[u8]) -> io::Result<()>;

    /// Probes the client whose frame this is. The client answers with an acknowledgement of its position, which takes
    /// the way of all that it sends.
    ///
    /// # Errors
    /// The kernel refuses it.
    fn probe(&self, frame: &[u8]) -> io::Result<()>;
}

baton_core::shared_counters! {
    /// Counts what the reader has done, for the metrics.
    pub struct Counters("reader_") {
        /// Connections that were accepted so that their requests could be read.
        accepted,
        /// Accepted connections that were to no service, because somebody on this host connected to the listener
        /// itself. They were reset.
        foreign,
        /// Accepted connections that went on to a server with their request.
        given,
        /// Accepted connections that were answered here, with an error.
        answered,
        /// Accepted connections that ended before their request was whole, or broke.
        failed,
    }
}

/// What has become of a connection.
enum Outcome {
    Given,
    Answered,
}

/// The listener for connections whose requests are to be read, and what serves them.
pub struct Reader {
    listener: Listener,
    program: Arc<dyn Program>,
    services: watch::Receiver<Services>,
    store: Arc<Store>,
    counters: Arc<Counters>,
}

impl Reader {
    /// Makes a reader that listens on 127.0.0.1, at a port of the kernel's choice.
    ///
    /// # Errors
    /// [`baton_net::Error::System`].
    pub fn bind(
        program: Arc<dyn Program>,
        services: watch::Receiver<Services>,
        store: Store,
    ) -> Result<Self> {
        let listener = Listener::bind("requests that are to be read")?;
        listener.hold_at_most(BUFFER)?;
        Ok(Self {
            listener,
            program,
            services,
            store: Arc::new(store),
            counters: Arc::default(),
        })
    }

    /// The port that the reader listens on, for `settings.reader_port` of the data server program.
    pub fn port(&self) -> u16 {
        self.listener.port()
    }

    /// The reader's counters, which stay readable while it runs.
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.counters)
    }

    /// Reads requests until this future is dropped, which ends every connection. First it takes over what an earlier
    /// process kept.
    pub async fn run(self) {
        let Self {
            listener,
            program,
            services,
            store,
            counters,
        } = self;
        let mut left_over = JoinSet::new();
        match store.left() {
            Ok(all) => {
                for left in all {
                    left_over.spawn(see_left(left, Arc::clone(&program), Arc::clone(&store)));
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot read the requests that an earlier process kept")
            }
        }
        let serve = |client| {
            let ends = Ends::of(&client, &services);
            let (program, store) = (Arc::clone(&program), Arc::clone(&store));
            serve(client, ends, program, store, Arc::clone(&counters))
        };
        listener.accept(serve).await;
    }
}

async fn serve(
    client: TcpStream,
    ends: Option<Ends>,
    program: Arc<dyn Program>,
    store: Arc<Store>,
    counters: Arc<Counters>,
) {
    counters.accepted.fetch_add(1, Relaxed);
    let Some(ends) = ends else {
        counters.foreign.fetch_add(1, Relaxed);
        return;
    };
    let counter = match read(client, ends, program, store).await {
        Ok(Outcome::Given) => &counters.given,
        Ok(Outcome::Answered) => &counters.answered,
        Err(error) => {
            tracing::debug!(?ends, %error, "the agent could not read a request");
            &counters.failed
        }
    };
    counter.fetch_add(1, Relaxed);
}

/// Sends in what an earlier process kept of a connection.
async fn see_left(left: Left, program: Arc<dyn Program>, store: Arc<Store>) {
    let Left { flow, begin, given } = left;
    // The program's maps may be new, and not know this connection.
    let known = program.kept(&flow).and_then(|kept| match kept {
        Some(_) => Ok(()),
        None => program.keep(&flow, begin),
    });
    let seen = match known {
        Ok(()) => see_received(&*program, &flow, &given).await,
        Err(error) => Err(error),
    };
    store.remove(&flow);
    if let Ok(State::Gone) = seen {
        make_it_speak(&*program, &given).await;
    } else if let Err(error) = seen.and_then(given_up) {
        tracing::debug!(%error, "a request that an earlier process had read did not reach its server");
    }
}

/// Probes the client of a connection that was found nowhere. Either the connection has ended, or it was lost with an
/// earlier process. In the second case its client waits, because all that it sent was acknowledged. Only the client
/// knows which case it is: if it still has the connection, the connection server resets it, like every connection that
/// nobody has.
async fn make_it_speak(program: &dyn Program, given: &Given) {
    for pause in [[LATEST; PROBES], [PROBES_AGAIN; PROBES]].concat() {
        each(given.last(), |frame| program.probe(frame));
        sleep(pause).await;
    }
}

async fn read(
    client: TcpStream,
    ends: Ends,
    program: Arc<dyn Program>,
    store: Arc<Store>,
) -> io::Result<Outcome> {
    let flow = TcbKey::of(ends.client, ends.cluster);
    let door = door(&*program, &client, &flow)?;
    let connection = Connection {
        client,
        ends,
        flow,
        begin: door.request,
        send: door.counted,
        program,
        store: Arc::clone(&store),
    };
    let outcome = match u32::from(door.flags) {
        flags if flags & DOOR_BROKEN != 0 => connection.answer(Answer::Bad).await,
        flags if flags & DOOR_NOBODY != 0 => connection.answer(Answer::Nobody).await,
        _ => connection.read().await,
    };
    store.remove(&flow);
    outcome
}

/// A connection whose request is read.
struct Connection {
    client: TcpStream,
    ends: Ends,
    flow: TcbKey,
    /// Sequence number of the request's first byte, which is the first that this socket has received.
    begin: u32,
    /// Sequence number of the first byte that this socket would send.
    send: u32,
    program: Arc<dyn Program>,
    store: Arc<Store>,
}

/// All that has come from the request's first byte on.
struct Come {
    text: Vec<u8>,
    /// How many sequence numbers it takes.
    received: u32,
}

impl Come {
    /// Whether the client sends no more. `None`: the text is shorter than the sequence numbers say.
    fn has_ended(&self) -> Option<bool> {
        // The text fits in a receive buffer, so its length fits in 32 bits.
        match self.received.wrapping_sub(self.text.len() as u32) {
            0 => Some(false),
            // A FIN has a sequence number of its own.
            1 => Some(true),
            _ => None,
        }
    }
}

impl Connection {
    async fn read(self) -> io::Result<Outcome> {
        let Some(patience) = self.program.head_timeout(self.ends.cluster) else {
            return self.answer(Answer::Nobody).await;
        };
        // A connection may come here idle. It may stay so for as long as a head may take.
        if timeout(patience, self.client.readable()).await.is_err() {
            answer::end(self.client).await?;
            return Ok(Outcome::Answered);
        }
        let Ok(judged) = timeout(patience, self.await_head()).await else {
            return self.end_late().await;
        };
        let (request, head, body) = match judged? {
            Verdict::Give {
                request,
                head,
                body,
            } => (request, head, body),
            Verdict::Answer(answer) => return self.answer(answer).await,
            // The client has ended before its head was whole. Servers close such a connection in order and without an
            // answer.
            Verdict::Wait => {
                answer::end(self.client).await?;
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        };
        // Before the routes are known, nobody may guess.
        let Some(lead) = self.program.lead(self.ends.cluster, &request) else {
            return self.answer(Answer::Nobody).await;
        };
        let path = lead.path.unwrap_or_default();
        let is_chunked = body == Extent::Chunked;
        let (body, large) = match body {
            Extent::Bytes(bytes) => (bytes, 0),
            Extent::Large(bytes) => (0, bytes),
            Extent::Chunked => (0, 0),
        };
        let flag = |set: bool, flag: u32| if set { flag } else { 0 };
        let flags = flag(request.asks_to_switch(), READ_SWITCHES) | flag(is_chunked, READ_CHUNKED);
        self.give(HaveRead {
            head,
            body,
            large: [large as u32, (large >> 32) as u32], // its halves
            flags: flags as u16,                         // two bits
            pool: lead.route.map_or(NO_POOL as u16, |route| route.pool), // 65535
            route: lead.route.map_or(0, |route| route.number),
            path: [path as u32, (path >> 32) as u32], // its halves
            ..HaveRead::default()
        })
        .await
    }

    /// Ends a connection whose head is not whole in time. Servers skip line ends between requests, so a client that has
    /// sent nothing else has asked for nothing and gets no answer.
    async fn end_late(self) -> io::Result<Outcome> {
        let is_line_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
        if !self.look()?.text.iter().all(is_line_end) {
            return self.answer(Answer::TooSlow).await;
        }
        answer::end(self.client).await?;
        Ok(Outcome::Answered)
    }

    async fn answer(self, answer: Answer) -> io::Result<Outcome> {
        // From now on the program lets everything through, only to be thrown away.
        self.program.tell(
            self.client.as_fd(),
            &HaveRead {
                flags: READ_ANSWERS as u16, // a bit
                ..HaveRead::default()
            },
        )?;
        answer.give(self.client).await?;
        Ok(Outcome::Answered)
    }

    /// Waits until the head is whole, or can no longer become whole.
    async fn await_head(&self) -> io::Result<Verdict> {
        let mut had = 0;
        loop {
            let ready = self.client.ready(Interest::READABLE).await?;
            // Data that came before a RST can still be read, so reading alone does not show the RST.
            if let Some(error) = self.client.take_error()? {
                return Err(error);
            }
            let look = || {
                let come = self.look()?;
                let is_more = come.text.len() > had;
                is_more
                    .then_some(come)
                    .ok_or(io::ErrorKind::WouldBlock.into())
            };
            let verdict = match self.client.try_io(Interest::READABLE, look) {
                Ok(come) => {
                    // A head ends only where a line ends.
                    let ends_line = come.text[had..].contains(&b'\n');
                    had = come.text.len();
                    if ends_line || had >= LONGEST {
                        judge(&come.text)
                    } else {
                        Verdict::Wait
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Verdict::Wait,
                Err(error) => return Err(error),
            };
            // The socket of a client that sends no more is ready forever.
            if verdict != Verdict::Wait || ready.is_read_closed() {
                return Ok(verdict);
            }
        }
    }

    /// Returns what has come, and leaves it in the socket.
    fn look(&self) -> io::Result<Come> {
        let received = position::received(&self.client)?;
        let mut text = vec![0; received as usize];
        let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
        // Of an empty buffer the kernel says that it would wait for data.
        if !text.is_empty() {
            let bytes = recv(self.client.as_raw_fd(), &mut text, flags)?;
            text.truncate(bytes);
        }
        Ok(Come { text, received })
    }

    /// Sends the request to the program until the connection goes on, with this host's server or another data server.
    /// Whatever else has come meanwhile goes along.
    async fn give(self, mut read: HaveRead) -> io::Result<Outcome> {
        let until = Instant::now() + GIVES_UP;
        let mut pause = SOON;
        let mut given = Given::default();
        self.program.keep(&self.flow, self.begin)?;
        while Instant::now() < until {
            let mut come = match self.look() {
                Err(error) if is_reset(&error) && !given.frames.is_empty() => {
                    return given_up(see_received(&*self.program, &self.flow, &given).await?);
                }
                come => come?,
            };
            let door = door(&*self.program, &self.client, &self.flow)?;
            if u32::from(door.flags) & DOOR_NOBODY != 0 {
                return self.answer(Answer::Nobody).await;
            }
            if let Some(has_ended) = come.has_ended() {
                read.end = self.begin.wrapping_add(come.received);
                self.program.tell(self.client.as_fd(), &read)?;
                if let Some(head) = come.text.get_mut(..read.head as usize) {
                    hide_http2(head);
                }
                let stream = self.stream(&door);
                given = frames(&stream, self.begin, &come, has_ended);
                // If there is no room for the file, what is kept is lost with this process.
                if let Err(error) = self.store.put(&self.flow, &given) {
                    tracing::debug!(%error, "cannot write the file of a request that is kept");
                }
                send(&*self.program, given.missing(self.begin));
                if self.has_gone_on()? {
                    return given_up(see_received(&*self.program, &self.flow, &given).await?);
                }
            }
            sleep(pause).await;
            pause = (pause * 2).min(LATE);
        }
        if self.has_gone_on()? {
            return given_up(see_received(&*self.program, &self.flow, &given).await?);
        }
        // No server listens here, or the client does not stop sending.
        self.answer(Answer::Nobody).await
    }

    /// Whether the program has let the connection go on, for which it resets the agent's socket.
    fn has_gone_on(&self) -> io::Result<bool> {
        let error = self.client.take_error()?;
        Ok(error.is_some_and(|error| is_reset(&error)))
    }

    fn stream(&self, door: &Door) -> Stream {
        let is_stamped = u32::from(door.flags) & DOOR_STAMPED != 0;
        Stream {
            mac: self.program.mac(),
            client: self.ends.client,
            cluster: self.ends.cluster,
            ack: self.send,
            window: u16::from_be(door.be_window),
            // The program knows which timestamp to echo.
            stamps: is_stamped.then_some((door.tsval, 0)),
        }
    }
}

/// Sends in what is missing until the connection's socket, wherever that is by now, has all data. The client does not
/// send again what was acknowledged to it.
async fn see_received(program: &dyn Program, flow: &TcbKey, given: &Given) -> io::Result<State> {
    let mut keeping = Keeping::new(Instant::now(), given.end);
    let mut pause = SOON;
    // In most cases that socket has all data already, and the last frame is enough to show it.
    send(program, given.last());
    loop {
        sleep(pause).await;
        let Some(kept) = program.kept(flow)? else {
            return Err(io::Error::other(
                "there is no room to note what its server has received",
            ));
        };
        match keeping.look(Instant::now(), kept) {
            State::Missing => send(program, given.missing(kept.received)),
            state => return Ok(state),
        }
        pause = (pause * 2).min(LATEST);
    }
}

/// The outcome of a connection that was given away. A connection that is found nowhere was answered and has ended
/// before the agent noticed, or what is kept here of it is kept once more with a later request. If instead it was lost
/// with its data server, the connection server takes care of its client, as of all clients of a dead data server.
fn given_up(state: State) -> io::Result<Outcome> {
    match state {
        State::Done | State::Gone => Ok(Outcome::Given),
        State::Missing | State::Late => Err(io::Error::other(
            "its server has not received all of the request",
        )),
    }
}

fn send<'a>(program: &dyn Program, frames: impl Iterator<Item = &'a [u8]>) {
    each(frames, |frame| program.send(frame));
}

/// Does this with each frame. A frame that the kernel refuses is lost, as it may be on a wire: all that is sent here is
/// sent again.
fn each<'a>(frames: impl Iterator<Item = &'a [u8]>, does: impl Fn(&[u8]) -> io::Result<()>) {
    for frame in frames {
        if let Err(error) = does(frame) {
            tracing::debug!(%error, "a frame of a request that was read could not be sent");
        }
    }
}

/// Returns frames for all that has come. Each request begins a frame.
fn frames(stream: &Stream, begin: u32, come: &Come, has_ended: bool) -> Given {
    let (mut frames, mut seq) = (Vec::new(), begin);
    let mut requests = requests(&come.text).into_iter().peekable();
    while let Some(request) = requests.next() {
        let ends = has_ended && requests.peek().is_none();
        frames.extend(stream.frames(seq, request, PIECE, ends));
        // The length is small, and sequence numbers wrap around.
        seq = seq.wrapping_add(request.len() as u32);
    }
    Given {
        frames,
        end: begin.wrapping_add(come.received),
    }
}

fn door(program: &dyn Program, client: &TcpStream, flow: &TcbKey) -> io::Result<Door> {
    let door = program.door(client.as_fd(), flow)?;
    door.ok_or_else(|| io::Error::other("it is not known where its request begins"))
}

fn is_reset(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionReset
}
