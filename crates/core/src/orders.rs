//! What operators want of nodes, said at another one: sent again and again until the node shows that it has
//! done it, and taken by the node once.

use std::collections::BTreeMap;
use std::time::Duration;

use baton_wire::{Address, Clock, Order, Verb};

use crate::Moment;

/// So long an order is sent again.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// So often at least, however the node looks: an earlier order may still be on its way to it.
const LEAST: u32 = 3;

/// Orders from here to other nodes, and the last one of each other node to this one.
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
    /// Orders a node to do this from now on. It replaces what was ordered there before. The wall clock
    /// numbers orders, so that those of the next daemon here are later ones.
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

    /// What is to be sent now, to whom; forgets what was sent for long enough, and what `is_done`.
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

    /// Takes an order that came: what to do, unless the sender's last one is that, come again, or a later one.
    /// Once only: somebody else may have ordered the opposite since.
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
        // Another verb is never done by what the first has done, and never the same number.
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
        // Another sender counts by itself.
        assert_eq!(orders.take(DS2, order(1, Verb::Drain)), Some(Verb::Drain));
        // The one before repeats what that one has made no longer so.
        assert_eq!(orders.take(DS1, order(6, Verb::Undrain)), None);
    }
}
