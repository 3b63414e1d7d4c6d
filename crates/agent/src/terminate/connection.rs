//! One client's connection that has a session, until it ends or goes to another data server.

mod kernel;

use std::future::pending;
use std::io;
use std::mem::{replace, take};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use baton_tls::Received;
use socket2::SockRef;
use tokio::io::{AsyncWriteExt as _, ReadHalf, WriteHalf, split};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::either::Either;

use super::exchange::{Exchange, Forwarded, ServerEnd};
use super::judge::Judgement;
use super::kernel_tls::KernelTls;
use super::local_server::LocalServer;
use super::messages::Moving;
use super::server_connection::{Place, ServerStream, connect};
use super::socket::{STALL, end, read, read_if, read_now, reset, write_if};
use super::state::State;
use super::{Counters, Service};
use crate::client::{Ends, LINGERS};
use crate::http::answer::Answer;
use crate::http::hsts::append_with_hsts;

/// No more is read of one side while this many bytes of it wait for the other side. It holds the longest head.
const ROOM: usize = 128 << 10;
/// Buffers that are not larger are kept while a connection is idle: to make them anew for each request takes time.
const SMALL: usize = 8 << 10;
/// A connection takes at most this many bytes along that its client has sent. They must fit into a message of the daemon's.
const MOST_TAKEN: usize = 512 << 10;
/// A connection tries at most this often to move with a request, as when its client does not pause. Then the request is
/// relayed.
const TRIES: u8 = 4;
/// The time between two tries to move.
const STAYS: Duration = Duration::from_millis(10);

/// How a connection ended, if it did not break.
pub(super) enum End {
    /// Each response that began was sent to its end.
    Regular,
    /// It goes on at another data server.
    Moved,
    /// No session was begun.
    Refused,
}

/// A connection with a session.
pub(super) struct Connection<'a> {
    /// How the service is served, which a reload may change.
    services: watch::Receiver<Arc<Service>>,
    counters: &'a Counters,
    /// Changes when connections without a request are to leave.
    leave: watch::Receiver<()>,
    /// Whether it is known that the next request is for the server here.
    is_judged: bool,
    /// How often the connection has tried to move with its next request.
    tries: u8,
    ends: Ends,
    state: State,
    client: TcpStream,
    /// The server of the request that is under way, or was the last.
    place: Place,
    /// The local server as the settings named it when that request came.
    local: Arc<LocalServer>,
    /// The connection there, once it has been made.
    server: Option<(ReadHalf<ServerStream>, WriteHalf<ServerStream>)>,
    exchange: Exchange,
    to_server: Vec<u8>,
    /// Whether a request has been accepted just now.
    is_accepted: bool,
    /// The head of a request that can be sent once more, because its server's connection was kept from the one before.
    repeatable: Vec<u8>,
    from_server: Vec<u8>,
    /// Records that wait for the client to take them, or the data for them if the kernel makes them.
    client_out: Vec<u8>,
    /// By then the client must have taken some of them.
    stalls: Option<Instant>,
    /// Set if the kernel makes the client's records.
    kernel: Option<KernelTls>,
    /// Whether the kernel cannot pass on the response that is under way.
    reads_all: bool,
    client_has_ended: bool,
    /// Whether the server still takes what it is sent.
    server_reads: bool,
    /// Until then the head of the next request must have come.
    deadline: Option<Instant>,
}

/// What has happened on a connection.
enum Event {
    ClientSent(io::Result<usize>),
    ClientTook(io::Result<usize>),
    ServerSent(io::Result<usize>),
    ServerTook(io::Result<usize>),
    /// The rest of a response has passed unread.
    Passed,
    TooLate,
    Leave,
}

/// What has come of a try to move.
enum Left<'a> {
    /// The connection goes on at the other data server.
    Gone,
    /// It stays, because more of its client has come, or the other data server cannot take it.
    Stays(Box<Connection<'a>>),
    /// It has waited in vain for a daemon.
    Waited(Box<Connection<'a>>),
}

/// What becomes of a connection with its next request, if that does not go to the server here.
enum Departure {
    /// The agent gives this answer, and the connection ends.
    Answer(Answer),
    /// It goes to this data server.
    Move(Ipv4Addr),
}

impl<'a> Connection<'a> {
    /// Makes the connection of a client's socket and session.
    pub fn new(
        (services, counters): (watch::Receiver<Arc<Service>>, &'a Counters),
        client: TcpStream,
        ends: Ends,
        state: State,
    ) -> Self {
        let (mut leave, local) = {
            let service = services.borrow();
            (service.leave.clone(), Arc::clone(&service.server))
        };
        leave.mark_unchanged();
        Self {
            leave,
            is_judged: false,
            tries: 0,
            services,
            counters,
            ends,
            state,
            client,
            place: Place::Here,
            local,
            server: None,
            exchange: Exchange::default(),
            to_server: Vec::new(),
            is_accepted: false,
            repeatable: Vec::new(),
            from_server: Vec::new(),
            client_out: Vec::new(),
            kernel: None,
            reads_all: false,
            stalls: None,
            client_has_ended: false,
            server_reads: true,
            deadline: None,
        }
    }

    /// The connection is new: its first request must have come until `deadline`.
    pub fn that_begins(self, deadline: Instant) -> Self {
        let deadline = Some(deadline);
        Self { deadline, ..self }
    }

    /// The connection has come from another data server, whose agent has judged its request, if there is one.
    pub fn that_has_come(self) -> Self {
        let is_judged = !self.state.plain.is_empty();
        Self { is_judged, ..self }
    }

    /// Serves the connection to its end.
    pub async fn run(mut self) -> io::Result<End> {
        loop {
            let is_open = match self.open_records() {
                Ok(is_open) => is_open,
                Err(error) => return self.alert(error).await,
            };
            // The client sends its next request by another connection. One that has come is answered first.
            if self.state.session.must_end()
                && self.exchange.is_idle()
                && self.state.plain.is_empty()
            {
                return self.end().await;
            }
            match self.pass_on().await? {
                None => (),
                Some(Departure::Answer(answer)) => return self.answer(answer).await,
                Some(Departure::Move(next)) => match self.leave(next).await? {
                    Left::Gone => return Ok(End::Moved),
                    Left::Stays(stays) => {
                        self = *stays;
                        continue;
                    }
                    Left::Waited(stays) => return stays.answer(Answer::Nobody).await,
                },
            }
            if !is_open {
                // Half a request is of no use to the server.
                if self.exchange.awaits_client() {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                if self.exchange.is_idle() {
                    return self.end().await;
                }
                self.end_server_input().await;
            }
            let event = match self.long_response() {
                Some(unread) if self.client_out.is_empty() => self.pass_unread(unread).await,
                _ => None,
            };
            let event = match event {
                Some(event) => event,
                None => self.event().await,
            };
            match event {
                Event::Passed => (),
                // A client that breaks off between two requests has all it has asked for.
                Event::ClientSent(Err(_)) if self.exchange.is_idle() => return Ok(End::Regular),
                Event::ClientSent(read) => self.client_has_ended |= read? == 0,
                Event::ClientTook(written) => {
                    let written = written?;
                    self.client_out.drain(..written);
                    self.client_took(written)?;
                    self.stalls = None;
                }
                Event::ServerSent(Ok(1..)) => self.take_responses()?,
                Event::ServerSent(_) if self.exchange.goes_on_without_server() => {
                    self.leave_server();
                }
                Event::ServerSent(_) if self.repeat().await => (),
                Event::ServerSent(read) => return self.server_has_ended(read).await,
                Event::ServerTook(Ok(written)) => drop(self.to_server.drain(..written)),
                // The server may have answered before it stopped reading; its end says how that went.
                Event::ServerTook(Err(_)) => {
                    self.server_reads = false;
                    self.to_server.clear();
                }
                Event::Leave => {
                    if let Judgement::Elsewhere(next) = self.judge_idle() {
                        match self.leave(next).await? {
                            Left::Gone => return Ok(End::Moved),
                            Left::Stays(stays) | Left::Waited(stays) => self = *stays,
                        }
                        self.tries = 0;
                    }
                }
                Event::TooLate if self.state.plain.is_empty() => return self.end().await,
                Event::TooLate => return self.answer(Answer::TooSlow).await,
            }
        }
    }

    /// Takes the data out of the client's records. False once the client has said its last.
    fn open_records(&mut self) -> io::Result<bool> {
        let State {
            session,
            client_in,
            plain,
            ..
        } = &mut self.state;
        match session.receive(client_in, plain, &mut self.client_out) {
            Ok(Received::Open) => Ok(!self.client_has_ended),
            Ok(Received::Closed) => {
                self.client_has_ended = true;
                Ok(false)
            }
            Err(error) => {
                self.services.borrow().kinds.failed(&error);
                Err(io::Error::other(error))
            }
        }
    }

    /// Passes requests on to the server, to which it connects first if need be. Returns what else becomes of the
    /// connection, if the next request does not go there.
    async fn pass_on(&mut self) -> io::Result<Option<Departure>> {
        loop {
            let forwarded_for = self.local.forwarded_for(&self.ends);
            let State { plain, .. } = &mut self.state;
            match (self.exchange).forward(plain, forwarded_for, &mut self.to_server) {
                Forwarded::More | Forwarded::Waits => break,
                Forwarded::Answer(answer) => return Ok(Some(Departure::Answer(answer))),
                // The answer would be taken for more of the response that has begun.
                Forwarded::Broken if self.exchange.is_answering() => {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                Forwarded::Broken => return Ok(Some(Departure::Answer(Answer::Bad))),
                Forwarded::Judge(_) if take(&mut self.is_judged) => self.accept(Place::Here),
                Forwarded::Judge(head) => match self.judge(head).await {
                    Judgement::Here => self.accept(Place::Here),
                    Judgement::Elsewhere(next) if self.can_move() => {
                        return Ok(Some(Departure::Move(next)));
                    }
                    Judgement::Elsewhere(next) => self.accept(Place::Other(next)),
                    Judgement::Nobody => return Ok(Some(Departure::Answer(Answer::Nobody))),
                },
            }
        }
        self.set_deadline();
        if !self.to_server.is_empty() && self.server.is_none() {
            self.find_kept();
        }
        if take(&mut self.is_accepted) && self.server.is_some() && self.exchange.can_be_repeated() {
            self.repeatable.clone_from(&self.to_server);
        }
        if !self.to_server.is_empty() && self.server.is_none() && !self.connect().await {
            return Ok(Some(Departure::Answer(Answer::Nobody)));
        }
        if !self.server_reads {
            self.to_server.clear();
        }
        Ok(None)
    }

    /// Bounds the time before the first request, and in the head of each.
    fn set_deadline(&mut self) {
        let begins = self.exchange.is_idle() && !self.state.plain.is_empty();
        self.deadline = match self.deadline {
            Some(deadline) if self.server.is_none() && self.to_server.is_empty() || begins => {
                Some(deadline)
            }
            None if begins => Some(Instant::now() + self.services.borrow().head_timeout),
            _ => None,
        };
    }

    /// Goes on with the connection to the local server that this client had, if it was here before and the server has kept
    /// it.
    fn find_kept(&mut self) {
        let service = self.services.borrow();
        if self.place == Place::Here
            && let Some(cluster) = &service.cluster
            && let Some(server) = cluster.kept.take(self.state.id, &self.local)
        {
            self.server = Some(split(Either::Left(server)));
        }
    }

    /// Ends the connection to the server. What it has not taken of an earlier request must not begin a later one.
    fn leave_server(&mut self) {
        self.server = None;
        self.to_server.clear();
        self.server_reads = true;
    }

    /// Sends a request once more, by a new connection to its server, if the server has ended the one that was kept without
    /// an answer. It may have done so just before the request came. False if nothing can be sent again.
    async fn repeat(&mut self) -> bool {
        let head = take(&mut self.repeatable);
        if head.is_empty() || !self.exchange.can_be_repeated() {
            return false;
        }
        self.to_server = head;
        self.connect().await
    }

    /// Connects to the server. False if it cannot be reached.
    async fn connect(&mut self) -> bool {
        let service = self.services.borrow().clone();
        let server = connect(&service, &self.local, self.ends, self.place).await;
        self.server = server.ok().map(split);
        self.server_reads = true;
        self.server.is_some()
    }

    /// Finds out which data server is to answer the request whose head has this many bytes.
    async fn judge(&self, head: usize) -> Judgement {
        let service = self.services.borrow().clone();
        match &service.cluster {
            None => Judgement::Here,
            Some(cluster) => (cluster.judge.request(self.ends, &self.state.plain[..head])).await,
        }
    }

    /// Finds out which data server is to have the connection now, while it has no request.
    fn judge_idle(&self) -> Judgement {
        match &self.services.borrow().cluster {
            None => Judgement::Here,
            // It is asked again. Without a daemon nobody can have the connection move.
            Some(cluster) if !cluster.daemon.is_present() => Judgement::Here,
            Some(cluster) => cluster.judge.connection(self.ends),
        }
    }

    /// Whether the connection can move with the request that was read. Otherwise the request is relayed.
    fn can_move(&self) -> bool {
        let come = self.state.plain.len();
        self.tries < TRIES && come < MOST_TAKEN && !self.exchange.is_busy_sending(come)
    }

    /// The next request goes to this server.
    fn accept(&mut self, place: Place) {
        self.exchange.accept();
        self.tries = 0;
        self.is_accepted = true;
        self.reads_all = false;
        self.repeatable.clear();
        let local = Arc::clone(&self.services.borrow().server);
        let is_same = replace(&mut self.local, local).is_same(&self.local);
        if replace(&mut self.place, place) != place || !is_same {
            self.leave_server();
        }
        let counter = match place {
            Place::Here => &self.counters.requests,
            Place::Other(_) => &self.counters.relayed,
        };
        counter.fetch_add(1, Relaxed);
    }

    /// Has the connection move to another data server, with the request that it has read.
    async fn leave(mut self, next: Ipv4Addr) -> io::Result<Left<'a>> {
        let service = self.services.borrow().clone();
        let Some(cluster) = &service.cluster else {
            return Ok(Left::Stays(Box::new(self)));
        };
        let Some(mover) = cluster.daemon.mover().await else {
            return Ok(Left::Waited(Box::new(self)));
        };
        self.send_all().await?;
        self.reclaim_session().await?;
        self.read_what_came()?;
        // The client must have heard that all it has sent has come: the next socket does not know it.
        SockRef::from(&self.client).set_tcp_quickack(true)?;
        self.tries = self.tries.saturating_add(1);
        let id = self.state.id;
        let packed = self.state.pack();
        let moving = Moving {
            ends: self.ends,
            state: packed.clone(),
        };
        let left = mover.move_to(next, moving, reset(&self.client));
        if left.await? {
            let nothing_waits = self.to_server.is_empty() && self.from_server.is_empty();
            if nothing_waits
                && self.server_reads
                && self.exchange.goes_on_without_server()
                && let Some((from, to)) = self.server
                && let Either::Left(server) = from.unsplit(to)
            {
                cluster.kept.keep(id, self.local, server);
            }
            return Ok(Left::Gone);
        }
        self.counters.stayed.fetch_add(1, Relaxed);
        sleep(STAYS).await;
        let state = State::unpack(&packed).map_err(io::Error::other)?;
        let mut stays = Self { state, ..self };
        stays.keep_session();
        Ok(Left::Stays(Box::new(stays)))
    }

    /// Reads what has come, without waiting. The connection moves only if nothing is unread.
    fn read_what_came(&mut self) -> io::Result<()> {
        let records = &mut self.state.client_in;
        while self.state.plain.len() + records.len() < MOST_TAKEN {
            match read_now(&self.client, records) {
                Ok(0) => {
                    self.client_has_ended = true;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
                Ok(_) => (),
            }
        }
        Ok(())
    }

    /// Encrypts what the server has answered, unless the kernel does that.
    fn take_responses(&mut self) -> io::Result<()> {
        let mut answer = Vec::new();
        let taken = {
            let service = self.services.borrow();
            (self.exchange).back(&mut self.from_server, service.hsts(), &mut answer)
        };
        let sent = self.state.session.send(&answer, &mut self.client_out);
        sent.map_err(io::Error::other)?;
        let what = "the server sent what is no response to a request";
        taken.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, what))
    }

    /// Gives up the memory of large buffers in which nothing waits. Very many connections may be idle.
    fn release_buffers(&mut self) {
        let state = &mut self.state;
        for buffer in [
            &mut state.client_in,
            &mut state.plain,
            &mut self.to_server,
            &mut self.from_server,
            &mut self.client_out,
            &mut self.repeatable,
        ] {
            if buffer.is_empty() && buffer.capacity() > SMALL {
                *buffer = Vec::new();
            }
        }
    }

    /// Waits for the next event. No more is read of a side while much of it waits.
    async fn event(&mut self) -> Event {
        if self.exchange.is_idle() {
            self.release_buffers();
        }
        let has_room = self.client_out.len() < ROOM && self.long_response().is_none();
        let state = &mut self.state;
        let waiting = state.client_in.len() + state.plain.len() + self.to_server.len();
        let is_heard = !self.client_has_ended && waiting < ROOM;
        let is_at_rest = self.exchange.is_idle() && waiting + self.client_out.len() == 0;
        let (mut from_client, mut to_client) = self.client.split();
        let (from, to) = self.server.as_mut().map(|(from, to)| (from, to)).unzip();
        let deadline = self.deadline;
        let stalls = match self.client_out.is_empty() {
            true => None,
            false => Some(*self.stalls.get_or_insert_with(|| Instant::now() + STALL)),
        };
        let come = async {
            tokio::select! {
                read = read(&mut from_client, &mut state.client_in), if is_heard => {
                    Event::ClientSent(read)
                }
                read = read_if(from, &mut self.from_server), if has_room => {
                    Event::ServerSent(read)
                }
                () = until(stalls) => Event::ClientTook(Err(io::ErrorKind::TimedOut.into())),
                () = until(deadline) => Event::TooLate,
                Ok(()) = self.leave.changed(), if is_at_rest => Event::Leave,
            }
        };
        // What can be written needs no waiting, and so neither timers nor reads that find nothing.
        tokio::select! {
            biased;
            written = to_client.write(&self.client_out), if !self.client_out.is_empty() => {
                Event::ClientTook(written)
            }
            written = write_if(to, &self.to_server), if !self.to_server.is_empty() => {
                Event::ServerTook(written)
            }
            event = come => event,
        }
    }

    /// Passes on to the server that its client has ended, where that has a meaning.
    async fn end_server_input(&mut self) {
        if let Some((_, server)) = &mut self.server
            && self.to_server.is_empty()
            && self.exchange.is_tunnel()
        {
            // If the server has gone, reading from it says so.
            let _ = timeout(LINGERS, server.shutdown()).await;
        }
    }

    /// Ends the client's connection because the server has ended its own.
    async fn server_has_ended(self, read: io::Result<usize>) -> io::Result<End> {
        match (self.exchange.server_ends(), read) {
            (ServerEnd::Unanswered, _) => self.answer(Answer::Nobody).await,
            (ServerEnd::Orderly, Ok(_)) => self.end().await,
            (ServerEnd::Orderly, Err(_)) if self.exchange.has_whole_response() => self.end().await,
            (_, Err(error)) => Err(error),
            (ServerEnd::Truncated, Ok(_)) => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Ends the session with the alert that says what is wrong with its records.
    async fn alert(mut self, error: io::Error) -> io::Result<End> {
        self.send_all().await?;
        end(&mut self.client).await;
        Err(error)
    }

    /// Gives the agent's own answer, and ends the connection.
    async fn answer(mut self, answer: Answer) -> io::Result<End> {
        self.counters.answered.fetch_add(1, Relaxed);
        let mut response = Vec::new();
        let hsts = self.services.borrow().hsts.clone();
        append_with_hsts(&mut response, answer.response().as_bytes(), hsts.as_deref());
        let sent = (self.state.session).send(&response, &mut self.client_out);
        sent.map_err(io::Error::other)?;
        self.end().await
    }

    /// Ends the session and the connection when the client has taken everything.
    async fn end(mut self) -> io::Result<End> {
        self.send_all().await?;
        self.state.session.close(&mut self.client_out);
        // A client that has gone has all that it has asked for.
        if self.send_all().await.is_ok() {
            end(&mut self.client).await;
        }
        Ok(End::Regular)
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}
