//! The properties of an interface that tell whether baton can use it.

use rtnetlink::packet_route::link::{
    LinkAttribute, LinkFlags, LinkInfo, LinkLayerType, LinkMessage,
};

use super::Netlink;
use crate::Result;

/// An interface of any kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adapter {
    /// The kernel's number for it.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Whether its frames are Ethernet frames (ARPHRD_ETHER).
    pub ethernet: bool,
    /// Whether it is administratively up.
    pub up: bool,
    /// Whether the link has a carrier.
    pub carrier: bool,
    /// The largest IP packet, bytes.
    pub mtu: u32,
    /// The kind of a virtual interface, such as "veth" or "bond"; `None` for a NIC.
    pub kind: Option<String>,
}

impl Netlink {
    /// The interface with this name.
    ///
    /// # Errors
    /// [`Error::NoLink`], which lists the interfaces that exist; [`Error::System`].
    pub async fn adapter(&self, name: &str) -> Result<Adapter> {
        Ok(adapter(&self.link_message(name).await?))
    }

    /// The names of the VLAN interfaces above the interface with this index.
    ///
    /// # Errors
    /// [`Error::System`].
    pub async fn vlans_above(&self, index: u32) -> Result<Vec<String>> {
        let above = LinkAttribute::Link(index);
        let mut messages = self.links().await?;
        messages.retain(|message| message.attributes.contains(&above));
        let adapters = messages.iter().map(adapter);
        let vlans = adapters.filter(|adapter| adapter.kind.as_deref() == Some("vlan"));
        Ok(vlans.map(|adapter| adapter.name).collect())
    }
}

pub(super) fn adapter(message: &LinkMessage) -> Adapter {
    let mut adapter = Adapter {
        index: message.header.index,
        name: String::new(),
        ethernet: message.header.link_layer_type == LinkLayerType::Ether,
        up: message.header.flags.contains(LinkFlags::Up),
        carrier: message.header.flags.contains(LinkFlags::LowerUp),
        mtu: 0,
        kind: None,
    };
    for attribute in &message.attributes {
        match attribute {
            LinkAttribute::IfName(name) => adapter.name.clone_from(name),
            LinkAttribute::Mtu(mtu) => adapter.mtu = *mtu,
            LinkAttribute::LinkInfo(infos) => adapter.kind = infos.iter().find_map(kind),
            _ => {}
        }
    }
    adapter
}

fn kind(info: &LinkInfo) -> Option<String> {
    match info {
        LinkInfo::Kind(kind) => Some(kind.to_string()),
        _ => None,
    }
}
