//! `[[node]]`: one machine.

use std::ops::Range;

use toml::Spanned;

use crate::reading::field::{List, Parsed, parse, parse_list};
use crate::reading::problem::Problem;
use crate::reading::raw::RawNode;
use crate::reading::report::Report;
use crate::sections::xdp::Xdp;
use crate::values::address::NodeAddress;
use crate::values::interfaces::Names;
use crate::values::mac::MacAddress;
use crate::values::name::{InterfaceName, NodeName};
use crate::values::number::in_range;
use crate::values::words::one_of;

/// One machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The name, unique among the nodes.
    pub name: NodeName,
    /// The node's own address, unique among nodes and cluster addresses.
    pub address: NodeAddress,
    /// The node's interfaces; packets of clients come by the first one. Empty: the interface that has `address`.
    pub interfaces: Vec<InterfaceName>,
    /// The mode in which the program of a connection server or switch runs on these interfaces.
    pub xdp: Xdp,
    /// MAC addresses besides the interface's own. Frames to them are for this node too.
    pub also_mac: Vec<MacAddress>,
    /// The roles of the node.
    pub roles: Roles,
    /// The node's share under [`crate::Policy::Weighted`]. A node with weight 0 takes no new connections.
    pub weight: u8,
    /// Whether the node has only its own keys and not the cluster's secret. Other nodes take no commands from such a
    /// node.
    pub own_keys: bool,
}

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

/// The values of a node that could be read. The checks between nodes work on drafts, so that one wrong
/// key does not hide the other errors.
pub(crate) struct Draft {
    pub(crate) header: Range<usize>,
    pub(crate) name: Option<Spanned<NodeName>>,
    pub(crate) address: Option<Spanned<NodeAddress>>,
    pub(crate) roles: Option<Spanned<Roles>>,
    pub(crate) weight: Option<u8>,
    interfaces: Option<Vec<InterfaceName>>,
    xdp: Option<Xdp>,
    also_mac: Option<Vec<MacAddress>>,
    own_keys: Option<bool>,
}

impl Draft {
    pub(crate) fn parse(report: &mut Report<'_>, raw: Spanned<RawNode>) -> Self {
        let header = raw.span();
        let raw = raw.into_inner();
        let missing = |key, example| Problem::missing("this node", key, example);
        let name = parse(report, "name", raw.name, |text| text.parse()).required(
            report,
            header.clone(),
            || missing("name", "\"…\""),
        );
        let address = parse(report, "address", raw.address, |text| text.parse()).required(
            report,
            header.clone(),
            || missing("address", "\"192.0.2.2\", its own"),
        );
        let roles_given = match parse_list(report, "roles", raw.roles, role) {
            Parsed::Right(roles) => combine(report, roles),
            Parsed::Absent => Parsed::Absent,
            Parsed::Wrong => Parsed::Wrong,
        };
        let roles = roles_given.required(report, header.clone(), || missing("roles", ROLES));
        let interfaces = parse(report, "interface", raw.interface, Names::parse);
        let xdp = parse(report, "xdp", raw.xdp, |text| text.parse());
        warn_without_xdp(report, &xdp, &roles);
        let also_mac = also_mac(report, raw.also_mac, roles.as_ref());
        let weight = parse(report, "weight", raw.weight, |n| {
            in_range::<u8>("weight", n, 0..=255)
        });
        if let (Parsed::Right(weight), Some(roles)) = (&weight, &roles)
            && !roles.get_ref().is_ds()
            && !roles.get_ref().is_app()
        {
            report.warning(
                weight.span(),
                Problem::new(
                    "weight has no effect on a node without the role \"ds\" or \"app\"",
                    "remove it, or add one of them",
                ),
            );
        }
        let own_keys = parse(report, "own_keys", raw.own_keys, Ok);
        refuse_own_keys(report, &own_keys, &roles);
        Self {
            header,
            name,
            address,
            roles,
            own_keys: own_keys.or(false),
            weight: weight.or(1),
            interfaces: interfaces.or(Vec::new()),
            xdp: xdp.or(Xdp::default()),
            also_mac,
        }
    }

    /// Whether the node has this role; `None` if its roles could not be read.
    pub(crate) fn has(&self, role: fn(Roles) -> bool) -> Option<bool> {
        self.roles.as_ref().map(|roles| role(*roles.get_ref()))
    }

    /// The node, if all of it could be read.
    pub(crate) fn finish(self) -> Option<Node> {
        Some(Node {
            name: self.name?.into_inner(),
            address: self.address?.into_inner(),
            interfaces: self.interfaces?,
            xdp: self.xdp?,
            also_mac: self.also_mac?,
            roles: self.roles?.into_inner(),
            weight: self.weight?,
            own_keys: self.own_keys?,
        })
    }
}

/// Reports `own_keys = true` at a node with a role that needs the cluster's secret.
fn refuse_own_keys(
    report: &mut Report<'_>,
    own_keys: &Parsed<bool>,
    roles: &Option<Spanned<Roles>>,
) {
    let (Parsed::Right(own), Some(roles)) = (own_keys, roles) else {
        return;
    };
    let roles = roles.get_ref();
    if !*own.get_ref() || !(roles.is_cs() || roles.is_io() || roles.is_app()) {
        return;
    }
    let what = if roles.is_cs() {
        "a connection server needs more than its own keys: its SYN cookies are made with the cluster's secret"
    } else {
        "an I/O server or application node needs more than its own keys: their channels need the cluster's secret"
    };
    report.error(
        own.span(),
        Problem::new(what, "remove own_keys, and give this node the secret"),
    );
}

fn warn_without_xdp(report: &mut Report<'_>, xdp: &Parsed<Xdp>, roles: &Option<Spanned<Roles>>) {
    if let (Parsed::Right(xdp), Some(roles)) = (xdp, roles)
        && !roles.get_ref().is_cs()
        && !roles.get_ref().is_switch()
    {
        report.warning(
            xdp.span(),
            Problem::new(
                "xdp has no effect on a node without the role \"cs\" or \"switch\"",
                "remove it, or add one of them",
            ),
        );
    }
}

/// The further MAC addresses of a node; `None` if the list is wrong.
fn also_mac(
    report: &mut Report<'_>,
    list: List,
    roles: Option<&Spanned<Roles>>,
) -> Option<Vec<MacAddress>> {
    const MOST: usize = baton_abi::ALSO_MACS as usize;
    let found = match parse_list(report, "also_mac", list, |text| text.parse()) {
        Parsed::Absent => return Some(Vec::new()),
        Parsed::Wrong => return None,
        Parsed::Right(found) => found,
    };
    if let Some(roles) = roles
        && !roles.get_ref().is_cs()
        && !roles.get_ref().is_switch()
    {
        report.warning(
            found.span(),
            Problem::new(
                "also_mac has no effect on a node without the role \"cs\" or \"switch\"",
                "remove it: a data server takes all frames that its kernel takes",
            ),
        );
    }
    if found.get_ref().len() > MOST {
        report.error(
            found.span(),
            Problem::new(
                format!("{} MAC addresses are too many", found.get_ref().len()),
                format!("name at most {MOST} that this node has besides its interface's own"),
            ),
        );
        return None;
    }
    let mut all = Vec::new();
    for mac in found.into_inner() {
        if all.contains(mac.get_ref()) {
            report.error(
                mac.span(),
                Problem::new("this MAC address is listed twice", "list each of them once"),
            );
            return None;
        }
        all.push(mac.into_inner());
    }
    Some(all)
}

const ROLES: &str =
    "[\"cs\"], [\"ds\"], [\"cs\", \"ds\"] or [\"switch\"], or [\"io\"] or [\"app\"]";

fn role(text: String) -> Result<Roles, Problem> {
    one_of("role", &text, NAMED)
}

fn combine(report: &mut Report<'_>, roles: Spanned<Vec<Spanned<Roles>>>) -> Parsed<Roles> {
    let span = roles.span();
    let mut sum: Option<Roles> = None;
    for role in roles.into_inner() {
        let is_alone = |roles: &Roles| roles.is_alone() && *roles != *role.get_ref();
        if let Some(sum) = &sum
            && (is_alone(sum) || role.get_ref().is_alone() && sum != role.get_ref())
        {
            let is_switch = sum.is_switch() || role.get_ref().is_switch();
            let what = if is_switch {
                "a switch cannot have another role: it is in front of the connection servers"
            } else {
                "an I/O server or application node cannot have another role"
            };
            let remedy = "give the other role to another node";
            report.error(role.span(), Problem::new(what, remedy));
            return Parsed::Wrong;
        }
        sum = match sum {
            None => Some(*role.get_ref()),
            Some(sum) => sum.and(*role.get_ref()),
        };
        if sum.is_none() {
            report.error(
                role.span(),
                Problem::new("this role is listed twice", "list each role once"),
            );
            return Parsed::Wrong;
        }
    }
    match sum {
        Some(roles) => Parsed::Right(Spanned::new(span, roles)),
        None => {
            let remedy = format!("write {ROLES}");
            report.error(span, Problem::new("this node has no roles", remedy));
            Parsed::Wrong
        }
    }
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
