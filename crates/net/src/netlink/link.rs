//! Network interfaces.

use std::net::IpAddr;

use futures_util::TryStreamExt;
use rtnetlink::packet_route::link::{LinkAttribute, LinkMessage};

use super::adapter::{Adapter, adapter};
use super::{Netlink, all, failed};
use crate::{Error, Result};

/// A network interface that has a MAC address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The kernel's number for it.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Its Ethernet address; all zero for the loopback interface.
    pub mac: [u8; 6],
    /// The largest IP packet, bytes.
    pub mtu: u32,
    /// Whether it is administratively up.
    pub up: bool,
}

impl Netlink {
    /// The link with this name.
    ///
    /// # Errors
    /// [`Error::NoLink`], which lists the links that exist; [`Error::NotEthernet`]; [`Error::System`].
    pub async fn link_named(&self, name: &str) -> Result<Link> {
        link(&self.link_message(name).await?)
    }

    /// What the kernel says of the link with this name.
    pub(super) async fn link_message(&self, name: &str) -> Result<LinkMessage> {
        let mut links = self.links().await?;
        match links.iter().position(|link| adapter(link).name == name) {
            Some(found) => Ok(links.swap_remove(found)),
            None => Err(Error::NoLink {
                name: name.to_owned(),
                existing: links
                    .iter()
                    .map(|link| adapter(link).name)
                    .collect::<Vec<_>>()
                    .join(", "),
            }),
        }
    }

    /// The link that holds this address.
    ///
    /// # Errors
    /// [`Error::NoLinkHolds`], which lists the addresses that exist; [`Error::NotEthernet`];
    /// [`Error::System`].
    pub async fn link_with(&self, address: IpAddr) -> Result<Link> {
        let held = self.addresses().await?;
        if let Some((index, _)) = held.iter().find(|(_, held)| *held == address) {
            return self.link_at(*index).await;
        }
        let links = self.links().await?;
        let name = |index: u32| {
            links
                .iter()
                .find(|link| link.header.index == index)
                .map_or("?".to_owned(), |link| adapter(link).name)
        };
        let existing: Vec<String> = held
            .iter()
            .map(|(index, address)| format!("{address} on {}", name(*index)))
            .collect();
        Err(Error::NoLinkHolds {
            address,
            existing: existing.join(", "),
        })
    }

    /// The current name of the link with this index; `None` if this network namespace has no such link.
    ///
    /// # Errors
    /// [`Error::System`], or [`Error::NotEthernet`] if the link is of another kind.
    pub async fn name_of_link(&self, index: u32) -> Result<Option<String>> {
        match self.link_at(index).await {
            Ok(link) => Ok(Some(link.name)),
            Err(error) if error.errno() == Some(libc::ENODEV) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The link with this index.
    pub(crate) async fn link_at(&self, index: u32) -> Result<Link> {
        let doing = || format!("read the interface with index {index}");
        let mut found = Box::pin(self.handle.link().get().match_index(index).execute());
        match found.try_next().await.map_err(failed(doing()))? {
            Some(message) => link(&message),
            None => Err(Error::System {
                doing: doing(),
                cause: std::io::Error::from_raw_os_error(libc::ENODEV),
            }),
        }
    }

    pub(super) async fn links(&self) -> Result<Vec<LinkMessage>> {
        all("list the interfaces", self.handle.link().get().execute()).await
    }
}

fn link(message: &LinkMessage) -> Result<Link> {
    let Adapter {
        index,
        name,
        mtu,
        up,
        ..
    } = adapter(message);
    let mac = message
        .attributes
        .iter()
        .find_map(|attribute| match attribute {
            LinkAttribute::Address(bytes) => <[u8; 6]>::try_from(bytes.as_slice()).ok(),
            _ => None,
        });
    match mac {
        Some(mac) => Ok(Link {
            index,
            name,
            mac,
            mtu,
            up,
        }),
        None => Err(Error::NotEthernet { name }),
    }
}
