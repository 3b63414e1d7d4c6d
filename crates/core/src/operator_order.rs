//! Orders of an operator that one node gives to another. The order is sent again until that node has said something
//! about it. Then the node can be asked how the order is getting on, for as long as somebody here wants to know.
//!
//! ```text
//!  here [`GivenOrder`]  --ORDER migrate-->  there [`TakenOrders`]   begins it, once
//!                       <--ACCOUNT-------                           what has become of it
//!                       --ORDER tell----->
//!                       <--ACCOUNT-------                           and so on
//! ```
//!
//! Only the first order begins anything, and only if its number is new there, because somebody else may have ordered
//! the opposite since. A node that restarts in between does not begin the order once more, because it is only asked
//! about it.

use std::collections::BTreeMap;
use std::time::Duration;

use baton_wire::{Account, Address, Clock, Order, Verb};

use crate::Moment;

/// A node that has said nothing for this long is no longer waited for, and gets its order no more.
pub const PATIENCE: Duration = Duration::from_secs(4);

/// An order from here to another node, and what that node has said about it.
#[derive(Clone, Debug)]
pub struct GivenOrder {
    to: Address,
    order: Order,
    /// When the order was given, or the other node was last heard.
    heard: Moment,
    account: Option<String>,
}

/// How far an order is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing<'a> {
    /// The order was given, and nothing was heard yet.
    Ordered,
    /// What the other node said last.
    Said(&'a str),
    /// Nothing was ever heard, and the other node is no longer waited for.
    NoAnswer,
    /// The other node has said something, but has been silent for too long.
    Silent,
}

impl GivenOrder {
    /// Orders a node to do this. Orders are numbered by the wall clock, so that those of the next daemon here are later
    /// ones, and each above the one before it; so `before` must be the last order of its kind from this node.
    pub fn new(
        now: Moment,
        clock: Clock,
        before: Option<&GivenOrder>,
        to: Address,
        verb: Verb,
    ) -> Self {
        let above = before.map_or(0, |before| before.order.number + 1);
        let number = clock.as_nanos().max(above);
        Self {
            to,
            order: Order { number, verb },
            heard: now,
            account: None,
        }
    }

    /// What is to be sent, and to whom, when somebody here wants to know: the order itself, or the question about it
    /// once the other node has said something.
    pub fn ask(&self) -> (Address, Order) {
        let verb = match self.account {
            None => self.order.verb,
            Some(_) => Verb::Tell,
        };
        let order = Order { verb, ..self.order };
        (self.to, order)
    }

    /// Takes what a node has said about an order.
    pub fn handle_account(&mut self, now: Moment, from: Address, account: &Account) {
        if from == self.to && account.number() == self.order.number {
            self.heard = now;
            self.account = Some(account.text().to_owned());
        }
    }

    /// How far the order is.
    pub fn standing(&self, now: Moment) -> Standing<'_> {
        let is_silent = now.since(self.heard) >= PATIENCE;
        match &self.account {
            None if is_silent => Standing::NoAnswer,
            None => Standing::Ordered,
            Some(_) if is_silent => Standing::Silent,
            Some(text) => Standing::Said(text),
        }
    }
}

/// The last order of each other node to this one, with what became of it here.
#[derive(Clone, Debug)]
pub struct TakenOrders<T> {
    last: BTreeMap<Address, (u64, T)>,
}

impl<T> Default for TakenOrders<T> {
    fn default() -> Self {
        Self {
            last: BTreeMap::new(),
        }
    }
}

impl<T> TakenOrders<T> {
    /// Whether this order is to be begun: neither it nor a later one of the same sender has been.
    pub fn is_new(&self, from: Address, number: u64) -> bool {
        self.last.get(&from).is_none_or(|(last, _)| number > *last)
    }

    /// Notes that an order was begun or refused.
    pub fn note(&mut self, from: Address, number: u64, became: T) {
        self.last.insert(from, (number, became));
    }

    /// What became of an order; `None` if it is not known here, or no longer.
    pub fn became(&self, from: Address, number: u64) -> Option<&T> {
        let (last, became) = self.last.get(&from)?;
        (*last == number).then_some(became)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CS1: Address = Address::from_octets([1; 16]);
    const CS2: Address = Address::from_octets([2; 16]);

    fn at(seconds: u64) -> Moment {
        Moment::after_epoch(Duration::from_secs(seconds))
    }

    fn given(before: Option<&GivenOrder>) -> GivenOrder {
        GivenOrder::new(at(0), Clock::from_nanos(7), before, CS1, Verb::Drain)
    }

    fn said(given: &GivenOrder, text: &str) -> Account {
        Account::new(given.order.number, text.into()).unwrap()
    }

    #[test]
    fn it_is_ordered_until_something_is_said_and_then_asked_for() {
        let mut given = given(None);
        let order = Order {
            number: 7,
            verb: Verb::Drain,
        };
        assert_eq!(given.ask(), (CS1, order));
        assert_eq!(given.ask(), (CS1, order), "again");
        assert_eq!(given.standing(at(3)), Standing::Ordered);
        given.handle_account(at(3), CS1, &said(&given, "a"));
        let tell = Order {
            verb: Verb::Tell,
            ..order
        };
        assert_eq!(given.ask(), (CS1, tell));
        assert_eq!(given.standing(at(6)), Standing::Said("a"));
        assert_eq!(given.standing(at(7)), Standing::Silent);
    }

    #[test]
    fn what_others_say_and_of_other_orders_is_not_of_this_one() {
        let first = given(None);
        let mut second = given(Some(&first));
        assert!(second.order.number > first.order.number);
        second.handle_account(at(1), CS1, &said(&first, "late"));
        second.handle_account(at(1), CS2, &said(&second, "forged"));
        assert_eq!(second.standing(at(1)), Standing::Ordered);
        assert_eq!(second.standing(at(4)), Standing::NoAnswer);
    }

    #[test]
    fn an_order_is_begun_once() {
        let mut taken = TakenOrders::default();
        assert!(taken.is_new(CS1, 5));
        taken.note(CS1, 5, "begun");
        assert!(!taken.is_new(CS1, 5), "again");
        assert!(!taken.is_new(CS1, 4), "late");
        assert!(taken.is_new(CS1, 6) && taken.is_new(CS2, 1));
        assert_eq!(taken.became(CS1, 5), Some(&"begun"));
        taken.note(CS1, 6, "refused");
        assert_eq!(taken.became(CS1, 5), None);
        assert_eq!(
            TakenOrders::<()>::default().became(CS1, 5),
            None,
            "a new life"
        );
    }
}
