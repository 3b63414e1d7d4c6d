//! Least loaded: the servers take turns, each the more often the less it has to do for its weight.
//!
//! A server's *favour* is the factor, on its configured weight, by which it has more turns or fewer.
//! Once a second it moves towards
//!
//! ```text
//!              (average connections + 4      average CPU + 100 ) GAIN/2
//!   favour  =  (------------------------- x  ------------------)          within 1/8 .. 4
//!              (    connections + 4              CPU + 100     )
//!
//!   connections: of the service, by capacity (weight over average weight);  CPU: permille
//! ```
//!
//! Loads react late: a connection that was given to a server counts for as long as it lives, and is read a
//! second or two later. Sending all new connections to the least loaded server floods it (Mitzenmacher, "How
//! useful is old information?", IEEE TPDS 2000). So every server keeps some turns, and favour is smoothed over
//! `SMOOTHING` and moves by a tenth a second at most. The sums in the formula keep the chance of a few
//! connections, or of some percent of an idle processor, from looking like load. There is one low-pass and no
//! integral: where connections live about as long as `SMOOTHING`, which is the worst case, the loop is damped by
//! 1/sqrt(1 + GAIN) = 0.5, everywhere else by more.

use std::collections::BTreeMap;
use std::num::NonZeroU8;
use std::time::Duration;

use super::rule::Rule;
use super::server::{Server, average_per_capacity, capacities};
use crate::{Moment, weighted_round_robin};

/// The time between two looks at the loads.
const PERIOD: Duration = Duration::from_secs(1);

/// How many periods favour takes to go most of its way (1 - 1/e), if loads do not react.
const SMOOTHING: f64 = 60.0;

/// How strongly favour reacts to loads: a server with a tenth more of both than the average is to have a quarter
/// fewer turns.
const GAIN: f64 = 3.0;

/// The most that favour changes in one period, as a logarithm: a tenth.
const STEP: f64 = 0.1;

/// The least and the greatest favour.
const FAVOUR: std::ops::RangeInclusive<f64> = 0.125..=4.0;

/// Connections of an average server that count for nothing.
const FEW_CONNECTIONS: f64 = 4.0;

/// Permille of the processors that count for nothing.
const LITTLE_CPU: f64 = 100.0;

/// The turns are dealt anew when a server's share has changed by this part of itself.
const NOTICEABLE: f64 = 0.05;

/// About the length of the longest wheel: the server with the most turns has as many as fit, 255 for up to 16
/// servers.
const TURNS: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct LeastLoaded {
    due: Option<Moment>,
    /// The logarithms of the favours, by name.
    favours: BTreeMap<String, f64>,
    dealt: Vec<Dealt>,
}

/// What a server had when turns were last dealt.
#[derive(Debug)]
struct Dealt {
    name: String,
    weight: NonZeroU8,
    share: f64,
}

impl Rule for LeastLoaded {
    fn choices(&mut self, now: Moment, servers: &[Server<'_>]) -> Vec<usize> {
        self.keep_only(servers);
        if self.due.is_none_or(|due| due <= now) {
            self.due = Some(now + PERIOD);
            self.look_at(servers);
        }
        let shares = self.shares(servers);
        if self.is_noticeable(servers, &shares) {
            self.dealt = servers
                .iter()
                .zip(shares)
                .map(|(server, share)| Dealt {
                    name: server.name.to_owned(),
                    weight: server.weight,
                    share,
                })
                .collect();
        }
        weighted_round_robin::sequence(&turns(&self.dealt))
    }

    fn next_timeout(&self) -> Option<Moment> {
        self.due
    }
}

impl LeastLoaded {
    /// Keeps the favours of these servers only. A server that comes, or comes back, begins with the share that
    /// its weight gives it.
    fn keep_only(&mut self, servers: &[Server<'_>]) {
        let favour = |server: &Server<'_>| {
            let favour = self.favours.get(server.name).copied().unwrap_or(0.0);
            (server.name.to_owned(), favour)
        };
        self.favours = servers.iter().map(favour).collect();
    }

    fn look_at(&mut self, servers: &[Server<'_>]) {
        for (server, wanted) in servers.iter().zip(wanted(servers)) {
            if let Some(favour) = self.favours.get_mut(server.name) {
                *favour += ((wanted - *favour) / SMOOTHING).clamp(-STEP, STEP);
                *favour = favour.clamp(FAVOUR.start().ln(), FAVOUR.end().ln());
            }
        }
    }

    /// The share of the turns of each server; their sum is 1.
    fn shares(&self, servers: &[Server<'_>]) -> Vec<f64> {
        let parts: Vec<f64> = servers
            .iter()
            // `keep_only` has given each server a favour.
            .map(|server| f64::from(server.weight.get()) * self.favours[server.name].exp())
            .collect();
        let sum: f64 = parts.iter().sum();
        parts.into_iter().map(|part| part / sum).collect()
    }

    fn is_noticeable(&self, servers: &[Server<'_>], shares: &[f64]) -> bool {
        let same = |(dealt, server): (&Dealt, &Server<'_>)| {
            dealt.name == server.name && dealt.weight == server.weight
        };
        let near = |(dealt, share): (&Dealt, &f64)| {
            (share - dealt.share).abs() <= NOTICEABLE * dealt.share
        };
        self.dealt.len() != servers.len()
            || !self.dealt.iter().zip(servers).all(same)
            || !self.dealt.iter().zip(shares).all(near)
    }
}

/// The logarithms of the favours that would fit the loads as they are.
fn wanted(servers: &[Server<'_>]) -> Vec<f64> {
    let capacities = capacities(servers);
    let connections = |server: &Server<'_>| server.load.map(|load| f64::from(load.connections));
    let cpu = |server: &Server<'_>| server.load.map(|load| f64::from(load.cpu.get()));
    let pairs = || servers.iter().zip(&capacities);
    let Some((average_connections, average_cpu)) =
        average_per_capacity(pairs().map(|(server, capacity)| (connections(server), *capacity)))
            .zip(average_per_capacity(pairs().map(|(server, capacity)| {
                // CPU is a part of each node's processors and so relative to its capacity already.
                (cpu(server).map(|cpu| cpu * capacity), *capacity)
            })))
    else {
        return vec![0.0; servers.len()];
    };
    pairs()
        .map(|(server, capacity)| {
            let (Some(connections), Some(cpu)) = (connections(server), cpu(server)) else {
                return 0.0;
            };
            let connections = (average_connections + FEW_CONNECTIONS)
                / (connections / capacity + FEW_CONNECTIONS);
            let cpu = (average_cpu + LITTLE_CPU) / (cpu + LITTLE_CPU);
            GAIN / 2.0 * (connections * cpu).ln()
        })
        .collect()
}

/// The shares as whole numbers of turns.
fn turns(dealt: &[Dealt]) -> Vec<NonZeroU8> {
    let most = (TURNS / dealt.len().max(1)).clamp(1, u8::MAX.into()) as f64;
    let greatest = dealt.iter().map(|dealt| dealt.share).fold(0.0, f64::max);
    dealt
        .iter()
        .map(|dealt| {
            // At most 255; a share too small for a turn has one all the same.
            let turns = (dealt.share / greatest * most).round() as u8;
            NonZeroU8::new(turns).unwrap_or(NonZeroU8::MIN)
        })
        .collect()
}
