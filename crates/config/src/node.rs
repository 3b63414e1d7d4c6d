//! `[[node]]`: one machine.

use std::ops::Range;

use toml::Spanned;

use crate::address::NodeAddress;
use crate::document::suggestion;
use crate::field::{Parsed, parse, parse_list};
use crate::name::{InterfaceName, NodeName};
use crate::number::in_range;
use crate::problem::Problem;
use crate::raw::RawNode;
use crate::report::Report;

/// One machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Unique among the nodes.
    pub name: NodeName,
    /// Its own address, unique among nodes and cluster addresses.
    pub address: NodeAddress,
    /// `None`: the interface that holds `address`.
    pub interface: Option<InterfaceName>,
    /// What it does.
    pub roles: Roles,
    /// Share under [`crate::Policy::Weighted`]; 0 takes no new connections.
    pub weight: u8,
}

/// What a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Roles {
    /// Connection server only.
    Cs,
    /// Data server only.
    Ds,
    /// Both at once.
    Both,
    /// In front of several connection servers, and nothing else.
    Switch,
}

impl Roles {
    /// Whether the node is a connection server.
    pub fn is_cs(self) -> bool {
        matches!(self, Self::Cs | Self::Both)
    }

    /// Whether the node is a data server.
    pub fn is_ds(self) -> bool {
        matches!(self, Self::Ds | Self::Both)
    }

    /// Whether the node is a switch.
    pub fn is_switch(self) -> bool {
        self == Self::Switch
    }

    /// Their names in the file.
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Self::Cs => &["cs"],
            Self::Ds => &["ds"],
            Self::Both => &["cs", "ds"],
            Self::Switch => &["switch"],
        }
    }

    /// As `enum role` of `bpf/abi.h`.
    pub fn bits(self) -> u8 {
        let bits = match self {
            Self::Cs => baton_abi::ROLE_CS,
            Self::Ds => baton_abi::ROLE_DS,
            Self::Both => baton_abi::ROLE_CS | baton_abi::ROLE_DS,
            Self::Switch => baton_abi::ROLE_SWITCH,
        };
        bits as u8
    }
}

/// What could be read of a node. The checks between nodes work on these, so that one wrong key
/// does not hide the rest.
pub(crate) struct Draft {
    pub(crate) header: Range<usize>,
    pub(crate) name: Option<Spanned<NodeName>>,
    pub(crate) address: Option<Spanned<NodeAddress>>,
    pub(crate) roles: Option<Spanned<Roles>>,
    pub(crate) weight: Option<u8>,
    interface: Option<Option<InterfaceName>>,
}

impl Draft {
    pub(crate) fn parse(report: &mut Report<'_>, raw: Spanned<RawNode>) -> Self {
        let header = raw.span();
        let raw = raw.into_inner();
        let missing = |key: &str, example: &str| {
            Problem::new(
                format!("this node has no {key}"),
                format!("add {key} = {example}"),
            )
        };
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
        let interface = parse(report, "interface", raw.interface, |text| text.parse());
        let weight = parse(report, "weight", raw.weight, |n| {
            in_range::<u8>("weight", n, 0..=255)
        });
        if let (Parsed::Right(weight), Some(roles)) = (&weight, &roles)
            && !roles.get_ref().is_ds()
        {
            report.warning(
                weight.span(),
                Problem::new(
                    "weight has no effect on a node without the role \"ds\"",
                    "remove it, or add the role",
                ),
            );
        }
        Self {
            header,
            name,
            address,
            roles,
            weight: weight.or(1),
            interface: interface.optional(),
        }
    }

    /// The node, if all of it could be read.
    pub(crate) fn finish(self) -> Option<Node> {
        Some(Node {
            name: self.name?.into_inner(),
            address: self.address?.into_inner(),
            interface: self.interface?,
            roles: self.roles?.into_inner(),
            weight: self.weight?,
        })
    }
}

const ROLES: &str = "[\"cs\"], [\"ds\"], [\"cs\", \"ds\"] or [\"switch\"]";

fn role(text: String) -> Result<Roles, Problem> {
    match text.as_str() {
        "cs" => Ok(Roles::Cs),
        "ds" => Ok(Roles::Ds),
        "switch" => Ok(Roles::Switch),
        _ => Err(Problem::new(
            format!("there is no role \"{}\"", text.escape_debug()),
            suggestion(&text, &["cs", "ds", "switch"]),
        )),
    }
}

fn combine(report: &mut Report<'_>, roles: Spanned<Vec<Spanned<Roles>>>) -> Parsed<Roles> {
    let span = roles.span();
    let mut sum: Option<Roles> = None;
    for role in roles.into_inner() {
        sum = match (sum, role.get_ref()) {
            (None, &role) => Some(role),
            (Some(Roles::Cs), Roles::Ds) | (Some(Roles::Ds), Roles::Cs) => Some(Roles::Both),
            (Some(one), other) if (one == Roles::Switch) != (*other == Roles::Switch) => {
                let what = "a switch is in front of the connection servers, and nothing else";
                let remedy = "give the other role to another node";
                report.error(role.span(), Problem::new(what, remedy));
                return Parsed::Wrong;
            }
            (Some(_), _) => {
                report.error(
                    role.span(),
                    Problem::new("this role is listed twice", "list each role once"),
                );
                return Parsed::Wrong;
            }
        };
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
        assert_eq!(u32::from(Roles::Cs.bits()), baton_abi::ROLE_CS);
        assert_eq!(u32::from(Roles::Ds.bits()), baton_abi::ROLE_DS);
        assert_eq!(Roles::Both.bits(), Roles::Cs.bits() | Roles::Ds.bits());
        assert_eq!(u32::from(Roles::Switch.bits()), baton_abi::ROLE_SWITCH);
    }
}
