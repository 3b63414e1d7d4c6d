//! A channel that is shared by the tasks of its link and the users of its connections.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use baton_core::Moment;
use baton_saps_protocol::wire::{Errno, Side, Way};
use baton_saps_protocol::{Channel, ConnectionId, Counters, Event, Gauges};
use baton_wire::Endpoint;
use bytes::Bytes;
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use crate::events::{Backlog, Events, Teller, events};

#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Counts the events that the owner has not taken yet.
    backlog: Arc<Backlog>,
    started: Instant,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) channel: Channel,
    users: HashMap<ConnectionId, User>,
    /// The tasks that wait for an answer to MakeConnection.
    answers: HashMap<ConnectionId, oneshot::Sender<Result<Endpoint, Errno>>>,
    /// The task that writes each lane, while it has nothing to write.
    writers: Vec<Option<Waker>>,
    /// The task that waits for the other end's Hello.
    greeter: Option<Waker>,
    owner: Teller,
}

/// Receives the other end's answer to MakeConnection: the connection's local end, or why it was not made.
type Answer = oneshot::Receiver<Result<Endpoint, Errno>>;

/// The tasks that wait for a connection and, at the I/O server, the socket that its options are for.
#[derive(Debug, Default)]
struct User {
    reader: Option<Waker>,
    writer: Option<Waker>,
    closer: Option<Waker>,
    socket: Weak<TcpStream>,
}

impl Shared {
    pub(crate) fn new(side: Side, name: &str, buffer: u32) -> (Arc<Self>, Events) {
        let (owner, events) = events();
        let backlog = Arc::clone(owner.backlog());
        let channel = Channel::new(side, name, buffer, fastrand::u32(1..));
        let state = State {
            channel,
            users: HashMap::new(),
            answers: HashMap::new(),
            writers: Vec::new(),
            greeter: None,
            owner,
        };
        let shared = Self {
            state: Mutex::new(state),
            backlog,
            started: Instant::now(),
        };
        (Arc::new(shared), events)
    }

    pub(crate) fn now(&self) -> Moment {
        Moment::after_epoch(self.started.elapsed())
    }

    pub(crate) fn backlog(&self) -> &Backlog {
        &self.backlog
    }

    /// Does something with the channel, and wakes the tasks that it concerns.
    pub(crate) fn with<T>(&self, what: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let done = what(&mut state);
        state.tell();
        done
    }

    pub(crate) fn counters(&self) -> Counters {
        self.lock().channel.counters()
    }

    pub(crate) fn gauges(&self) -> Gauges {
        self.lock().channel.gauges()
    }

    /// Locks the state, even after a panic elsewhere, which leaves the state as it was between two calls.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Is ready when the channel is up.
    pub(crate) fn poll_up(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.channel.is_up() {
            return Poll::Ready(());
        }
        state.greeter = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Gives a lane's frames to `take`, until that returns `false` or there are no more. Is pending while there are
    /// none.
    pub(crate) fn poll_frames(
        &self,
        cx: &mut Context<'_>,
        lane: usize,
        mut take: impl FnMut(u32, baton_saps_protocol::wire::Frame) -> bool,
    ) -> Poll<()> {
        let mut state = self.lock();
        let mut some = false;
        while let Some((epoch, frame)) = state.channel.poll_transmit(lane) {
            some = true;
            if !take(epoch, frame) {
                break;
            }
        }
        state.tell();
        if some {
            return Poll::Ready(());
        }
        if state.writers.len() <= lane {
            state.writers.resize_with(lane + 1, || None);
        }
        state.writers[lane] = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl State {
    /// Begins to make a connection. Returns its number, and the receiver of the other end's answer; `None` if the channel
    /// is down.
    pub(crate) fn make(
        &mut self,
        way: Way,
        socket: Weak<TcpStream>,
    ) -> Option<(ConnectionId, Answer)> {
        let (answer, answered) = oneshot::channel();
        let id = self.channel.make_connection(way)?;
        self.users.entry(id).or_default().socket = socket;
        self.answers.insert(id, answer);
        Some((id, answered))
    }

    /// Accepts a connection that the other end makes. Returns `false` if it is already gone.
    pub(crate) fn accept(
        &mut self,
        id: ConnectionId,
        local: Endpoint,
        socket: Weak<TcpStream>,
    ) -> bool {
        let is_open = self.channel.accept(id, local);
        if is_open {
            self.users.entry(id).or_default().socket = socket;
        }
        is_open
    }

    /// Wakes all tasks that the events so far concern.
    fn tell(&mut self) {
        while let Some(event) = self.channel.poll() {
            self.tell_of(event);
        }
        for lane in 0..self.writers.len() {
            if self.channel.wants_to_send(lane)
                && let Some(writer) = self.writers[lane].take()
            {
                writer.wake();
            }
        }
    }

    fn tell_of(&mut self, event: Event) {
        match event {
            Event::Readable(id) => self.wake(id, |user| [user.reader.take(), None, None]),
            Event::Writable(id) => self.wake(id, |user| [None, user.writer.take(), None]),
            Event::Gone(id) => self.wake(id, |user| {
                [user.reader.take(), user.writer.take(), user.closer.take()]
            }),
            Event::Made { id, local } => self.answer(id, Ok(local)),
            Event::NotMade { id, errno } => self.answer(id, Err(errno)),
            Event::Options { id, options } => {
                let socket = self.users.get(&id).and_then(|user| user.socket.upgrade());
                if let Some(socket) = socket {
                    crate::options::set(&socket, &options);
                }
            }
            event => {
                if let (Event::Up { .. }, Some(greeter)) = (&event, self.greeter.take()) {
                    greeter.wake();
                }
                self.owner.tell(event);
            }
        }
    }

    fn wake(&mut self, id: ConnectionId, which: impl FnOnce(&mut User) -> [Option<Waker>; 3]) {
        let wakers = self.users.get_mut(&id).map(which);
        (wakers.into_iter().flatten().flatten()).for_each(Waker::wake);
    }

    fn answer(&mut self, id: ConnectionId, answer: Result<Endpoint, Errno>) {
        if answer.is_err() {
            self.users.remove(&id);
        }
        if let Some(asker) = self.answers.remove(&id) {
            // An asker that no longer waits has closed the connection.
            let _ = asker.send(answer);
        }
    }

    /// Forgets a connection whose user is done with it.
    pub(crate) fn forget(&mut self, id: ConnectionId) {
        self.users.remove(&id);
        self.answers.remove(&id);
    }

    /// Is ready with the room to send in bytes, at least 1.
    pub(crate) fn poll_room(
        &mut self,
        cx: &mut Context<'_>,
        id: ConnectionId,
    ) -> Poll<io::Result<usize>> {
        match self.channel.send_room(id) {
            Ok(0) => {
                self.users.entry(id).or_default().writer = Some(cx.waker().clone());
                Poll::Pending
            }
            room => Poll::Ready(room.map_err(error)),
        }
    }

    /// Is ready with the next bytes, or with `None` at their end.
    pub(crate) fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        id: ConnectionId,
        max: usize,
    ) -> Poll<io::Result<Option<Bytes>>> {
        use baton_saps_protocol::Received;
        match self.channel.receive(id, max) {
            Received::Data(bytes) => Poll::Ready(Ok(Some(bytes))),
            Received::End => Poll::Ready(Ok(None)),
            Received::Broken(errno) => Poll::Ready(Err(error(errno))),
            Received::Nothing => {
                self.users.entry(id).or_default().reader = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Is ready when the other end has closed the connection, or it broke.
    pub(crate) fn poll_gone(&mut self, cx: &mut Context<'_>, id: ConnectionId) -> Poll<()> {
        if self.channel.is_gone(id) {
            return Poll::Ready(());
        }
        self.users.entry(id).or_default().closer = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// Is ready when the connection broke; never if it came to a regular end.
pub(crate) fn poll_broken(shared: &Shared, cx: &mut Context<'_>, id: ConnectionId) -> Poll<()> {
    shared.with(|state| match state.poll_gone(cx, id) {
        Poll::Ready(()) if state.channel.is_broken(id) => Poll::Ready(()),
        _ => Poll::Pending,
    })
}

pub(crate) fn error(errno: Errno) -> io::Error {
    io::Error::from_raw_os_error(errno.number().into())
}

/// The error number of a kernel error. An error that the kernel did not report becomes ECONNRESET or EIO.
pub(crate) fn errno(error: &io::Error) -> Errno {
    let number = error
        .raw_os_error()
        .and_then(|number| u16::try_from(number).ok());
    number.and_then(Errno::new).unwrap_or(match error.kind() {
        io::ErrorKind::ConnectionReset => Errno::RESET,
        _ => Errno::IO,
    })
}
