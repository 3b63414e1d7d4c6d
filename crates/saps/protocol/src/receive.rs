//! The frames that come in.

use crate::wire::{Errno, Frame, Hello, ListenerTag, Side, Tag, Way};
use bytes::Bytes;

use super::channel::Phase;
use super::connection::{Connection, Stage};
use super::{Channel, ConnectionId, Event, Fault};

impl Channel {
    /// Takes a frame that arrived on this channel's link with this epoch.
    ///
    /// # Errors
    /// The [`Fault`] of the frame. It is already counted and dealt with, unless [`Fault::breaks_channel`]: then the
    /// caller must give the channel up.
    pub fn handle_frame(&mut self, epoch: u32, frame: Frame) -> Result<(), Fault> {
        let done = self.handle(epoch, frame);
        if let Err(fault) = &done {
            self.counters.count(fault);
        }
        done
    }

    /// Counts a link whose bytes were no frame, or ended within one if `is_end`. The caller must give the link up.
    pub fn handle_malformed(&mut self, is_end: bool) {
        match is_end {
            true => self.counters.truncated += 1,
            false => self.counters.malformed += 1,
        }
    }

    fn handle(&mut self, epoch: u32, frame: Frame) -> Result<(), Fault> {
        match (frame, self.phase) {
            (Frame::Hello(hello), Phase::Greeting { .. }) => self.handle_hello(hello),
            (Frame::Hello(_), _) | (_, Phase::Greeting { .. } | Phase::Down) => Err(Fault::Hello),
            (_, Phase::Up { .. }) if self.lanes.are_unread() => Err(Fault::Unread),
            (_, Phase::Up { .. }) if epoch != self.epoch => Err(Fault::Stale {
                found: epoch,
                epoch: self.epoch,
            }),
            (frame, Phase::Up { .. }) => self.handle_within(frame),
        }
    }

    fn handle_hello(&mut self, hello: Hello) -> Result<(), Fault> {
        if hello.side == self.side {
            return Err(Fault::WrongSide);
        }
        self.phase = Phase::Up {
            peer_epoch: hello.epoch,
        };
        if self.side == Side::Io {
            self.say_hello();
        }
        self.events.push_back(Event::Up {
            name: hello.name().to_owned(),
        });
        Ok(())
    }

    fn handle_within(&mut self, frame: Frame) -> Result<(), Fault> {
        match frame {
            Frame::Hello(_) => Err(Fault::Hello),
            Frame::Listen { listener, .. } | Frame::Unlisten { listener } => {
                self.expect(Side::Io)?;
                self.handle_wish(listener, frame)
            }
            Frame::Listening { listener, .. } | Frame::NotListening { listener, .. } => {
                self.expect(Side::Application)?;
                self.handle_answer(listener, frame)
            }
            Frame::Taken { ports } => {
                self.expect(Side::Application)?;
                self.events.push_back(Event::Taken(ports));
                Ok(())
            }
            Frame::MakeConnection { tag, limit, way } => self.handle_make(tag, limit, way),
            Frame::ConnectionClosed { tag } => match self.closing.remove(&tag) {
                true => Ok(()),
                false => Err(Fault::UnknownTag { tag }),
            },
            Frame::CloseConnection { tag } => {
                self.handle_end(tag, None);
                Ok(())
            }
            Frame::Reset { tag, errno } => {
                self.handle_end(tag, Some(errno));
                Ok(())
            }
            Frame::ConnectionAccepted { tag, .. }
            | Frame::Exception { tag, .. }
            | Frame::SendMessage { tag, .. }
            | Frame::BufferAvailable { tag, .. }
            | Frame::Shutdown { tag }
            | Frame::SetOptions { tag, .. } => {
                if self.closing.contains(&tag) {
                    self.counters.late += 1;
                    return Ok(());
                }
                let id = *self.tags.get(&tag).ok_or(Fault::UnknownTag { tag })?;
                self.handle_about(tag, id, frame)
            }
        }
    }

    /// Checks that this end is of `side`, which is the only one that receives such frames.
    fn expect(&self, side: Side) -> Result<(), Fault> {
        match self.side == side {
            true => Ok(()),
            false => Err(Fault::WrongSide),
        }
    }

    fn handle_wish(&mut self, listener: ListenerTag, frame: Frame) -> Result<(), Fault> {
        if let Frame::Listen { port, families, .. } = frame {
            if !self.listeners.insert(listener) {
                return Err(Fault::ListenerInUse { listener });
            }
            self.events.push_back(Event::Listen {
                listener,
                port,
                families,
            });
        } else if self.listeners.remove(&listener) {
            self.events.push_back(Event::Unlisten { listener });
        } else {
            // The application node may have sent Unlisten before it received this end's NotListening.
            self.counters.late += 1;
        }
        Ok(())
    }

    fn handle_answer(&mut self, listener: ListenerTag, frame: Frame) -> Result<(), Fault> {
        if !self.listeners.contains(&listener) {
            // This end gave the listener up before the answer arrived.
            self.counters.late += 1;
            return Ok(());
        }
        self.events.push_back(match frame {
            Frame::NotListening { errno, .. } => {
                self.listeners.remove(&listener);
                Event::NotListening { listener, errno }
            }
            Frame::Listening { port, .. } => Event::Listening { listener, port },
            _ => return Err(Fault::WrongSide),
        });
        Ok(())
    }

    fn handle_make(&mut self, tag: Tag, limit: u64, way: Way) -> Result<(), Fault> {
        let maker = match way {
            Way::In { .. } => Side::Io,
            Way::Out { .. } => Side::Application,
        };
        if maker == self.side {
            return Err(Fault::WrongSide);
        }
        if tag.maker() != maker || self.tags.contains_key(&tag) || self.closing.contains(&tag) {
            return Err(Fault::TagInUse { tag });
        }
        if let Way::In { listener, .. } = way
            && !self.listeners.contains(&listener)
        {
            // This end gave the listener up meanwhile.
            self.counters.refused += 1;
            let errno = Errno::REFUSED;
            self.lanes.say(tag, Frame::Exception { tag, errno });
            return Ok(());
        }
        let connection = Connection::new(tag, Stage::Offered, limit, self.b_r);
        let id = self.remember(connection);
        self.events.push_back(Event::Asked { id, way });
        Ok(())
    }

    /// Handles CloseConnection or Reset. An unknown tag is answered as well: the frame may have been sent before this
    /// end's refusal arrived.
    fn handle_end(&mut self, tag: Tag, error: Option<Errno>) {
        self.lanes.say(tag, Frame::ConnectionClosed { tag });
        let Some(id) = self.tags.remove(&tag) else {
            return;
        };
        self.counters.resets += u64::from(error.is_some());
        let asked = (self.connections.get(&id)).is_some_and(|known| known.stage == Stage::Asked);
        if asked {
            self.counters.refused += 1;
            self.connections.remove(&id);
            let errno = error.unwrap_or(Errno::ABORTED);
            self.events.push_back(Event::NotMade { id, errno });
        } else {
            self.detach(id, error);
        }
    }

    fn handle_about(&mut self, tag: Tag, id: ConnectionId, frame: Frame) -> Result<(), Fault> {
        let Some(connection) = self.connections.get_mut(&id) else {
            return Err(Fault::UnknownTag { tag });
        };
        let stage = connection.stage;
        match frame {
            Frame::ConnectionAccepted { limit, local, .. } if stage == Stage::Asked => {
                connection.stage = Stage::Open;
                connection.sender.handle_limit(limit);
                self.counters.made += 1;
                self.events.push_back(Event::Made { id, local });
            }
            Frame::Exception { errno, .. } if stage == Stage::Asked => {
                self.counters.refused += 1;
                self.connections.remove(&id);
                self.tags.remove(&tag);
                self.events.push_back(Event::NotMade { id, errno });
            }
            Frame::SendMessage { message, .. } if stage == Stage::Open => {
                return self.handle_message(tag, id, message);
            }
            Frame::BufferAvailable { limit, .. } if stage == Stage::Open => {
                if !connection.sender.handle_limit(limit) {
                    return Err(Fault::CreditShrunk { tag });
                }
                self.give_turn(id);
            }
            Frame::Shutdown { .. } if stage == Stage::Open => {
                connection.peer_ended = true;
                self.events.push_back(Event::Readable(id));
            }
            Frame::SetOptions { options, .. } if stage == Stage::Open => {
                self.expect(Side::Io)?;
                self.events.push_back(Event::Options { id, options });
            }
            _ => return self.break_off(tag, id, Fault::OutOfPlace { tag }),
        }
        Ok(())
    }

    fn handle_message(&mut self, tag: Tag, id: ConnectionId, message: Bytes) -> Result<(), Fault> {
        let Some(connection) = self.connections.get_mut(&id) else {
            return Err(Fault::UnknownTag { tag });
        };
        if connection.peer_ended {
            return self.break_off(tag, id, Fault::AfterShutdown { tag });
        }
        let length = message.len() as u64;
        if let Err(by) = connection.receiver.handle_message(length) {
            return self.break_off(tag, id, Fault::BeyondCredit { tag, by });
        }
        self.counters.bytes_received += length;
        let limit = connection.store(message);
        self.grant(id, limit);
        self.events.push_back(Event::Readable(id));
        Ok(())
    }

    /// Ends a connection at both ends because the other end has broken the rules.
    fn break_off(&mut self, tag: Tag, id: ConnectionId, fault: Fault) -> Result<(), Fault> {
        self.counters.resets += 1;
        self.tags.remove(&tag);
        self.abort(tag, Errno::PROTOCOL);
        let asked = (self.connections.get(&id)).is_some_and(|known| known.stage == Stage::Asked);
        if asked {
            self.connections.remove(&id);
            let errno = Errno::PROTOCOL;
            self.events.push_back(Event::NotMade { id, errno });
        } else {
            self.detach(id, Some(Errno::PROTOCOL));
        }
        Err(fault)
    }
}
