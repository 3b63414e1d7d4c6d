//! Measures the switch's packets, as [`crate::cs`] measures the connection server's.

use std::os::fd::{AsFd as _, OwnedFd};

use anyhow::{Result, ensure};

use crate::{
    cluster::WEB,
    node::Node,
    report::Row,
    segment::{Client, GET},
    wrapper::{FLOWS, Flow, Template, Wrapper},
};

const FEW: u32 = 4096;

pub struct Switch<'a> {
    node: Node,
    wrapper: &'a Wrapper,
    flows: Vec<Flow>,
    kinds: Vec<Kind>,
}

struct Kind {
    row: Row,
    template: Template,
    counter: &'static str,
    /// Who has each place now, and who had it before.
    places: (u16, u16),
}

impl<'a> Switch<'a> {
    pub fn new(wrapper: &'a Wrapper) -> Self {
        let clients: Vec<Client> = (0..FLOWS).map(|_| Client::of(WEB)).collect();
        let flows = clients.iter().map(|client| Flow {
            client: client.address,
            service: WEB,
            seq: client.isn,
            ack: 0,
        });
        Self {
            flows: flows.collect(),
            kinds: kinds(&clients[0]),
            node: Node::switch(),
            wrapper,
        }
    }

    pub fn program(&self) -> &OwnedFd {
        &self.node.switch_table().xdp
    }

    /// Measures one more value for every row.
    pub fn round(&mut self) -> Result<()> {
        self.wrapper.set_flows(&self.flows)?;
        for kind in &mut self.kinds {
            self.node.set_places(|_| kind.places);
            self.wrapper.set_template(&kind.template)?;
            let frame = &kind.template.frame;
            self.wrapper.aim(self.wrapper.xdp_nothing.as_fd())?;
            let floor = self.wrapper.run(frame, FLOWS)?;
            self.wrapper.aim(self.node.switch_table().xdp.as_fd())?;
            self.node.look();
            let whole = self.wrapper.run(frame, FLOWS)?;
            let moved = self.node.moved();
            let counted = moved.get(kind.counter) == Some(&FLOWS.into());
            ensure!(counted, "{}: counted {moved:?}", kind.row.name);
            kind.row.add(whole as f64, floor as f64);
        }
        Ok(())
    }

    pub fn rows(self) -> Vec<Row> {
        self.kinds.into_iter().map(|kind| kind.row).collect()
    }
}

/// All kinds, in this order, because those counted as `switch_begun` find the entries that the SYNs before them have
/// left.
fn kinds(client: &Client) -> Vec<Kind> {
    let kind = |name, counter, syn: bool, flows, places| {
        let packet = if syn {
            client.syn()
        } else {
            client.later(0, GET.len(), 1000)
        };
        Kind {
            row: Row::new(name, None),
            template: Template {
                frame: packet.frame(),
                grows_in_front: true,
                flows,
                ahead: (0, 0),
            },
            counter,
            places,
        }
    };
    let (one, two) = ((0, 0), (1, 0));
    vec![
        kind("SYN", "switch_syn", true, FLOWS, one),
        kind("forward, 4,096 flows", "switch_forward", false, FEW, one),
        kind("forward, 65,536 flows", "switch_forward", false, FLOWS, one),
        kind("SYN, place has changed", "switch_syn", true, FLOWS, two),
        kind(
            "the same, after it, 4,096 flows",
            "switch_begun",
            false,
            FEW,
            two,
        ),
        kind(
            "the same, after it, 65,536 flows",
            "switch_begun",
            false,
            FLOWS,
            two,
        ),
    ]
}
