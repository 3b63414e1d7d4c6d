//! The bytes that a client's relay may have to send again. The relay stands between a program, which writes bytes and
//! not messages, and servers, each of which may redirect it.
//!
//! Bytes that the program writes go to the server as they come, each piece as a message. A redirect either says how
//! many bytes are answered ([`Redirect::taken`]), or messages count. But the relay's messages are only pieces, and a
//! server's answer may be in pieces too. So a redirect without a number is followed only if there is no doubt:
//!
//! - the server has sent nothing yet: everything is sent again;
//! - no piece was sent while another one waited for an answer: then the piece that waits, if there is one, is sent
//!   again.
//!
//! All other cases are errors, and the program's connection is reset. No byte that a server has answered is ever sent
//! twice, and no byte is left out.
//!
//! [`Redirect::taken`]: crate::wire::Redirect::taken

use std::collections::VecDeque;

use crate::wire::Redirect;

/// Why a redirect cannot be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unclear {
    /// The redirect has no number, and it is not certain what is answered.
    #[error(
        "the server redirects in the middle of a stream, and does not say how much of it has been answered"
    )]
    Doubt,
    /// The bytes that would have to be sent again are no longer kept.
    #[error("{bytes} bytes would have to be sent again, more than the {limit} that are kept")]
    Gone {
        /// How many bytes would have to be sent again.
        bytes: u64,
        /// The most bytes that are kept.
        limit: usize,
    },
    /// The server says that it has answered more than it was sent.
    #[error("the server says that it has answered {taken} bytes, and was sent {sent}")]
    Impossible {
        /// How many bytes the server says it has answered.
        taken: u64,
        /// How many bytes it was sent.
        sent: u64,
    },
}

/// The bytes sent on the current connection, as far as they may have to be sent again.
#[derive(Clone, Debug)]
pub struct Kept {
    limit: usize,
    /// The last bytes sent, at most `limit`.
    bytes: VecDeque<u8>,
    /// How many bytes were sent on this connection.
    sent: u64,
    /// Whether the server has sent anything on this connection but a redirect.
    answered: bool,
    /// Where the piece begins that waits for an answer; `None` if none waits.
    waits: Option<u64>,
    /// Whether no piece was ever sent while another one waited.
    in_turns: bool,
}

impl Kept {
    /// Makes a record for a new connection. Of all bytes sent, the last `limit` are kept.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            bytes: VecDeque::new(),
            sent: 0,
            answered: false,
            waits: None,
            in_turns: true,
        }
    }

    /// Whether nothing was sent on this connection.
    pub const fn is_unused(&self) -> bool {
        self.sent == 0
    }

    /// The bytes that must be sent again on a new connection, as one message.
    pub fn again(&mut self) -> &[u8] {
        self.bytes.make_contiguous()
    }

    /// Notes a piece that the program wrote and that is being sent.
    pub fn handle_sent(&mut self, piece: &[u8]) {
        if piece.is_empty() {
            return;
        }
        self.in_turns &= self.waits.is_none();
        self.waits.get_or_insert(self.sent);
        self.sent += piece.len() as u64;
        self.bytes.extend(piece);
        let over = self.bytes.len().saturating_sub(self.limit);
        self.bytes.drain(..over);
    }

    /// Notes that the server has sent a message, or a part of one, that is no redirect.
    pub const fn handle_answer(&mut self) {
        self.answered = true;
        self.waits = None;
    }

    /// Takes a redirect. From then on, [`Self::again`] and the record are for the connection to the next server.
    ///
    /// # Errors
    /// [`Unclear`] if the redirect cannot be followed: the program's connection must be reset.
    pub fn handle_redirect(&mut self, redirect: &Redirect) -> Result<(), Unclear> {
        let from = match redirect.taken {
            Some(taken) => taken,
            None if !self.answered && !redirect.answers => 0,
            None if !self.in_turns => return Err(Unclear::Doubt),
            // The answer is that of the piece that waits.
            None if redirect.answers => self.sent,
            None => self.waits.unwrap_or(self.sent),
        };
        let again = self.sent.checked_sub(from).ok_or(Unclear::Impossible {
            taken: from,
            sent: self.sent,
        })?;
        let kept = self.bytes.len();
        let Some(over) = usize::try_from(again)
            .ok()
            .and_then(|again| kept.checked_sub(again))
        else {
            return Err(Unclear::Gone {
                bytes: again,
                limit: self.limit,
            });
        };
        self.bytes.drain(..over);
        *self = Self {
            bytes: std::mem::take(&mut self.bytes),
            sent: again,
            waits: (again > 0).then_some(0),
            ..Self::new(self.limit)
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redirect(taken: Option<u64>, answers: bool) -> Redirect {
        Redirect {
            target: "10.0.0.7:80".parse().unwrap(),
            answers,
            token: None,
            taken,
        }
    }

    #[test]
    fn before_any_answer_all_is_sent_again_in_however_many_pieces() {
        let mut kept = Kept::new(100);
        kept.handle_sent(b"GET ");
        kept.handle_sent(b"/ ...");
        kept.handle_redirect(&redirect(None, false)).unwrap();
        assert_eq!(kept.again(), b"GET / ...");
        // The next server redirects as well.
        kept.handle_redirect(&redirect(None, false)).unwrap();
        assert_eq!(kept.again(), b"GET / ...");
    }

    #[test]
    fn in_turns_the_piece_that_waits_is_sent_again() {
        let mut kept = Kept::new(100);
        kept.handle_sent(b"one");
        kept.handle_answer();
        kept.handle_answer();
        kept.handle_sent(b"two");
        kept.handle_redirect(&redirect(None, false)).unwrap();
        assert_eq!(kept.again(), b"two");
        kept.handle_redirect(&redirect(None, true)).unwrap();
        assert_eq!(kept.again(), b"");
        assert!(kept.is_unused());
    }

    #[test]
    fn out_of_turn_only_a_number_helps() {
        let mut kept = Kept::new(100);
        kept.handle_sent(b"one");
        kept.handle_sent(b"two");
        kept.handle_answer();
        kept.handle_sent(b"three");
        for answers in [false, true] {
            let result = kept.clone().handle_redirect(&redirect(None, answers));
            assert_eq!(result, Err(Unclear::Doubt));
        }
        kept.handle_redirect(&redirect(Some(3), false)).unwrap();
        assert_eq!(kept.again(), b"twothree");
    }

    #[test]
    fn what_is_not_kept_is_not_made_up() {
        let mut kept = Kept::new(4);
        kept.handle_sent(b"one");
        kept.handle_sent(b"two");
        let gone = Unclear::Gone { bytes: 6, limit: 4 };
        let impossible = Unclear::Impossible { taken: 7, sent: 6 };
        let ask = |taken| kept.clone().handle_redirect(&redirect(taken, false));
        assert_eq!(ask(None), Err(gone));
        assert_eq!(ask(Some(7)), Err(impossible));
        assert_eq!(ask(Some(2)), Ok(()));
        kept.handle_redirect(&redirect(Some(2), false)).unwrap();
        assert_eq!(kept.again(), b"etwo");
    }
}
