//! The calls of a channel's user.

use crate::wire::{Errno, Families, Frame, ListenerTag, SocketOptions, Tag, TakenPort, Way};
use baton_wire::Endpoint;
use bytes::Bytes;

use super::connection::{Connection, Stage};
use super::{Channel, ConnectionId, Received};

impl Channel {
    /// Asks the I/O server to listen. [`crate::Event::Listening`] or [`crate::Event::NotListening`] is the answer.
    /// Returns `None` if the channel is not up.
    pub fn listen(&mut self, port: u16, families: Families) -> Option<ListenerTag> {
        if !self.is_up() {
            return None;
        }
        let listener = ListenerTag(self.next_listener);
        self.next_listener = self.next_listener.wrapping_add(1);
        self.listeners.insert(listener);
        self.lanes.say_first(Frame::Listen {
            listener,
            port,
            families,
        });
        Some(listener)
    }

    /// Stops listening. Connections to this listener that are still on their way are not accepted.
    pub fn unlisten(&mut self, listener: ListenerTag) {
        if self.listeners.remove(&listener) {
            self.lanes.say_first(Frame::Unlisten { listener });
        }
    }

    /// Answers [`crate::Event::Listen`] with the port or an error. An error may also follow a port later: then the I/O
    /// server no longer listens.
    ///
    /// # Errors
    /// Returns none. An error in `port` is sent to the application node.
    pub fn answer_listen(&mut self, listener: ListenerTag, port: Result<u16, Errno>) {
        if !self.listeners.contains(&listener) {
            return;
        }
        self.lanes.say_first(match port {
            Ok(port) => Frame::Listening { listener, port },
            Err(errno) => {
                self.listeners.remove(&listener);
                Frame::NotListening { listener, errno }
            }
        });
    }

    /// Sends the application node the complete list of ports that no program can listen on. Does nothing while the
    /// channel is not up.
    pub fn tell_taken(&mut self, ports: &[TakenPort]) {
        if self.is_up() {
            self.lanes.say_first(Frame::Taken {
                ports: ports.into(),
            });
        }
    }

    /// Asks the other end for a connection, in the direction that `way` says. [`crate::Event::Made`] or
    /// [`crate::Event::NotMade`] is the answer. Returns `None` if the channel is not up.
    pub fn make_connection(&mut self, way: Way) -> Option<ConnectionId> {
        if !self.is_up() {
            return None;
        }
        let tag = self.free_tag();
        // The answer says how much may be sent.
        let connection = Connection::new(tag, Stage::Asked, 0, self.b_r);
        let limit = connection.receiver.limit();
        let id = self.remember(connection);
        self.lanes
            .say(tag, Frame::MakeConnection { tag, limit, way });
        Some(id)
    }

    fn free_tag(&mut self) -> Tag {
        // The loop ends: memory is exhausted by far fewer connections than there are tags.
        loop {
            let tag = Tag(self.next_tag);
            self.next_tag = self.next_tag.wrapping_add(2);
            if !self.tags.contains_key(&tag) && !self.closing.contains(&tag) {
                return tag;
            }
        }
    }

    pub(super) fn remember(&mut self, connection: Connection) -> ConnectionId {
        let id = ConnectionId(self.next_id);
        self.next_id += 1;
        self.tags.insert(connection.tag, id);
        self.connections.insert(id, connection);
        id
    }

    /// Answers [`crate::Event::Asked`] with yes. Returns `false` if the connection is already gone.
    pub fn accept(&mut self, id: ConnectionId, local: Endpoint) -> bool {
        let Some(connection) = self.connections.get_mut(&id) else {
            return false;
        };
        match connection.stage {
            Stage::Offered => connection.stage = Stage::Open,
            // The connection ended while it was being made, and its user will not name it again.
            Stage::Detached => {
                self.connections.remove(&id);
                return false;
            }
            Stage::Asked | Stage::Open => return false,
        }
        let (tag, limit) = (connection.tag, connection.receiver.limit());
        self.counters.made += 1;
        self.lanes
            .say(tag, Frame::ConnectionAccepted { tag, limit, local });
        true
    }

    /// Answers [`crate::Event::Asked`] with no; `errno` is the reason.
    pub fn refuse(&mut self, id: ConnectionId, errno: Errno) {
        let Some(connection) = self.connections.remove(&id) else {
            return;
        };
        if connection.stage == Stage::Offered {
            let tag = connection.tag;
            self.tags.remove(&tag);
            self.counters.refused += 1;
            self.lanes.say(tag, Frame::Exception { tag, errno });
        }
    }

    /// How many bytes may be sent. After a 0, [`crate::Event::Writable`] says when there is room.
    ///
    /// # Errors
    /// The error that broke the connection, reported once; EPIPE if this end has ended the connection or the other end
    /// no longer reads it.
    pub fn send_room(&mut self, id: ConnectionId) -> Result<usize, Errno> {
        let connection = self.connections.get_mut(&id);
        connection.map_or(Err(Errno::BROKEN_PIPE), Connection::send_room)
    }

    /// Sends all of these bytes, even if they exceed the room.
    ///
    /// # Errors
    /// As [`Channel::send_room`]; then nothing is sent.
    pub fn send(&mut self, id: ConnectionId, message: Bytes) -> Result<(), Errno> {
        self.send_room(id)?;
        if let Some(connection) = self.connections.get_mut(&id)
            && !message.is_empty()
        {
            connection.push(message);
        }
        self.give_turn(id);
        Ok(())
    }

    /// Ends this direction behind the bytes that are still queued.
    pub fn shutdown(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.ended = true;
            self.give_turn(id);
        }
    }

    /// Closes the connection for its user: queued bytes still go out, and bytes that arrive are thrown away. `id` is no
    /// longer valid.
    pub fn close(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        match connection.stage {
            Stage::Detached => {
                self.connections.remove(&id);
            }
            Stage::Asked | Stage::Offered => self.reset(id, Errno::ABORTED),
            Stage::Open => {
                let limit = connection.close();
                self.grant(id, limit);
                self.give_turn(id);
            }
        }
    }

    /// Ends the connection at once and sends the error to the other end. `id` is no longer valid.
    pub fn reset(&mut self, id: ConnectionId, errno: Errno) {
        let Some(connection) = self.connections.remove(&id) else {
            return;
        };
        if connection.stage != Stage::Detached {
            self.counters.resets += 1;
            self.tags.remove(&connection.tag);
            self.abort(connection.tag, errno);
        }
    }

    /// Sends Reset for a connection whose tag this end has already forgotten.
    pub(super) fn abort(&mut self, tag: Tag, errno: Errno) {
        self.closing.insert(tag);
        self.lanes.say(tag, Frame::Reset { tag, errno });
    }

    /// Takes the next bytes of the connection: at most `max`, where 0 counts as 1.
    pub fn receive(&mut self, id: ConnectionId, max: usize) -> Received {
        let Some(connection) = self.connections.get_mut(&id) else {
            return Received::End;
        };
        let (received, limit) = connection.receive(max.max(1));
        self.grant(id, limit);
        received
    }

    /// Reports L_r to the other end if `limit` holds a new one.
    pub(super) fn grant(&mut self, id: ConnectionId, limit: Option<u64>) {
        if let (Some(connection), Some(limit)) = (self.connections.get(&id), limit)
            && connection.stage == Stage::Open
            && !connection.peer_ended
        {
            let tag = connection.tag;
            self.lanes.say(tag, Frame::BufferAvailable { tag, limit });
        }
    }

    /// Whether the other end has closed the connection, or it broke.
    pub fn is_gone(&self, id: ConnectionId) -> bool {
        (self.connections.get(&id)).is_none_or(|connection| connection.stage == Stage::Detached)
    }

    /// Whether the connection broke and its user has not been told.
    pub fn is_broken(&self, id: ConnectionId) -> bool {
        (self.connections.get(&id)).is_some_and(|connection| connection.error.is_some())
    }

    /// Sets options of the connection's socket at the I/O server.
    pub fn set_options(&mut self, id: ConnectionId, options: SocketOptions) {
        if let Some(connection) = self.connections.get(&id)
            && connection.stage == Stage::Open
        {
            let tag = connection.tag;
            self.lanes.say(tag, Frame::SetOptions { tag, options });
        }
    }
}
