//! What a client's relay must send again: the relay stands between a program that writes bytes, not messages,
//! and servers of which any may redirect it.
//!
//! What the program writes goes to the server as it comes, each piece a message. A redirect says how much of it
//! is answered ([`Redirect::taken`]), or it does not, and then messages count; but the relay's messages are
//! pieces, and a server's answer may be in pieces too. So without a number a redirect is followed only where
//! there is no doubt:
//!
//! - the server has said nothing yet: all is sent again;
//! - each piece was sent when none waited for an answer: then the piece that waits, if one does, is.
//!
//! In all other cases it is an error, and the program's connection is reset. Never is a byte sent twice that a
//! server has answered, and none is left out.
//!
//! [`Redirect::taken`]: crate::wire::Redirect::taken

use std::collections::VecDeque;

use crate::wire::Redirect;

/// Why a redirect cannot be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unclear {
    /// The rules above.
    #[error(
        "the server redirects in the middle of a stream, and does not say how much of it has been answered"
    )]
    Doubt,
    /// What is to be sent again is not kept any more.
    #[error("{bytes} bytes would have to be sent again, more than the {limit} that are kept")]
    Gone {
        /// To be sent again.
        bytes: u64,
        /// The most.
        limit: usize,
    },
    /// More was answered than was sent.
    #[error("the server says that it has answered {taken} bytes, and was sent {sent}")]
    Impossible {
        /// What it says.
        taken: u64,
        /// What it was sent.
        sent: u64,
    },
}

/// What has been sent on the connection of now, as far as it may have to be sent again.
#[derive(Clone, Debug)]
pub struct Kept {
    limit: usize,
    /// The last bytes sent, at most `limit`.
    bytes: VecDeque<u8>,
    /// All that was sent on this connection.
    sent: u64,
    /// The server has said something on this connection.
    answered: bool,
    /// Where the piece begins that waits for an answer, if one does.
    waits: Option<u64>,
    /// No piece was ever sent while another one waited.
    in_turns: bool,
}

impl Kept {
    /// Nothing sent yet; of what will be, the last `limit` bytes are kept.
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

    /// Nothing was sent on this connection.
    pub const fn is_unused(&self) -> bool {
        self.sent == 0
    }

    /// What goes first on a new connection: what is to be sent again, as one message.
    pub fn again(&mut self) -> &[u8] {
        self.bytes.make_contiguous()
    }

    /// The program wrote this, and it is being sent.
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

    /// The server has sent a message, or a part of one, that is no redirect.
    pub const fn handle_answer(&mut self) {
        self.answered = true;
        self.waits = None;
    }

    /// The server redirects: [`Self::again`] is now for the next one.
    ///
    /// # Errors
    /// [`Unclear`]: reset the program's connection.
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
        // And once more, at the next one.
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
