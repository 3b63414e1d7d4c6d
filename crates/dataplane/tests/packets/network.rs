//! Sets up the network of a test's host over the routing socket. It does not use ip(8): a program that is being
//! started holds every socket of this process for a moment, so a socket that another test closes meanwhile stays
//! open.

use std::net::Ipv4Addr;

use rtnetlink::{Handle, LinkMessageBuilder, LinkUnspec, LinkVeth, RouteMessageBuilder};

/// Gives this thread's namespace `addresses`, and a route to all others through an interface that swallows all
/// packets.
pub fn set_up(addresses: &[Ipv4Addr]) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (connection, handle, _) = rtnetlink::new_connection().unwrap();
        tokio::spawn(connection);
        let done = of_host(&handle, addresses).await;
        done.expect("a network of its own needs root");
    });
}

async fn of_host(handle: &Handle, addresses: &[Ipv4Addr]) -> Result<(), rtnetlink::Error> {
    let loopback = index("lo");
    up(handle, link(loopback)).await?;
    for address in addresses {
        let add = handle.address().add(loopback, (*address).into(), 32);
        add.execute().await?;
    }
    let veth = LinkVeth::new("clients", "nobody").build();
    handle.link().add(veth).execute().await?;
    // The kernel sends by an interface as soon as that is up, if its other end was up before. Otherwise it drops what is
    // sent until it has noticed the carrier, which may take a while on a busy machine.
    let clients = index("clients");
    up(handle, link(index("nobody"))).await?;
    up(handle, link(clients).arp(false)).await?;
    let all = RouteMessageBuilder::<Ipv4Addr>::new().output_interface(clients);
    handle.route().add(all.build()).execute().await
}

type Link = LinkMessageBuilder<LinkUnspec>;

fn link(index: u32) -> Link {
    Link::default().index(index)
}

async fn up(handle: &Handle, link: Link) -> Result<(), rtnetlink::Error> {
    handle.link().change(link.up().build()).execute().await
}

fn index(name: &str) -> u32 {
    nix::net::if_::if_nametoindex(name).unwrap()
}
