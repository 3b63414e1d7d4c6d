//! Addresses of interfaces.

use std::net::IpAddr;

use rtnetlink::packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};

use super::{Netlink, all, failed, unless};
use crate::Result;

impl Netlink {
    /// Gives `interface` the address as a /32 (or /128), without duplicate address detection. Returns `false` if it
    /// already had the address.
    ///
    /// # Errors
    /// [`crate::Error::NoLink`]; [`crate::Error::System`].
    pub async fn add_address(&self, interface: &str, address: IpAddr) -> Result<bool> {
        let link = self.link_named(interface).await?;
        let mut request = self
            .handle
            .address()
            .add(link.index, address, host_prefix(address));
        if address.is_ipv6() {
            request
                .message_mut()
                .attributes
                .push(AddressAttribute::Flags(AddressFlags::Nodad));
        }
        let doing = format!("add the address {address} to {interface}");
        unless(
            request.execute().await.map_err(failed(doing)),
            &[libc::EEXIST],
        )
    }

    /// Removes the /32 (or /128) from `interface`. Returns `false` if it did not have the address.
    ///
    /// # Errors
    /// [`crate::Error::NoLink`]; [`crate::Error::System`].
    pub async fn remove_address(&self, interface: &str, address: IpAddr) -> Result<bool> {
        let link = self.link_named(interface).await?;
        let Some(message) = self.find(link.index, address).await? else {
            return Ok(false);
        };
        let doing = format!("remove the address {address} from {interface}");
        let removed = self
            .handle
            .address()
            .del(message)
            .execute()
            .await
            .map_err(failed(doing));
        unless(removed, &[libc::EADDRNOTAVAIL])
    }

    /// Whether `interface` has the address as a /32 (or /128).
    ///
    /// # Errors
    /// [`crate::Error::NoLink`]; [`crate::Error::System`].
    pub async fn has_address(&self, interface: &str, address: IpAddr) -> Result<bool> {
        let link = self.link_named(interface).await?;
        Ok(self.find(link.index, address).await?.is_some())
    }

    /// Every address of the host, with the index of its interface.
    pub(super) async fn addresses(&self) -> Result<Vec<(u32, IpAddr)>> {
        let messages = all("list the addresses", self.handle.address().get().execute()).await?;
        let held = messages
            .iter()
            .filter_map(|m| Some((m.header.index, address_of(m)?)));
        Ok(held.collect())
    }

    async fn find(&self, index: u32, address: IpAddr) -> Result<Option<AddressMessage>> {
        let request = self.handle.address().get().set_link_index_filter(index);
        let messages = all("list the addresses", request.execute()).await?;
        Ok(messages.into_iter().find(|message| {
            address_of(message) == Some(address)
                && message.header.prefix_len == host_prefix(address)
        }))
    }
}

/// The local address of a message: IFA_LOCAL if it is there, because on a point-to-point link IFA_ADDRESS is the peer's
/// address (include/uapi/linux/if_addr.h).
fn address_of(message: &AddressMessage) -> Option<IpAddr> {
    let find =
        |pick: fn(&AddressAttribute) -> Option<IpAddr>| message.attributes.iter().find_map(pick);
    find(|attribute| match attribute {
        AddressAttribute::Local(address) => Some(*address),
        _ => None,
    })
    .or_else(|| {
        find(|attribute| match attribute {
            AddressAttribute::Address(address) => Some(*address),
            _ => None,
        })
    })
}

fn host_prefix(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}
