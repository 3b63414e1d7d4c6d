//! Measures the connection server's packets. Each run of a measurement has a packet of its own, and the counters must
//! show that each packet was what it was meant to be.

use std::os::fd::{AsFd as _, OwnedFd};

use anyhow::{Context as _, Result, ensure};
use baton_abi::{DataServer, RouteKey, SERVICE_OWNER, SERVICE_PATHS, Service, ServiceKey, TcbKey};
use baton_dataplane::sys;
use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use zerocopy::IntoBytes as _;

use crate::{
    cluster::{CS_MAC, WEB, data_server, first_pool_of_one},
    node::Node,
    program,
    report::Row,
    segment::{Client, GET, Segment},
    wrapper::{FLOWS, Flow, Template, Wrapper},
};

/// The number of flows that stay in the processor's cache.
const FEW: u32 = 4096;
/// How often a row with few flows is measured in a round. More would be better, but the kernel waits long between two
/// test runs.
const PASSES: u32 = 4;

pub struct ConnectionServer<'a> {
    node: Node,
    wrapper: &'a Wrapper,
    flows: Vec<Flow>,
    table: Table,
    kinds: Vec<Kind>,
    /// A forwarded packet changes only in its MACs, so it can be repeated without the wrapper. This row shows whether
    /// the subtraction gives the same result.
    alone: Row,
    /// The packet of the row `alone`.
    later: Vec<u8>,
}

struct Kind {
    row: Row,
    template: Template,
    /// The counter that each packet must move. None if only the verdict is known.
    counter: Option<&'static str>,
    /// Whether the table must not know the flows.
    forget: bool,
    /// Whether a measurement makes as many runs as there are flows, a few times over. Otherwise it makes many runs at
    /// once.
    few: bool,
    /// The flags of the service while this kind is measured, `enum service_flag`.
    service: u32,
}

/// The flags of a service whose first requests are read and routed here. The owner sees to further requests.
const HTTP: u32 = SERVICE_OWNER | SERVICE_PATHS;

/// The TCP table, the keys of all flows, and the cookies with which they began.
struct Table {
    tcbs: MapHandle,
    used_cookies: MapHandle,
    keys: Vec<TcbKey>,
}

impl Table {
    /// Removes the first flows from the table, if they are there, and makes their cookies valid once more.
    fn forget(&self, flows: u32) -> Result<()> {
        let sets = self.used_cookies.max_entries();
        let keys: Vec<u8> = (0..sets).flat_map(u32::to_ne_bytes).collect();
        let none = vec![0; (sets * self.used_cookies.value_size()) as usize];
        let flags = MapFlags::ANY;
        (self.used_cookies).update_batch(&keys, &none, sets, flags, flags)?;
        let keys = self.keys[..flows as usize].as_bytes();
        if self
            .tcbs
            .lookup(self.keys[0].as_bytes(), MapFlags::ANY)?
            .is_none()
        {
            return Ok(());
        }
        Ok(self.tcbs.delete_batch(keys, flows, flags, flags)?)
    }
}

impl<'a> ConnectionServer<'a> {
    pub fn new(wrapper: &'a Wrapper) -> Result<Self> {
        let node = Node::fresh_cs_of(1 << 20);
        for index in 0..3 {
            // With this MAC a forwarded packet stays as it is, so that it can come again.
            let near = DataServer {
                mac: CS_MAC,
                ..data_server(index)
            };
            node.plane().set_data_server(index, &near)?;
        }
        let clients: Vec<Client> = (0..FLOWS).map(|_| Client::of(WEB)).collect();
        let flows: Vec<Flow> = clients
            .iter()
            .map(|client| {
                let first = client.get(node.cookie(client));
                Flow {
                    client: client.address,
                    service: WEB,
                    seq: first.seq,
                    ack: first.ack,
                }
            })
            .collect();
        wrapper.set_flows(&flows)?;
        let route = |path: &[u8], pool: u16| {
            let key = RouteKey::of(0, 0, path).expect("a path is shorter than a key");
            (key, u32::from(pool))
        };
        let (first, second) = (first_pool_of_one(), first_pool_of_one() + 1);
        node.routing()
            .set_routes(&[route(b"/ds1/", first), route(b"/ds2/", second)])?;
        let table = Table {
            tcbs: program::map(program_of(&node), "tcbs")?,
            used_cookies: program::map(program_of(&node), "used_cookies")?,
            keys: clients.iter().map(|client| node.tcb_key(client)).collect(),
        };
        let cookie = node.cookie(&clients[0]);
        let later = clients[0].later(cookie, GET.len(), 1000).frame();
        Ok(Self {
            later,
            kinds: kinds(&clients[0]),
            alone: Row::new("forward, one flow, no wrapper", Some(100.0)),
            node,
            wrapper,
            table,
            flows,
        })
    }

    /// Gives the wrapper these flows, because it may have had others meanwhile.
    pub fn set_flows(&self) -> Result<()> {
        self.wrapper.set_flows(&self.flows)
    }

    pub fn program(&self) -> &OwnedFd {
        program_of(&self.node)
    }

    /// Measures one more value for every row whose name has `only` in it.
    pub fn round(&mut self, only: &str) -> Result<()> {
        for kind in self
            .kinds
            .iter_mut()
            .filter(|kind| kind.row.name.contains(only))
        {
            self.wrapper.set_template(&kind.template)?;
            let service = Service {
                flags: kind.service as u16, // bits that C keeps in 16
                ..Service::default()
            };
            self.node
                .plane()
                .set_service(&ServiceKey::of(WEB), &service)?;
            let (frame, flows) = (&kind.template.frame, kind.template.flows);
            let runs = if kind.few { flows } else { FLOWS };
            let passes = if kind.few { PASSES } else { 1 };
            self.wrapper.aim(self.wrapper.xdp_nothing.as_fd())?;
            let mut floor = 0;
            for _ in 0..passes {
                floor += self.wrapper.run(frame, runs)?;
            }
            self.wrapper.aim(program_of(&self.node).as_fd())?;
            let mut whole = 0;
            self.node.look();
            for _ in 0..passes {
                if kind.forget {
                    self.table.forget(flows)?;
                }
                let ran = self.wrapper.run(frame, runs);
                whole += ran.with_context(|| {
                    format!("{}: counted {:?}", kind.row.name, self.node.moved())
                })?;
            }
            if let Some(counter) = kind.counter {
                let moved = self.node.moved();
                let counted = moved.get(counter) == Some(&(passes * runs).into());
                ensure!(counted, "{}: counted {moved:?}", kind.row.name);
            }
            let mean = |sum: u64| sum as f64 / f64::from(passes);
            kind.row.add(mean(whole), mean(floor));
        }
        if !only.is_empty() {
            return Ok(());
        }
        self.round_alone()
    }

    fn round_alone(&mut self) -> Result<()> {
        let frame = &self.later;
        let run = |program: &OwnedFd| -> Result<f64> {
            let outcome = sys::run_on_frame(program.as_fd(), frame, None, FLOWS)?;
            Ok(outcome.duration.as_nanos() as f64)
        };
        let floor = run(&self.wrapper.xdp_nothing)?;
        self.node.look();
        let whole = run(program_of(&self.node))?;
        let moved = self.node.moved();
        let counted = moved.get("cs_forward") == Some(&FLOWS.into());
        ensure!(counted, "{}: counted {moved:?}", self.alone.name);
        self.alone.add(whole, floor);
        Ok(())
    }

    pub fn rows(self) -> Vec<Row> {
        let kinds = self.kinds.into_iter().map(|kind| kind.row);
        kinds.chain([self.alone]).collect()
    }
}

/// All kinds, in this order, because later packets find in the table what the first request leaves there.
fn kinds(client: &Client) -> Vec<Kind> {
    let template = |packet: Segment, grows_in_front, flows, ahead| Template {
        frame: packet.frame(),
        grows_in_front,
        flows,
        ahead,
    };
    let other_port = client
        .get(0)
        .to("10.77.0.100:8080".parse().expect("an address"));
    let mut not_ours = template(other_port.clone(), false, FLOWS, (0, 0));
    // The wrapper writes both ports, so the packet gets an IP protocol that no service has.
    not_ours.frame[23] = 17;
    let sent = GET.len() as u32;
    let later = client.later(0, 0, 0);
    let get = |path: &[u8]| {
        let text = [b"GET ", path, b" HTTP/1.1\r\nHost: a\r\n\r\n"].concat();
        client.get(0).payload(text)
    };
    let request = get(b"/ds1/").payload.len() as u32;
    vec![
        Kind {
            row: Row::new("not for a service (UDP)", None),
            template: not_ours,
            counter: None,
            forget: false,
            few: false,
            service: 0,
        },
        Kind {
            row: Row::new("SYN -> SYN-ACK, 65,536 clients", Some(150.0)),
            template: template(client.syn(), false, FLOWS, (0, 0)),
            counter: Some("cs_syn"),
            forget: false,
            few: false,
            service: 0,
        },
        Kind {
            row: Row::new("SYN -> SYN-ACK, 4,096 clients", Some(150.0)),
            template: template(client.syn(), false, FEW, (0, 0)),
            counter: Some("cs_syn"),
            forget: false,
            few: false,
            service: 0,
        },
        Kind {
            row: Row::new("the handshake's ACK, dropped", None),
            template: template(client.ack(0), false, FLOWS, (0, 0)),
            counter: Some("cs_handshake_ack"),
            forget: true,
            few: false,
            service: 0,
        },
        Kind {
            row: Row::new("first GET -> ADOPT, 65,536 flows", Some(250.0)),
            template: template(client.get(0), true, FLOWS, (0, 0)),
            counter: Some("cs_adopt"),
            forget: true,
            few: false,
            service: 0,
        },
        Kind {
            row: Row::new("the same GET again -> ADOPT", None),
            template: template(client.get(0), true, FLOWS, (0, 0)),
            counter: Some("cs_adopt_again"),
            forget: false,
            few: false,
            service: 0,
        },
        Kind {
            row: Row::new("forward, 65,536 flows", Some(100.0)),
            template: template(later.clone(), false, FLOWS, (sent, 1000)),
            counter: Some("cs_forward"),
            forget: false,
            few: false,
            service: 0,
        },
        Kind {
            row: Row::new("HTTP: first GET, routed -> ADOPT", None),
            template: template(get(b"/ds1/"), true, FLOWS, (0, 0)),
            counter: Some("cs_adopt"),
            forget: true,
            few: false,
            service: HTTP,
        },
        Kind {
            row: Row::new("HTTP: next GET, to its owner", Some(100.0)),
            template: template(get(b"/ds1/"), false, FLOWS, (request, 1000)),
            counter: Some("cs_forward"),
            forget: false,
            few: false,
            service: HTTP,
        },
        Kind {
            row: Row::new("first GET -> ADOPT, 4,096 flows", Some(250.0)),
            template: template(client.get(0), true, FEW, (0, 0)),
            counter: Some("cs_adopt"),
            forget: true,
            few: true,
            service: 0,
        },
        Kind {
            row: Row::new("forward, 4,096 flows", Some(100.0)),
            template: template(later, false, FEW, (sent, 1000)),
            counter: Some("cs_forward"),
            forget: false,
            few: false,
            service: 0,
        },
    ]
}

fn program_of(node: &Node) -> &OwnedFd {
    &node.connection_server().xdp
}
