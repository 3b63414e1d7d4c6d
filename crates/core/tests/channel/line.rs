//! A lossy line between a sender and a receiver, in virtual time. Messages, and the answers to RESEND, may be lost; SYNC
//! never is.

use std::collections::BTreeSet;
use std::time::Duration;

use baton_core::Moment;
use baton_core::channel::{Receiver, Sender, TICK, WINDOW};

/// How long a message that was asked for takes to come.
const ANSWER: Duration = Duration::from_millis(3);

/// Both ends of a channel, and what happened to its messages.
pub struct Line {
    now: Moment,
    /// The number of the next message.
    next: u16,
    /// The numbers that came last, each at its number modulo WINDOW.
    came: [u16; WINDOW],
    sender: Sender,
    receiver: Receiver,
    under_way: Vec<(Moment, u16)>,
    /// How many of the next answers to a RESEND are lost.
    pub unanswered: usize,
    /// Numbers of messages that were lost when they were first sent.
    pub lost: BTreeSet<u16>,
    /// Numbers that the receiver asked for, in order, and when.
    pub asked: Vec<(Moment, u16)>,
}

impl Line {
    pub fn beginning_at(next: u16) -> Self {
        Self {
            now: Moment::default(),
            next,
            came: [0; WINDOW],
            sender: Sender::default(),
            receiver: Receiver::default(),
            under_way: Vec::new(),
            unanswered: 0,
            lost: BTreeSet::new(),
            asked: Vec::new(),
        }
    }

    pub fn now(&self) -> Moment {
        self.now
    }

    /// Sends one message that takes `delay`, or is lost.
    pub fn send(&mut self, delay: Option<Duration>) {
        if let Some(delay) = delay {
            self.under_way.push((self.now + delay, self.next));
        } else if self.next != 0 {
            // Nobody asks for number 0, which stands for messages without a number.
            self.lost.insert(self.next);
        }
        self.next = self.next.wrapping_add(1);
    }

    /// The sender loses its memory and counts on from elsewhere.
    pub fn restart_at(&mut self, next: u16) {
        self.next = next;
        self.sender = Sender::default();
    }

    /// Lets one tick pass: first messages arrive, then both ends look at the channel.
    pub fn tick(&mut self) {
        self.now = self.now + TICK;
        let under_way = self.under_way.drain(..);
        let (arrived, later): (Vec<_>, Vec<_>) = under_way.partition(|(at, _)| *at <= self.now);
        self.under_way = later;
        for (_, number) in arrived {
            self.came[usize::from(number) % WINDOW] = number;
        }
        let mut asked = self.receiver.look(&self.came);
        if let Some(last) = self.sender.look(self.now, self.next) {
            asked.extend(self.receiver.sync(&self.came, last));
        }
        for number in asked {
            self.asked.push((self.now, number));
            match self.unanswered.checked_sub(1) {
                Some(left) => self.unanswered = left,
                None => self.under_way.push((self.now + ANSWER, number)),
            }
        }
    }

    pub fn ticks(&mut self, count: usize) {
        for _ in 0..count {
            self.tick();
        }
    }

    /// Returns the numbers that were asked for, without their times.
    pub fn asked_numbers(&self) -> Vec<u16> {
        self.asked.iter().map(|(_, number)| *number).collect()
    }
}
