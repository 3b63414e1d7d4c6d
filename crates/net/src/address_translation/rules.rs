//! What a firewall's rules do to one packet, which begins a client's connection to a service of this node.

use std::{collections::HashMap, net::Ipv4Addr};

/// The packet: from any client, over TCP, to an address of this host.
#[derive(Clone, Debug)]
pub struct Packet<'a> {
    /// The cluster address.
    pub address: Ipv4Addr,
    /// The service's port.
    pub port: u16,
    /// The interface by which it comes in; `None` if unknown.
    pub interface: Option<&'a str>,
}

/// Whether a condition holds for the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Truth {
    /// The condition does not hold.
    No,
    /// The condition holds for some packets, or it is not understood here.
    Maybe,
    /// The condition holds.
    Yes,
}

impl Truth {
    /// Whether both conditions hold.
    pub fn and(self, other: Self) -> Self {
        self.min(other)
    }

    /// The condition itself, or its opposite if it is `negated`.
    pub fn negated_if(self, negated: bool) -> Self {
        match (negated, self) {
            (true, Self::Yes) => Self::No,
            (true, Self::No) => Self::Yes,
            _ => self,
        }
    }
}

impl From<bool> for Truth {
    fn from(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }
}

/// What a rule does to packets that meet its conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Changes their destination to this one (DNAT, REDIRECT).
    Translate(String),
    /// Takes them out of connection tracking, and thereby out of all translations.
    Untrack,
    /// Continues in another chain, and then comes back to this one.
    Jump(String),
    /// Continues in another chain, and does not come back to this one.
    Goto(String),
    /// Returns to the chain before.
    Return,
    /// Ends this hook.
    Stop,
    /// Does nothing that matters here.
    Nothing,
}

/// One rule, whose conditions were judged for the packet.
#[derive(Clone, Debug)]
pub struct Rule {
    pub applies: Truth,
    pub action: Action,
}

/// A chain at which the kernel itself begins, for packets that come in.
#[derive(Clone, Debug)]
pub struct Base {
    pub chain: String,
    /// Its priority. Lower ones come first; connections are tracked at -200.
    pub priority: i64,
    /// Whether the chain may translate.
    pub is_nat: bool,
}

/// All rules that one program shows, in chains with names that are unique within it.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub bases: Vec<Base>,
    pub chains: HashMap<String, Vec<Rule>>,
    /// The name of a chain that may translate, at any hook. If there is one, the kernel looks at the addresses of all
    /// packets.
    pub nat: Option<String>,
}

/// What happens to the packet's destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The destination stays the same.
    Kept,
    /// The destination is changed, always or perhaps. The fields tell to what, and by which chain.
    Changed {
        surely: bool,
        to: String,
        chain: String,
    },
}

/// The priority at which connection tracking begins (NF_IP_PRI_CONNTRACK).
const CONNTRACK: i64 = -200;

impl Rules {
    /// Whether a rule takes the packet out of connection tracking.
    pub fn untracks(&self) -> bool {
        let early = |base: &&Base| base.priority < CONNTRACK;
        let mut bases: Vec<&Base> = self.bases.iter().filter(early).collect();
        bases.sort_by_key(|base| base.priority);
        bases.iter().any(|base| {
            let walk = self.walk(&base.chain, Truth::Yes, 0);
            matches!(walk, Walk::Done(Some((Truth::Yes, Action::Untrack, _))))
        })
    }

    /// What happens to the packet's destination if its connection is tracked.
    pub fn fate(&self) -> Fate {
        let mut bases: Vec<&Base> = self.bases.iter().filter(|base| base.is_nat).collect();
        bases.sort_by_key(|base| base.priority);
        for base in bases {
            if let Walk::Done(Some((truth, Action::Translate(to), chain))) =
                self.walk(&base.chain, Truth::Yes, 0)
            {
                return Fate::Changed {
                    surely: truth == Truth::Yes,
                    to,
                    chain,
                };
            }
        }
        Fate::Kept
    }

    /// Follows the packet through a chain that it reaches with the certainty `reached`. The first action that matters
    /// counts, even if it only may happen.
    fn walk(&self, chain: &str, reached: Truth, depth: usize) -> Walk {
        // The kernel allows a depth of sixteen.
        let Some(rules) = self.chains.get(chain).filter(|_| depth <= 16) else {
            return Walk::Back;
        };
        for rule in rules {
            let truth = reached.and(rule.applies);
            if truth == Truth::No {
                continue;
            }
            let surely = rule.applies == Truth::Yes;
            match &rule.action {
                Action::Translate(_) | Action::Untrack => {
                    return Walk::Done(Some((truth, rule.action.clone(), chain.to_owned())));
                }
                Action::Jump(next) | Action::Goto(next) => {
                    match self.walk(next, truth, depth + 1) {
                        Walk::Done(Some(found)) => return Walk::Done(Some(found)),
                        Walk::Done(None) if surely => return Walk::Done(None),
                        _ => {}
                    }
                    if surely && matches!(rule.action, Action::Goto(_)) {
                        return Walk::Back;
                    }
                }
                Action::Return if surely => return Walk::Back,
                Action::Stop if surely => return Walk::Done(None),
                Action::Return | Action::Stop | Action::Nothing => {}
            }
        }
        Walk::Back
    }
}

/// How a walk through a chain ends.
enum Walk {
    /// It ends at the chain's end, so the chain before continues.
    Back,
    /// It ends the hook. If something was done to the packet: with what certainty, which action, and in which chain.
    Done(Option<(Truth, Action, String)>),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(chains: &[(&str, &[(Truth, Action)])]) -> Rules {
        let rule = |(applies, action): &(Truth, Action)| Rule {
            applies: *applies,
            action: action.clone(),
        };
        let chains = chains
            .iter()
            .map(|(name, rules)| ((*name).to_owned(), rules.iter().map(rule).collect()));
        Rules {
            bases: vec![Base {
                chain: "first".into(),
                priority: -100,
                is_nat: true,
            }],
            chains: chains.collect(),
            nat: None,
        }
    }

    fn to() -> Action {
        Action::Translate("172.17.0.2:80".into())
    }

    fn changed(surely: bool, chain: &str) -> Fate {
        Fate::Changed {
            surely,
            to: "172.17.0.2:80".into(),
            chain: chain.into(),
        }
    }

    #[test]
    fn the_first_rule_that_applies_counts() {
        use Truth::{Maybe, No, Yes};
        let fate = |chain: &[(Truth, Action)]| rules(&[("first", chain)]).fate();
        assert_eq!(fate(&[]), Fate::Kept);
        assert_eq!(fate(&[(No, to())]), Fate::Kept);
        assert_eq!(fate(&[(Maybe, to())]), changed(false, "first"));
        assert_eq!(fate(&[(Yes, Action::Return), (Yes, to())]), Fate::Kept);
        assert_eq!(fate(&[(Yes, Action::Stop), (Yes, to())]), Fate::Kept);
        let perhaps_spared = [(Maybe, Action::Return), (Yes, to())];
        assert_eq!(fate(&perhaps_spared), changed(true, "first"));
    }

    #[test]
    fn jumps_come_back_and_loops_end() {
        use Truth::{Maybe, Yes};
        let jump = |truth, chain: &str| (truth, Action::Jump(chain.into()));
        let through = rules(&[
            ("first", &[jump(Yes, "empty"), jump(Maybe, "docker")]),
            ("empty", &[(Yes, Action::Return)]),
            ("docker", &[(Yes, to())]),
        ]);
        assert_eq!(through.fate(), changed(false, "docker"));
        let circle = rules(&[("first", &[jump(Yes, "first"), (Yes, Action::Nothing)])]);
        assert_eq!(circle.fate(), Fate::Kept);
        let away = rules(&[
            ("first", &[(Yes, Action::Goto("empty".into())), (Yes, to())]),
            ("empty", &[]),
        ]);
        assert_eq!(away.fate(), Fate::Kept);
    }

    #[test]
    fn only_what_comes_before_tracking_untracks() {
        let mut early = rules(&[("first", &[(Truth::Yes, Action::Untrack)])]);
        assert!(!early.untracks());
        early.bases[0].priority = -300;
        assert!(early.untracks());
        let mut perhaps = rules(&[("first", &[(Truth::Maybe, Action::Untrack)])]);
        perhaps.bases[0].priority = -300;
        assert!(!perhaps.untracks());
    }
}
