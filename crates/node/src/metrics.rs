//! Prometheus metrics: the status, as numbers.

mod failover;
mod format;
mod forwarding;
mod migration;
mod tallies;

use std::{net::SocketAddr, sync::atomic::AtomicU64};

use anyhow::{Context, Result};
use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::IntoResponse,
    routing::get,
};
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot},
};
use tracing::warn;

use self::format::Format;
use crate::operator::control::{Call, Request, Response};
use crate::status::Status;

/// Serves `/metrics` at `address` from now on.
pub async fn serve(address: SocketAddr, calls: mpsc::Sender<Call>) -> Result<()> {
    let listener = TcpListener::bind(address).await.with_context(|| {
        format!(
            "cannot serve metrics at {address}: choose another [local] metrics, or \"\" for none"
        )
    })?;
    let router = Router::new()
        .route("/metrics", get(scrape))
        .with_state(calls);
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            warn!("metrics ended: {error}");
        }
    });
    Ok(())
}

async fn scrape(State(calls): State<mpsc::Sender<Call>>, headers: HeaderMap) -> impl IntoResponse {
    let format = Format::of(&headers);
    let (reply, answered) = oneshot::channel();
    let _ = calls.send((Request::Status, reply)).await;
    match answered.await {
        Ok(Response::Status(status)) => match text(&status) {
            Ok(text) => (
                StatusCode::OK,
                [("content-type", format.content_type())],
                format.write(text),
            ),
            Err(error) => (
                StatusCode::INTERNAL_SERVER_ERROR,
                [("content-type", "text/plain")],
                error.to_string(),
            ),
        },
        _ => (
            StatusCode::SERVICE_UNAVAILABLE,
            [("content-type", "text/plain")],
            "the node is ending\n".into(),
        ),
    }
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Name {
    name: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Interface {
    interface: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Mode {
    interface: String,
    mode: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Node {
    node: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Member {
    service: String,
    node: String,
}

fn text(status: &Status) -> Result<String, std::fmt::Error> {
    let mut registry = Registry::with_prefix("baton");
    let there = Family::<Interface, Gauge>::default();
    for interface in status.interface_names() {
        let is_gone = status.interfaces_gone.contains(&interface);
        there
            .get_or_create(&Interface { interface })
            .set(i64::from(!is_gone));
    }
    registry.register(
        "interface_there",
        "1 if this interface of the node exists and is up, otherwise 0; if one is missing, the node only waits for it",
        there,
    );
    let packets = Family::<Name, Counter>::default();
    registry.register(
        "packets",
        "Packets or events that the node counted, by counter; counters with \"bytes\" in their name count bytes",
        packets.clone(),
    );
    for (name, value) in &status.counters {
        packets
            .get_or_create(&Name { name: name.clone() })
            .inc_by(*value);
    }

    if let Some(mode) = &status.xdp {
        let xdp = Family::<Mode, Gauge>::default();
        for interface in status.interface_names() {
            for each in ["native", "generic"] {
                let labels = Mode {
                    interface: interface.clone(),
                    mode: each.into(),
                };
                xdp.get_or_create(&labels).set(i64::from(each == mode));
            }
        }
        registry.register(
            "xdp_mode",
            "1 for the mode that the XDP program runs in; generic is several times slower than native",
            xdp,
        );
    }

    let adoptions = Family::<Node, Counter>::default();
    let flows = Family::<Node, Gauge>::default();
    let alive = Family::<Node, Gauge>::default();
    let draining = Family::<Node, Gauge>::default();
    let cpu = Family::<Node, Gauge>::default();
    registry.register(
        "adoptions",
        "Connections assigned to the data server",
        adoptions.clone(),
    );
    registry.register(
        "flows",
        "Live connections of the data server in this connection server's TCP table",
        flows.clone(),
    );
    registry.register(
        "alive",
        "1 if the data server's heartbeats arrive, or if it is this node",
        alive.clone(),
    );
    registry.register(
        "draining",
        "1 if the data server is being drained and therefore takes no new requests",
        draining.clone(),
    );
    registry.register(
        "cpu_permille",
        "Processor load that the node reports, in permille",
        cpu.clone(),
    );
    let skew = Family::<Node, Gauge<f64, AtomicU64>>::default();
    let refused = Family::<Node, Gauge>::default();
    registry.register(
        "clock_behind_seconds",
        "Seconds by which the node's clock is behind this node's; negative if it is ahead",
        skew.clone(),
    );
    registry.register(
        "clock_refused",
        "1 if this node refuses the node's messages because their clocks differ too much",
        refused.clone(),
    );
    for peer in &status.nodes {
        let labels = Node {
            node: peer.name.clone(),
        };
        if let Some(ms) = peer.clock_skew_ms {
            skew.get_or_create(&labels).set(ms as f64 / 1000.0);
            refused
                .get_or_create(&labels)
                .set(i64::from(peer.clock_refused));
        }
        if let Some(value) = peer.adoptions {
            adoptions.get_or_create(&labels).inc_by(value);
        }
        for (family, value) in [
            (&flows, peer.flows.map(u64::from)),
            (&cpu, peer.cpu.map(u64::from)),
        ] {
            if let Some(value) = value {
                family.get_or_create(&labels).set(number(value));
            }
        }
        if peer.roles.iter().any(|role| role == "ds") {
            draining
                .get_or_create(&labels)
                .set(i64::from(peer.draining));
            alive.get_or_create(&labels).set(i64::from(
                peer.state == "alive" || peer.state == "this node",
            ));
        }
    }

    let taking = Family::<Member, Gauge>::default();
    registry.register(
        "taking",
        "1 if the data server takes new connections of the service",
        taking.clone(),
    );
    for service in &status.services {
        let member = |node: &String| Member {
            service: service.name.clone(),
            node: node.clone(),
        };
        for node in &service.taking {
            taking.get_or_create(&member(node)).set(1);
        }
        for (node, _) in service.out.iter().filter(|(node, _)| node != "all") {
            taking.get_or_create(&member(node)).set(0);
        }
    }

    tallies::register(&mut registry, status);
    migration::register(&mut registry, status);
    failover::register(&mut registry, status);
    forwarding::register(&mut registry, status);

    if let Some(table) = &status.flows {
        let live = Gauge::<i64>::default();
        let capacity = Gauge::<i64>::default();
        live.set(table.live.into());
        capacity.set(table.capacity.into());
        registry.register("tcb_live", "Entries of the TCP table in use", live);
        registry.register(
            "tcb_capacity",
            "Entries that the TCP table can hold",
            capacity,
        );
    }
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::example;

    #[test]
    fn clocks() {
        let mut status = example();
        let ds1 = &mut status.nodes[1];
        (ds1.clock_refused, ds1.clock_skew_ms) = (true, Some(-37_500));
        let text = text(&status).expect("it is written to memory");
        assert!(
            text.contains("baton_clock_behind_seconds{node=\"ds1\"} -37.5\n"),
            "{text}"
        );
        assert!(
            text.contains("baton_clock_refused{node=\"ds1\"} 1\n"),
            "{text}"
        );
        assert!(
            !text.contains("baton_clock_refused{node=\"cs1\"}"),
            "{text}"
        );
    }

    #[test]
    fn an_interface_that_is_gone() {
        let mut status = example();
        let line = |value| format!("baton_interface_there{{interface=\"eth0\"}} {value}\n");
        let there = text(&status).expect("it is written to memory");
        assert!(there.contains(&line(1)), "{there}");
        status.interface_gone = Some(3);
        status.interfaces_gone = vec!["eth0".into()];
        let gone = text(&status).expect("it is written to memory");
        assert!(gone.contains(&line(0)), "{gone}");
        // Of several interfaces, the one that is there is not reported as gone.
        status.interfaces = vec!["eth0".into(), "eth1".into()];
        let one = text(&status).expect("it is written to memory");
        assert!(one.contains(&line(0)), "{one}");
        assert!(
            one.contains("baton_interface_there{interface=\"eth1\"} 1\n"),
            "{one}"
        );
    }

    #[test]
    fn the_mode_of_xdp() {
        let mut status = example();
        let line =
            |mode, value| format!("baton_xdp_mode{{interface=\"eth0\",mode=\"{mode}\"}} {value}\n");
        let native = text(&status).expect("it is written to memory");
        assert!(native.contains(&line("native", 1)), "{native}");
        status.xdp = Some("generic".into());
        let generic = text(&status).expect("it is written to memory");
        assert!(generic.contains(&line("generic", 1)), "{generic}");
        assert!(generic.contains(&line("native", 0)), "{generic}");
        // The mode is the same at each interface.
        status.interfaces = vec!["eth0".into(), "eth1".into()];
        let both = text(&status).expect("it is written to memory");
        let of_other = "baton_xdp_mode{interface=\"eth1\",mode=\"generic\"} 1\n";
        assert!(both.contains(&line("generic", 1)), "{both}");
        assert!(both.contains(of_other), "{both}");
    }

    #[test]
    fn every_tally_is_there_under_its_names() {
        let text = text(&example()).expect("it is written to memory");
        for line in [
            r#"baton_route_requests_total{service="web",pool="static",route="/s/"} 9"#,
            r#"baton_route_unavailable_total{service="web",pool="static",route="/s/"} 1"#,
            r#"baton_pool_response_bytes_total{service="web",pool="static"} 4096"#,
            r#"baton_pool_requests_total{service="web",pool=""} 9"#,
            r#"baton_pool_handovers_total{service="web",pool="static"} 5"#,
            r#"baton_data_server_requests_total{node="ds1"} 9"#,
            r#"baton_data_server_requests_taken_back_total{node="ds1"} 2"#,
            r#"baton_data_server_handovers_total{node="ds1"} 5"#,
        ] {
            assert!(text.lines().any(|found| found == line), "no {line}\n{text}");
        }
    }

    /// The status of a data server has no tallies.
    #[test]
    fn without_tallies_there_are_none() {
        let mut status = example();
        status.nodes[1].tally = None;
        status.services[0].rest = None;
        status.services[0].pools[0].tally = None;
        status.services[0].routes[0].tally = None;
        let text = text(&status).expect("it is written to memory");
        assert!(!text.contains("_total{service"), "{text}");
        assert!(!text.contains("data_server_requests_total{"), "{text}");
    }

    #[test]
    fn who_drains() {
        let mut status = example();
        status.nodes[1].draining = true;
        let text = text(&status).expect("it is written to memory");
        assert!(text.contains("baton_draining{node=\"ds1\"} 1\n"), "{text}");
        assert!(!text.contains("baton_draining{node=\"cs1\"}"), "{text}");
    }
}
