//! The body of HELLO as bytes.

use baton_abi::{LCCP_HELLO_DRAINING, LccpHello, LccpHelloService};
use zerocopy::{FromBytes as _, IntoBytes as _};

use super::numbered::byte;
use crate::{Address, Clock, Endpoint, Health, Hello, HelloService, Incarnation, Permille};

/// Writes the body. It has at most `LCCP_MAX_BODY` bytes, because the type limits the number of services.
pub(crate) fn write(hello: &Hello) -> Vec<u8> {
    let head = LccpHello {
        be_incarnation: hello.incarnation().start().as_nanos().to_be(),
        be_cpu_permille: hello.cpu().get().to_be(),
        // No truncation: a Hello holds at most MAX_SERVICES, and those fit 1024 bytes.
        be_services: (hello.services().len() as u16).to_be(),
        be_flags: flags(hello).to_be(),
    };
    let mut body = head.as_bytes().to_vec();
    for service in hello.services() {
        body.extend_from_slice(wire_service(service).as_bytes());
    }
    body
}

/// Reads a body. Returns `None` if it is shorter than it says; bytes behind the last service are ignored.
pub(crate) fn read(body: &[u8]) -> Option<Hello> {
    let (head, rest) = LccpHello::read_from_prefix(body).ok()?;
    let count = usize::from(u16::from_be(head.be_services));
    let (services, _) = <[LccpHelloService]>::ref_from_prefix_with_elems(rest, count).ok()?;
    let draining = u32::from_be(head.be_flags) & LCCP_HELLO_DRAINING != 0;
    let hello = Hello::new(
        Incarnation::started_at(Clock::from_nanos(u64::from_be(head.be_incarnation))),
        // A load above 1000 counts as 1000: it is no reason to lose a heartbeat.
        Permille::saturating(u16::from_be(head.be_cpu_permille)),
        services.iter().map(read_service).collect(),
    );
    Some(hello.ok()?.with_draining(draining))
}

fn flags(hello: &Hello) -> u32 {
    if hello.is_draining() {
        LCCP_HELLO_DRAINING
    } else {
        0
    }
}

fn wire_service(service: &HelloService) -> LccpHelloService {
    LccpHelloService {
        cluster: service.cluster.address.octets(),
        be_port: service.cluster.port.to_be(),
        health: byte(service.health.number()),
        reserved: 0,
        be_connections: service.connections.to_be(),
    }
}

fn read_service(service: &LccpHelloService) -> HelloService {
    HelloService {
        cluster: Endpoint {
            address: Address::from_octets(service.cluster),
            port: u16::from_be(service.be_port),
        },
        health: Health::from_number(service.health.into()).unwrap_or(Health::Unknown),
        connections: u32::from_be(service.be_connections),
    }
}
