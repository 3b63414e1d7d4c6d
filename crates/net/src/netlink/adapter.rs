//! The properties of an interface that tell whether baton can use it.

use futures_util::TryStreamExt;
use rtnetlink::packet_route::link::{
    LinkAttribute, LinkFlags, LinkInfo, LinkLayerType, LinkMessage,
};

use super::{Netlink, failed};
use crate::{Error, Result};

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
        let doing = "list the interfaces";
        let mut messages = self.handle.link().get().execute();
        let mut existing = Vec::new();
        while let Some(message) = messages.try_next().await.map_err(failed(doing))? {
            let adapter = adapter(&message);
            if adapter.name == name {
                return Ok(adapter);
            }
            existing.push(adapter.name);
        }
        Err(Error::NoLink {
            name: name.to_owned(),
            existing: existing.join(", "),
        })
    }

    /// The names of the VLAN interfaces above the interface with this index.
    ///
    /// # Errors
    /// [`Error::System`].
    pub async fn vlans_above(&self, index: u32) -> Result<Vec<String>> {
        let doing = "list the interfaces";
        let mut messages = self.handle.link().get().execute();
        let mut names = Vec::new();
        while let Some(message) = messages.try_next().await.map_err(failed(doing))? {
            let is_above = message.attributes.contains(&LinkAttribute::Link(index));
            let adapter = adapter(&message);
            if is_above && adapter.kind.as_deref() == Some("vlan") {
                names.push(adapter.name);
            }
        }
        Ok(names)
    }
}

fn adapter(message: &LinkMessage) -> Adapter {
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
