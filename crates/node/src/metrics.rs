//! Prometheus metrics: the status, as numbers.

mod certificates;
mod failover;
mod format;
mod forwarding;
mod migration;
mod tallies;

use std::{fmt::Debug, net::SocketAddr, sync::atomic::AtomicU64};

use anyhow::{Context, Result};
use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::IntoResponse,
    routing::get,
};
use prometheus_client::{
    encoding::{EncodeMetric, text::encode},
    metrics::{TypedMetric, counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot},
};
use tracing::warn;

use self::format::Format;
use crate::operator::control::{Call, Request, Response};
use crate::status::{Peer, Status};

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

/// The labels of one value of a metric.
type Labels = Vec<(&'static str, String)>;

/// Adds a metric with a value for each row.
fn family<M, V>(
    registry: &mut Registry,
    (name, help): (&str, &str),
    rows: impl IntoIterator<Item = (Labels, V)>,
    set: fn(&M, V),
) where
    M: Clone + Default + EncodeMetric + TypedMetric + Debug + Send + Sync + 'static,
{
    let family = Family::<Labels, M>::default();
    for (labels, value) in rows {
        set(&family.get_or_create(&labels), value);
    }
    registry.register(name, help, family);
}

/// Adds a counter with a value for each row.
fn counters(
    registry: &mut Registry,
    name: &str,
    help: &str,
    rows: impl IntoIterator<Item = (Labels, u64)>,
) {
    family::<Counter, _>(registry, (name, help), rows, |counter, value| {
        counter.inc_by(value);
    });
}

/// Adds a gauge with a value for each row.
fn gauges(
    registry: &mut Registry,
    name: &str,
    help: &str,
    rows: impl IntoIterator<Item = (Labels, u64)>,
) {
    family::<Gauge, _>(registry, (name, help), rows, |gauge, value| {
        gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
    });
}

/// Adds a gauge without labels.
fn gauge(registry: &mut Registry, name: &str, help: &str, value: u64) {
    let gauge = Gauge::<i64>::default();
    gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
    registry.register(name, help, gauge);
}

/// Adds a counter without labels.
fn counter(registry: &mut Registry, name: &str, help: &str, value: u64) {
    let counter = Counter::<u64>::default();
    counter.inc_by(value);
    registry.register(name, help, counter);
}

/// The values of all nodes that have one.
fn of_nodes<V>(
    status: &Status,
    value: fn(&Peer) -> Option<V>,
) -> impl Iterator<Item = (Labels, V)> {
    let row = move |node: &Peer| Some((vec![("node", node.name.clone())], value(node)?));
    status.nodes.iter().filter_map(row)
}

fn text(status: &Status) -> Result<String, std::fmt::Error> {
    let mut registry = Registry::with_prefix("baton");
    let interfaces = status.interface_names();
    gauges(
        &mut registry,
        "interface_there",
        "1 if this interface of the node exists and is up, otherwise 0; if one is missing, the node only waits for it",
        interfaces.iter().map(|interface| {
            let is_gone = status.interfaces_gone.contains(interface);
            (vec![("interface", interface.clone())], u64::from(!is_gone))
        }),
    );
    counters(
        &mut registry,
        "packets",
        "Packets or events that the node counted, by counter; counters with \"bytes\" in their name count bytes",
        (status.counters.iter()).map(|(name, value)| (vec![("name", name.clone())], *value)),
    );
    if let Some(mode) = &status.xdp {
        let of_interface = |interface: &String| {
            ["native", "generic"].map(|each| {
                let labels = vec![("interface", interface.clone()), ("mode", each.into())];
                (labels, u64::from(each == mode))
            })
        };
        gauges(
            &mut registry,
            "xdp_mode",
            "1 for the mode that the XDP program runs in; generic is several times slower than native",
            interfaces.iter().flat_map(of_interface),
        );
    }
    nodes(&mut registry, status);
    taking(&mut registry, status);
    tallies::register(&mut registry, status);
    migration::register(&mut registry, status);
    failover::register(&mut registry, status);
    forwarding::register(&mut registry, status);
    certificates::register(&mut registry, status);
    if let Some(table) = &status.flows {
        gauge(
            &mut registry,
            "tcb_live",
            "Entries of the TCP table in use",
            table.live.into(),
        );
        gauge(
            &mut registry,
            "tcb_capacity",
            "Entries that the TCP table can hold",
            table.capacity.into(),
        );
    }
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

/// Whether the node is a data server, and its heartbeats come here.
fn is_watched_ds(node: &Peer) -> bool {
    node.roles.iter().any(|role| role == "ds") && node.is_watched()
}

fn nodes(registry: &mut Registry, status: &Status) {
    counters(
        registry,
        "adoptions",
        "Connections assigned to the data server",
        of_nodes(status, |node| node.adoptions),
    );
    gauges(
        registry,
        "flows",
        "Live connections of the data server in this connection server's TCP table",
        of_nodes(status, |node| node.flows.map(u64::from)),
    );
    gauges(
        registry,
        "alive",
        "1 if the data server's heartbeats arrive, or if it is this node",
        of_nodes(status, |node| {
            is_watched_ds(node).then_some(node.is_alive().into())
        }),
    );
    gauges(
        registry,
        "draining",
        "1 if the data server is being drained and therefore takes no new requests",
        of_nodes(status, |node| {
            is_watched_ds(node).then_some(node.draining.into())
        }),
    );
    gauges(
        registry,
        "cpu_permille",
        "Processor load that the node reports, in permille",
        of_nodes(status, |node| node.cpu.map(u64::from)),
    );
    family::<Gauge<f64, AtomicU64>, _>(
        registry,
        (
            "clock_behind_seconds",
            "Seconds by which the node's clock is behind this node's; negative if it is ahead",
        ),
        of_nodes(status, |node| node.clock_skew_ms),
        |gauge, ms| {
            gauge.set(ms as f64 / 1000.0);
        },
    );
    gauges(
        registry,
        "clock_refused",
        "1 if this node refuses the node's messages because their clocks differ too much",
        of_nodes(status, |node| {
            node.clock_skew_ms.map(|_| node.clock_refused.into())
        }),
    );
}

fn taking(registry: &mut Registry, status: &Status) {
    let rows = status.services.iter().flat_map(|service| {
        let row = |node: &String, value| {
            let labels = vec![("service", service.name.clone()), ("node", node.clone())];
            (labels, value)
        };
        let takes = service.taking.iter().map(move |node| row(node, 1));
        let out = service.out.iter().filter(|(node, _)| *node != "all");
        takes.chain(out.map(move |(node, _)| row(node, 0)))
    });
    gauges(
        registry,
        "taking",
        "1 if the data server takes new connections of the service",
        rows,
    );
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
