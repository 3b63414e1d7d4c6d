//! `roles` of a node: what it does in the cluster.

use crate::reading::report::Report;
use crate::reading::value::{Value, list, value};
use crate::values::words::one_of;

/// What a node does in the cluster: at least one role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roles(u8);

/// Each role by its name in the file.
const NAMED: &[(&str, Roles)] = &[
    ("cs", Roles::CS),
    ("ds", Roles::DS),
    ("dispatcher", Roles::DISPATCHER),
    ("switch", Roles::SWITCH),
    ("io", Roles::IO),
    ("app", Roles::APP),
];

impl Roles {
    /// Connection server only.
    pub const CS: Self = Self(1);
    /// Data server only.
    pub const DS: Self = Self(1 << 1);
    /// Dispatcher only.
    pub const DISPATCHER: Self = Self(1 << 2);
    /// Switch only: it can be nothing else.
    pub const SWITCH: Self = Self(1 << 3);
    /// I/O server only: it can be nothing else.
    pub const IO: Self = Self(1 << 4);
    /// Application node only: it can be nothing else.
    pub const APP: Self = Self(1 << 5);
    /// Connection server and data server at once.
    pub const CS_AND_DS: Self = Self(Self::CS.0 | Self::DS.0);

    /// Whether both have a role in common.
    fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether the node is a connection server.
    pub fn is_cs(self) -> bool {
        self.meets(Self::CS)
    }

    /// Whether the node is a data server.
    pub fn is_ds(self) -> bool {
        self.meets(Self::DS)
    }

    /// Whether data servers ask the node which data server is to serve a request.
    pub fn is_dispatcher(self) -> bool {
        self.meets(Self::DISPATCHER)
    }

    /// Whether the node needs to know which data servers are alive, because it sends connections to them.
    pub fn needs_liveness(self) -> bool {
        self.meets(Self::CS_AND_DS)
    }

    /// Whether the node is in front of the connection servers. It has no other role then.
    pub fn is_switch(self) -> bool {
        self.meets(Self::SWITCH)
    }

    /// Whether the node has the cluster addresses and the TCP of application nodes. It has no other role then.
    pub fn is_io(self) -> bool {
        self.meets(Self::IO)
    }

    /// Whether programs on the node have virtual sockets. It has no other role then.
    pub fn is_app(self) -> bool {
        self.meets(Self::APP)
    }

    /// Whether one of the roles allows no other role beside it.
    fn is_alone(self) -> bool {
        self.is_switch() || self.is_io() || self.is_app()
    }

    /// The names of the roles in the file.
    pub fn names(self) -> Vec<&'static str> {
        let has = NAMED.iter().filter(|(_, role)| self.meets(*role));
        has.map(|(name, _)| *name).collect()
    }

    /// The roles that the BPF programs know, as bits of `enum role` in `bpf/abi/settings.h`.
    pub fn bits(self) -> u8 {
        let bit = |role, bit: u32| if self.meets(role) { bit } else { 0 };
        let bits = bit(Self::CS, baton_abi::ROLE_CS)
            | bit(Self::DS, baton_abi::ROLE_DS)
            | bit(Self::SWITCH, baton_abi::ROLE_SWITCH);
        bits as u8
    }

    /// The roles of both; `None` if they have a role in common.
    fn and(self, other: Self) -> Option<Self> {
        (!self.meets(other)).then_some(Self(self.0 | other.0))
    }
}

/// Displays the roles as a list, as in the file.
impl std::fmt::Display for Roles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.names())
    }
}

/// Roles as the file may have them, for errors.
pub(crate) const EXAMPLE: &str =
    "[\"cs\"], [\"ds\"], [\"cs\", \"ds\"] or [\"switch\"], or [\"io\"] or [\"app\"]";

/// Reads the roles of a node.
pub(crate) fn roles(report: &mut Report<'_>, key: &str, given: Value<'_>) -> Option<Roles> {
    let at = given.span();
    let role = value(|_, name: String| one_of("role", &name, NAMED));
    let mut sum: Option<Roles> = None;
    for role in list(role)(report, key, given)? {
        let (at, role) = (role.span(), role.into_inner());
        let Some(before) = sum else {
            sum = Some(role);
            continue;
        };
        if before != role && (before.is_alone() || role.is_alone()) {
            let what = if before.is_switch() || role.is_switch() {
                "a switch cannot have another role: it is in front of the connection servers"
            } else {
                "an I/O server or application node cannot have another role"
            };
            report.error(at, what, "give the other role to another node");
            return None;
        }
        sum = before.and(role);
        if sum.is_none() {
            report.error(at, "this role is listed twice", "list each role once");
            return None;
        }
    }
    if sum.is_none() {
        report.error(at, "this node has no roles", format!("write {EXAMPLE}"));
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_those_of_the_programs() {
        assert_eq!(u32::from(Roles::CS.bits()), baton_abi::ROLE_CS);
        assert_eq!(u32::from(Roles::DS.bits()), baton_abi::ROLE_DS);
        let both = Roles::CS.bits() | Roles::DS.bits();
        assert_eq!(Roles::CS_AND_DS.bits(), both);
        assert_eq!(Roles::DISPATCHER.bits(), 0);
        assert_eq!(u32::from(Roles::SWITCH.bits()), baton_abi::ROLE_SWITCH);
        let all = Roles::CS_AND_DS.and(Roles::DISPATCHER).unwrap();
        assert_eq!((all.bits(), all.is_dispatcher()), (both, true));
        assert_eq!(all.to_string(), r#"["cs", "ds", "dispatcher"]"#);
        assert_eq!(all.and(Roles::DS), None);
    }
}
