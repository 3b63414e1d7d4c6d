//! A migration that is asked for at another node than the one whose entries go over. The node that was asked sends an
//! order to the other one, and asks about the migration for as long as `baton migrate` runs.

use std::net::Ipv4Addr;

use anyhow::{Result, bail};
use baton_core::operator_order::{GivenOrder, Standing};
use baton_wire::{Account, Address, Message, Order, ShortAddress, Verb};

use super::{
    Became, Ours, State,
    state::{Doing, Running},
};
use crate::{
    daemon::Daemon,
    operator::{
        account::{account, failed},
        control::Response,
    },
    peers::heartbeat::clock_now,
};

impl Daemon {
    /// Orders the connection server called `from` to let the node called `to` take over.
    pub(super) fn order_migration(
        &mut self,
        (from, at): (&str, Ipv4Addr),
        (to, target): (&str, Ipv4Addr),
    ) -> Result<State> {
        self.expect_to_lead()?;
        self.expect_to_be_heard(from, at)?;
        let verb = Verb::Migrate(ShortAddress::try_from(std::net::IpAddr::V4(target))?);
        let afar = &self.migrations.afar;
        let before = afar.ours.as_ref().map(|ours| &ours.order);
        let order = GivenOrder::new(self.now(), clock_now(), before, at.into(), verb);
        self.migrations.afar.ours = Some(Ours {
            from: from.to_owned(),
            to: to.to_owned(),
            order,
        });
        self.ask_after();
        Ok(asking(to))
    }

    /// Returns what the other node has said last about the migration, and asks it once more.
    pub(super) fn told_of_migration(&mut self, from: &str, to: &str) -> Result<Response> {
        let now = self.now();
        let ours = (self.migrations.afar.ours.as_ref())
            .filter(|ours| (ours.from.as_str(), ours.to.as_str()) == (from, to));
        let Some(ours) = ours else {
            bail!(
                "this node did not order this migration, or its daemon has restarted since; `baton status` at {from} shows the state"
            );
        };
        let response = match ours.order.standing(now) {
            Standing::Ordered => Response::Migration(Box::new(asking(to))),
            Standing::Said(text) => match serde_json::from_str(text) {
                Ok(response) => response,
                Err(error) => bail!(
                    "cannot read the answer of {from} ({error}); give both nodes the same release of baton, and see `baton status` there"
                ),
            },
            Standing::NoAnswer => bail!(
                "{from} did not answer: is its daemon running, with this version, the same cluster key and the right time? If it received the order after all, `baton status` there shows the migration"
            ),
            Standing::Silent => bail!(
                "{from} has stopped answering; if its daemon lives, the migration goes on: `baton status` there shows it"
            ),
        };
        self.ask_after();
        Ok(response)
    }

    /// Handles another node's account if it is of the migration that this node has ordered.
    pub(crate) fn handle_migration_account(&mut self, sender: Ipv4Addr, account: &Account) {
        let now = self.now();
        if let Some(ours) = &mut self.migrations.afar.ours {
            ours.order.handle_account(now, sender.into(), account);
        }
    }

    /// Handles another node's order for a migration from here. The same order again only asks how it is getting on.
    pub(crate) fn handle_migrate_order(&mut self, sender: Ipv4Addr, order: Order) {
        let from = Address::from(sender);
        if let Verb::Migrate(to) = order.verb
            && self.migrations.afar.theirs.is_new(from, order.number)
        {
            let became = match self.obey_migrate(to) {
                Ok(state) => Became::Begun(state.totals.begun),
                Err(error) => Became::Refused(format!("{error:#}")),
            };
            (self.migrations.afar.theirs).note(from, order.number, became);
        }
        let response = match self.migrations.afar.theirs.became(from, order.number) {
            Some(Became::Begun(number)) => self.of_migration(*number),
            Some(Became::Refused(why)) => failed(why),
            None => {
                failed("its daemon has restarted meanwhile; `baton status` there shows the state")
            }
        };
        if let Some(account) = account(order.number, &response) {
            let message = Message::Account(account);
            self.messenger.queue(sender, message);
        }
    }

    fn obey_migrate(&mut self, to: ShortAddress) -> Result<State> {
        let own = self.local.me.name.to_string();
        let is = |node: &&baton_config::Node| ShortAddress::try_from(node.address.ip()) == Ok(to);
        match self.local.config.nodes.iter().find(is) {
            Some(node) => {
                let name = node.name.to_string();
                self.migrate(&own, &name)
            }
            None => {
                bail!("{own} knows no node with the address {to}: give both the same configuration")
            }
        }
    }

    /// Returns the state of the migration that has this number among those that have begun here.
    fn of_migration(&self, number: u64) -> Response {
        let state = self.migrations.state();
        if state.totals.begun == number {
            Response::Migration(Box::new(state))
        } else {
            failed("another migration has begun since; `baton status` there shows it")
        }
    }

    fn ask_after(&mut self) {
        let Some(ours) = &self.migrations.afar.ours else {
            return;
        };
        let (to, order) = ours.order.ask();
        if let std::net::IpAddr::V4(to) = to.ip() {
            self.messenger.queue(to, Message::Order(order));
        }
    }
}

/// Makes the state of a migration of which nothing is known yet.
fn asking(to: &str) -> State {
    State {
        to: Some(to.to_owned()),
        running: Some(Running {
            stage: Doing::Asking,
            pass: 0,
            came: 0,
            entries: 0,
        }),
        ..State::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Ended, Summary};
    use super::*;

    #[test]
    fn the_longest_answers_there_are_fit() {
        let mut state = asking("a-name-of-a-node-that-is-as-long-as-names-may-be");
        state.ended = Some(Ended::Done(Summary {
            passes: vec![usize::MAX; 5],
            copied_ms: 1.0 / 3.0,
            held_ms: 1.0 / 3.0,
            took_ms: 1.0 / 3.0,
            resent: u64::MAX,
            ..Summary::default()
        }));
        state.totals.sent = u64::MAX;
        let response = Response::Migration(Box::new(state));
        let whole = serde_json::to_string(&response).expect("numbers and names");
        let account = account(1, &response).expect("a message");
        assert_eq!(account.text(), whole);
    }
}
