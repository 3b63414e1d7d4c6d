//! One connection of a channel, as one end sees it.

use std::collections::VecDeque;

use crate::wire::{Errno, Frame, Tag};
use bytes::Bytes;

use super::credit::{Receiver, Sender};
use super::inbox::Inbox;

/// The name of a connection at this end. It is never used again, unlike the connection's tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub(super) u64);

/// The most bytes that a connection sends before another one has its turn.
pub const QUANTUM: usize = 32 * 1024;

/// The number of queued bytes at which a user has no more room to send. What a user sends in one call may exceed it.
pub const SEND_BUFFER: usize = 64 * 1024;

/// The result of receiving on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// Bytes, at least one.
    Data(Bytes),
    /// Nothing has arrived yet.
    Nothing,
    /// The other end sends no more bytes.
    End,
    /// The connection broke. This is reported once, either here or when sending.
    Broken(Errno),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// This end has asked for the connection and waits for the answer.
    Asked,
    /// The other end has asked for the connection and waits for this end's answer.
    Offered,
    /// Both ends know of the connection.
    Open,
    /// The connection sends and receives nothing over the channel anymore, and its tag is free.
    Detached,
}

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) tag: Tag,
    pub(super) stage: Stage,
    pub(super) sender: Sender,
    queue: VecDeque<Bytes>,
    queued: usize,
    pub(super) receiver: Receiver,
    inbox: Inbox,
    /// The user sends no more bytes; Shutdown follows the queue.
    pub(super) ended: bool,
    told_end: bool,
    /// The user is done with the connection; CloseConnection follows the queue.
    pub(super) closed: bool,
    /// No more bytes arrive.
    pub(super) peer_ended: bool,
    /// The error that is to be reported once.
    pub(super) error: Option<Errno>,
    /// Whether the connection is in its lane's turns.
    pub(super) has_turn: bool,
    pub(super) is_stalled: bool,
    /// Whether the user has found no room and must be told when there is room.
    wants_room: bool,
}

/// What a connection does with its turn.
pub(super) enum Turn {
    /// The connection sends this frame.
    Send(Frame),
    /// The connection has nothing to send, or may not send.
    Pass,
    /// The connection ends, with this as its last frame.
    Close(Frame),
}

impl Connection {
    pub(super) fn new(tag: Tag, stage: Stage, l_s: u64, b_r: u64) -> Self {
        Self {
            tag,
            stage,
            sender: Sender::new(l_s),
            queue: VecDeque::new(),
            queued: 0,
            receiver: Receiver::new(b_r),
            inbox: Inbox::default(),
            ended: false,
            told_end: false,
            closed: false,
            peer_ended: false,
            error: None,
            has_turn: false,
            is_stalled: false,
            wants_room: false,
        }
    }

    /// How many bytes the user may send at this moment.
    pub(super) fn send_room(&mut self) -> Result<usize, Errno> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        if self.ended || self.stage == Stage::Detached {
            return Err(Errno::BROKEN_PIPE);
        }
        let room = SEND_BUFFER.saturating_sub(self.queued);
        self.wants_room = room == 0;
        Ok(room)
    }

    pub(super) fn push(&mut self, message: Bytes) {
        self.queued += message.len();
        self.queue.push_back(message);
    }

    pub(super) fn queued(&self) -> usize {
        self.queued
    }

    /// Whether the connection has something that it may send.
    pub(super) fn can_send(&self) -> bool {
        let may = self.stage == Stage::Open;
        let rest = self.ended && !self.told_end || self.closed;
        may && if self.queued > 0 {
            self.sender.room() > 0
        } else {
            rest
        }
    }

    /// Whether the connection has bytes to send but no credit.
    pub(super) fn waits_for_credit(&self) -> bool {
        self.stage == Stage::Open && self.queued > 0 && self.sender.room() == 0
    }

    pub(super) fn take_turn(&mut self) -> Turn {
        let tag = self.tag;
        if !self.can_send() {
            return Turn::Pass;
        }
        if let Some(message) = self.next_message() {
            return Turn::Send(Frame::SendMessage { tag, message });
        }
        if !self.told_end {
            self.told_end = true;
            return Turn::Send(Frame::Shutdown { tag });
        }
        Turn::Close(Frame::CloseConnection { tag })
    }

    fn next_message(&mut self) -> Option<Bytes> {
        let chunk = self.queue.front_mut()?;
        // A room that does not fit a usize exceeds a quantum anyway.
        let room = usize::try_from(self.sender.room()).unwrap_or(QUANTUM);
        let length = chunk.len().min(QUANTUM).min(room);
        let message = chunk.split_to(length);
        if chunk.is_empty() {
            self.queue.pop_front();
        }
        self.sender.send(length as u64);
        self.queued -= length;
        Some(message)
    }

    /// Whether the user waits for room and there is some. Returns `true` once for each wait.
    pub(super) fn has_news_of_room(&mut self) -> bool {
        let news = self.wants_room && self.queued < SEND_BUFFER;
        self.wants_room &= !news;
        news
    }

    /// Ends everything that goes over the channel; bytes that have arrived can still be read. `error` is reported to
    /// the user.
    pub(super) fn detach(&mut self, error: Option<Errno>) {
        self.stage = Stage::Detached;
        self.queue.clear();
        self.queued = 0;
        self.peer_ended = true;
        self.is_stalled = false;
        self.error = error;
    }

    /// Stores bytes that the receiver has let in. Returns L_r as [`Connection::receive`] does.
    pub(super) fn store(&mut self, message: Bytes) -> Option<u64> {
        if self.closed {
            return self.receiver.take(message.len() as u64);
        }
        self.inbox.push(message);
        None
    }

    /// Closes the connection for its user. Bytes that have arrived count as read, and so do those that still arrive:
    /// two ends that each waited for the other to read would never finish. Returns L_r as [`Connection::receive`]
    /// does.
    pub(super) fn close(&mut self) -> Option<u64> {
        (self.ended, self.closed) = (true, true);
        self.inbox = Inbox::default();
        self.receiver.take(self.receiver.buffered())
    }

    /// Returns the next bytes, and L_r if it must be reported to the other end.
    pub(super) fn receive(&mut self, max: usize) -> (Received, Option<u64>) {
        if let Some(bytes) = self.inbox.pop(max) {
            let limit = self.receiver.take(bytes.len() as u64);
            return (Received::Data(bytes), limit);
        }
        let received = match self.error.take() {
            Some(error) => Received::Broken(error),
            None if self.peer_ended => Received::End,
            None => Received::Nothing,
        };
        (received, None)
    }
}
