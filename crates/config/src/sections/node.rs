//! `[[node]]`: one machine.

use toml::Spanned;

use crate::reading::report::Report;
use crate::reading::schema::keys;
use crate::reading::value::{Value, list, plain, text, value};
use crate::sections::roles::{EXAMPLE, Roles, roles};
use crate::sections::xdp::Xdp;
use crate::values::address::NodeAddress;
use crate::values::interfaces::Names;
use crate::values::mac::MacAddress;
use crate::values::name::{InterfaceName, NodeName};
use crate::values::number::number;

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

keys! {
    /// The machines of the cluster. Their roles are "cs" (connection server), "ds" (data server), "dispatcher" (chooses
    /// data servers for data servers that ask it), or several of these. The role "switch" may be given to one node, on
    /// one LAN with the connection servers: it stands in front of several of them and spreads connections. Without a
    /// switch the connection server has the cluster address; with one, the switch has it. With [forwarding] the only
    /// roles are "io" (the one I/O server) and "app" (application node).
    Keys "[[node]]", lacks "this node has no" {
        name: NodeName = text, required "\"…\"";
        /// the node's own address, not the cluster address
        address: NodeAddress = text, required "\"192.0.2.2\", its own";
        /// default: the one that holds `address`. In a VLAN name the VLAN's interface: "eth0.10". A node on several
        /// networks names all interfaces that packets of clients, messages of other nodes or responses pass, at most 4.
        /// Clients' packets arrive at the first one: it gets the cluster address, and ARP announces it only there.
        /// Messages and clients' packets go to another node by the interface that leads to its `address`. For example,
        /// with a public network on eth0, a private one on eth1, and an `address` on the private network:
        ///   interface = ["eth0", "eth1"]
        /// Several cards that are bonded or bridged are one interface: name the bond or the bridge
        interface: Vec<InterfaceName> = value(Names::parse);
        /// how the program of a connection server or switch runs there. "native": in the driver, or the node does not
        /// start. "generic": after the kernel has made its own form of each packet, correct but several times slower.
        /// "auto": native if the driver supports it, else generic. It is the same at all interfaces of a node. With
        /// several interfaces, native needs drivers that send packets from another card; with "auto", if one cannot,
        /// all run generic
        xdp: Xdp = text, default "native";
        /// default: none. Further MAC addresses whose frames the interface takes: of a macvlan, a bridge, or VRRP
        /// (keepalived with use_vmac: 00:00:5e:00:01 and the number of the virtual router). At most 4. Name only
        /// addresses whose frames reach this node alone, or that move between nodes together with the cluster
        /// addresses: two nodes that both take a client's packet would both answer it
        also_mac: Vec<MacAddress> = also_mac, default [], example ["00:00:5e:00:01:0a"];
        roles: Roles = roles, required EXAMPLE;
        /// the share under all policies except "round-robin", 0-255; 0 takes no new connections. A service can set
        /// other weights: see its `weights`
        weight: u8 = number(0..=u8::MAX), default 1;
        /// Then the node has the cluster's secret. With own keys, a thief of this machine can speak for it and for no
        /// other node, and other nodes take no commands from it (nor `baton drain` of others). Not for connection
        /// servers, "io" and "app". Make its keys where the secret is, anew for every node that is added, and put them
        /// in its key_file (0600):
        ///   (umask 077; baton key ds1 > ds1.key)
        /// To rotate, make keys from the next secret and the one before (`baton key ds1 --previous`)
        own_keys: bool = plain, default false, example true;
    }
}

impl Keys {
    /// Whether the node has this role; `None` if its roles could not be read.
    pub(crate) fn has(&self, role: fn(Roles) -> bool) -> Option<bool> {
        self.roles.get().map(|roles| role(*roles))
    }

    /// Reports keys that do not fit the roles of the node.
    pub(crate) fn check(&self, report: &mut Report<'_>) {
        let Some(roles) = self.roles.get() else {
            return;
        };
        let with_program = (roles.is_cs() || roles.is_switch(), "\"cs\" or \"switch\"");
        let with_share = (roles.is_ds() || roles.is_app(), "\"ds\" or \"app\"");
        let mut needs =
            |(has_role, needed): (bool, &str), key: &str, at: Option<_>, remedy: &str| {
                if at.is_some() && !has_role {
                    let what = format!("{key} has no effect on a node without the role {needed}");
                    report.warning(at, what, remedy);
                }
            };
        let add = "remove it, or add one of them";
        let takes_all = "remove it: a data server takes all frames that its kernel takes";
        needs(with_program, "xdp", self.xdp.span(), add);
        needs(with_program, "also_mac", self.also_mac.span(), takes_all);
        needs(with_share, "weight", self.weight.span(), add);
        let what = match roles {
            _ if self.own_keys.get() != Some(&true) => return,
            _ if roles.is_cs() => {
                "a connection server needs more than its own keys: its SYN cookies are made with the cluster's secret"
            }
            _ if roles.is_io() || roles.is_app() => {
                "an I/O server or application node needs more than its own keys: their channels need the cluster's secret"
            }
            _ => return,
        };
        let remedy = "remove own_keys, and give this node the secret";
        report.error(self.own_keys.span(), what, remedy);
    }

    /// The node, if all of it could be read.
    pub(crate) fn finish(self) -> Option<Node> {
        Some(Node {
            name: self.name.value()?,
            address: self.address.value()?,
            interfaces: self.interface.or(Vec::new())?,
            xdp: self.xdp.value()?,
            also_mac: self.also_mac.value()?,
            roles: self.roles.value()?,
            weight: self.weight.value()?,
            own_keys: self.own_keys.value()?,
        })
    }
}

/// Reads the further MAC addresses of a node.
fn also_mac(report: &mut Report<'_>, key: &str, value: Value<'_>) -> Option<Vec<MacAddress>> {
    const MOST: usize = baton_abi::ALSO_MACS as usize;
    let at = value.span();
    let found: Vec<Spanned<MacAddress>> = list(text)(report, key, value)?;
    if found.len() > MOST {
        let what = format!("{} MAC addresses are too many", found.len());
        let remedy = format!("name at most {MOST} that this node has besides its interface's own");
        report.error(at, what, remedy);
        return None;
    }
    let mut all = Vec::new();
    for mac in found {
        if all.contains(mac.get_ref()) {
            let remedy = "list each of them once";
            report.error(mac.span(), "this MAC address is listed twice", remedy);
            return None;
        }
        all.push(mac.into_inner());
    }
    Some(all)
}
