//! Orders that an operator gives at one node for another one. An order is sent again and again until the other
//! node shows that it has done it. The other node takes it once.

use std::collections::BTreeMap;
use std::time::Duration;

use baton_wire::{Address, Clock, Order, Verb};

use crate::Moment;

/// How long an order is sent again.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// An order is sent at least this often, even if the node seems to have done it: an earlier order may still be
/// on its way to it.
const LEAST: u32 = 3;

/// The orders from here to other nodes, and the number of the last order of each other node to this one.
#[derive(Clone, Debug, Default)]
pub struct Orders {
    pending: BTreeMap<Address, Pending>,
    taken: BTreeMap<Address, u64>,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    order: Order,
    until: Moment,
    sent: u32,
}

impl Orders {
    /// Orders a node to do this from now on, which replaces what it was ordered before. Orders are numbered by
    /// the wall clock, so that those of the next daemon here are later ones.
    pub fn give(&mut self, now: Moment, clock: Clock, to: Address, verb: Verb) {
        let before = self.pending.get(&to).map_or(0, |one| one.order.number);
        let order = Order {
            number: clock.as_nanos().max(before + 1),
            verb,
        };
        let until = now + PATIENCE;
        let sent = 0;
        self.pending.insert(to, Pending { order, until, sent });
    }

    /// The orders that are to be sent now, and to whom. Forgets those that have been sent for long enough or
    /// that are done as `is_done` says.
    pub fn poll(
        &mut self,
        now: Moment,
        is_done: impl Fn(Address, Verb) -> bool,
    ) -> Vec<(Address, Order)> {
        self.pending.retain(|to, one| {
            now < one.until && (one.sent < LEAST || !is_done(*to, one.order.verb))
        });
        let pending = self.pending.iter_mut();
        pending
            .map(|(to, one)| {
                one.sent += 1;
                (*to, one.order)
            })
            .collect()
    }

    /// Takes an order that came. Returns what to do, or `None` if this order or a later one of the same sender
    /// was taken before. An order is taken only once because somebody else may have ordered the opposite since.
    pub fn take(&mut self, from: Address, order: Order) -> Option<Verb> {
        let last = self.taken.entry(from).or_default();
        if order.number <= *last {
            return None;
        }
        *last = order.number;
        Some(order.verb)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DS1: Address = Address::from_octets([1; 16]);
    const DS2: Address = Address::from_octets([2; 16]);

    fn at(seconds: u64) -> Moment {
        Moment::after_epoch(Duration::from_secs(seconds))
    }

    fn sent(orders: &mut Orders, now: Moment, done: &[Address]) -> Vec<(Address, Verb)> {
        let sent = orders.poll(now, |to, _| done.contains(&to));
        sent.iter().map(|(to, order)| (*to, order.verb)).collect()
    }

    #[test]
    fn an_order_is_sent_until_it_is_done_or_too_old() {
        let mut orders = Orders::default();
        orders.give(at(0), Clock::from_nanos(7), DS1, Verb::Drain);
        orders.give(at(1), Clock::from_nanos(7), DS2, Verb::Drain);
        let both = [(DS1, Verb::Drain), (DS2, Verb::Drain)];
        for _ in 0..LEAST {
            assert_eq!(sent(&mut orders, at(1), &[DS1]), both);
        }
        assert_eq!(sent(&mut orders, at(4), &[DS1]), both[1..]);
        assert_eq!(sent(&mut orders, at(4), &[]), both[1..], "done is done");
        assert_eq!(sent(&mut orders, at(6), &[]), []);
    }

    #[test]
    fn the_last_order_replaces_those_before() {
        let mut orders = Orders::default();
        let clock = Clock::from_nanos(7);
        orders.give(at(0), clock, DS1, Verb::Drain);
        let first = orders.poll(at(0), |_, _| false)[0].1;
        // An order that replaces another one has a greater number, and is not done because the first one is.
        orders.give(at(0), clock, DS1, Verb::Undrain);
        let second = orders.poll(at(0), |_, verb| verb == Verb::Drain);
        assert_eq!(second.len(), 1);
        assert_eq!(second[0].1.verb, Verb::Undrain);
        assert!(second[0].1.number > first.number);
    }

    #[test]
    fn neither_a_late_order_nor_a_repeated_one_is_taken() {
        let mut orders = Orders::default();
        let order = |number, verb| Order { number, verb };
        assert_eq!(orders.take(DS1, order(5, Verb::Drain)), Some(Verb::Drain));
        assert_eq!(orders.take(DS1, order(5, Verb::Drain)), None);
        assert_eq!(
            orders.take(DS1, order(6, Verb::Undrain)),
            Some(Verb::Undrain)
        );
        assert_eq!(orders.take(DS1, order(5, Verb::Drain)), None);
        // Orders of another sender are counted separately.
        assert_eq!(orders.take(DS2, order(1, Verb::Drain)), Some(Verb::Drain));
        // A repeated order of the first sender must not undo what the other sender ordered since.
        assert_eq!(orders.take(DS1, order(6, Verb::Undrain)), None);
    }
}
