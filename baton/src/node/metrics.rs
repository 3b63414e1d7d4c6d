//! Prometheus metrics: the status, as numbers.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use axum::{Router, extract::State, http::StatusCode, response::IntoResponse, routing::get};
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

use super::control::{Call, Request, Response};
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

async fn scrape(State(calls): State<mpsc::Sender<Call>>) -> impl IntoResponse {
    let (reply, answered) = oneshot::channel();
    let _ = calls.send((Request::Status, reply)).await;
    match answered.await {
        Ok(Response::Status(status)) => match text(&status) {
            Ok(text) => (StatusCode::OK, [("content-type", CONTENT_TYPE)], text),
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

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Name {
    name: String,
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
    let packets = Family::<Name, Counter>::default();
    registry.register(
        "packets",
        "What the programs did, by counter (some count bytes, and say so)",
        packets.clone(),
    );
    for (name, value) in &status.counters {
        packets
            .get_or_create(&Name { name: name.clone() })
            .inc_by(*value);
    }

    let adoptions = Family::<Node, Counter>::default();
    let flows = Family::<Node, Gauge>::default();
    let alive = Family::<Node, Gauge>::default();
    let cpu = Family::<Node, Gauge>::default();
    registry.register(
        "adoptions",
        "Connections given to a data server",
        adoptions.clone(),
    );
    registry.register("flows", "Live flows of a data server", flows.clone());
    registry.register("alive", "1 if the data server is heard", alive.clone());
    registry.register(
        "cpu_permille",
        "Processor load, as the node says",
        cpu.clone(),
    );
    for peer in &status.nodes {
        let labels = Node {
            node: peer.name.clone(),
        };
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

    if let Some(table) = &status.flows {
        let live = Gauge::<i64>::default();
        let capacity = Gauge::<i64>::default();
        live.set(table.live.into());
        capacity.set(table.capacity.into());
        registry.register("tcb_live", "Entries of the TCP table in use", live);
        registry.register("tcb_capacity", "Entries of the TCP table", capacity);
    }
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
