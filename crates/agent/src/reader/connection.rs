//! Reads the request with which one connection begins, and has the connection go on or answers it.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::Arc;
use std::time::Duration;

use baton_abi::{
    DOOR_BROKEN, DOOR_NOBODY, DOOR_STAMPED, Door, HaveRead, NO_POOL, READ_ANSWERS, READ_CHUNKED,
    READ_SWITCHES, TcbKey,
};
use baton_net::client_frame::{PIECE, Stream};
use nix::sys::socket::{MsgFlags, recv};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use super::delivery::{Outcome, SOON, given_up, see_received, send};
use super::keeping::Given;
use super::program::{Program, Served};
use super::store::Store;
use crate::client::Ends;
use crate::http::answer::{self, Answer};
use crate::http::asked::{Asked, Protocol};
use crate::http::verdict::{Extent, LONGEST, Verdict, hide_http2, judge, judge_tls, requests};
use crate::position;

/// The program has to let a connection go on within this time. After that the agent answers.
const GIVES_UP: Duration = Duration::from_secs(3);

/// The longest pause between two tries, until the program has let the connection go on.
const LATE: Duration = Duration::from_millis(100);

pub(super) async fn read(
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
        served: program.served(ends.cluster),
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
    /// The service that it is to. `None`: nobody answers there anymore.
    served: Option<Served>,
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
        let Some(served) = self.served else {
            return self.answer(Answer::Nobody).await;
        };
        let patience = served.head_timeout;
        // A connection may come here idle. It may stay so for as long as a head may take.
        if timeout(patience, self.client.readable()).await.is_err() {
            answer::end(self.client).await?;
            return Ok(Outcome::Answered);
        }
        let Ok(judged) = timeout(patience, self.await_head()).await else {
            return self.end_late().await;
        };
        let (asked, head, body) = match judged? {
            Verdict::Give { asked, head, body } => (asked, head, body),
            Verdict::Answer(answer) => return self.answer(answer).await,
            // The client has ended before its head was whole. Servers close such a connection in order and without an
            // answer.
            Verdict::Wait => {
                answer::end(self.client).await?;
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        };
        // Before the routes are known, nobody may guess.
        let Some(lead) = self.program.lead(served.id, &asked) else {
            return self.answer(Answer::Nobody).await;
        };
        let switches = match &asked {
            Asked::Tls(_) if lead.route.is_none() && served.refuses_unknown_names => {
                return self.answer(Answer::UnknownName).await;
            }
            Asked::Tls(_) => false,
            Asked::Http(request) => request.asks_to_switch(),
        };
        let path = lead.path.unwrap_or_default();
        let is_chunked = body == Extent::Chunked;
        let (body, large) = match body {
            Extent::Bytes(bytes) => (bytes, 0),
            Extent::Large(bytes) => (0, bytes),
            Extent::Chunked => (0, 0),
        };
        let flag = |set: bool, flag: u32| if set { flag } else { 0 };
        let flags = flag(switches, READ_SWITCHES) | flag(is_chunked, READ_CHUNKED);
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

    fn protocol(&self) -> Protocol {
        self.served.map_or(Protocol::Http, |served| served.protocol)
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
        let protocol = self.protocol();
        // From now on the program lets everything through, only to be thrown away.
        self.program.tell(
            self.client.as_fd(),
            &HaveRead {
                flags: READ_ANSWERS as u16, // a bit
                ..HaveRead::default()
            },
        )?;
        answer.give(self.client, protocol).await?;
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
                    let begins = std::mem::replace(&mut had, come.text.len());
                    self.judge(&come.text, begins)
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

    /// Decides about the request that begins with `text`, of which the part before `begins` was judged before.
    fn judge(&self, text: &[u8], begins: usize) -> Verdict {
        match self.protocol() {
            Protocol::Tls => judge_tls(text),
            // A head ends only where a line ends.
            Protocol::Http if text[begins..].contains(&b'\n') || text.len() >= LONGEST => {
                judge(text)
            }
            Protocol::Http => Verdict::Wait,
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
                let protocol = self.protocol();
                if let (Protocol::Http, Some(head)) =
                    (protocol, come.text.get_mut(..read.head as usize))
                {
                    hide_http2(head);
                }
                let stream = self.stream(&door);
                given = frames(&stream, self.begin, &come, has_ended, protocol);
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

/// Returns frames for all that has come. Each HTTP request begins a frame.
fn frames(stream: &Stream, begin: u32, come: &Come, has_ended: bool, protocol: Protocol) -> Given {
    let (mut frames, mut seq) = (Vec::new(), begin);
    let requests = match protocol {
        Protocol::Http => requests(&come.text),
        Protocol::Tls => vec![come.text.as_slice()],
    };
    let mut requests = requests.into_iter().peekable();
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
