//! Overflow: one server, the *home*, serves everything until it has too much to do; what is beyond that
//! is delegated to the others, by their weights, until all of it fits again.
//!
//! Once a second the home's share of the turns follows from two limits, and the smaller one holds:
//!
//! ```text
//!   connections:  share = limit / all connections of the service     (1 while these fit)
//!   CPU:          share shrinks by (limit / CPU)^GAIN while the home's CPU is above the limit, and grows
//!                 likewise while it is below 0.9 of it, in steps of a fifth at most
//! ```
//!
//! The first looks at the sum of connections, which does not depend on how they are shared out, so it cannot
//! swing. The second does not know how much of the CPU is this service's, so it goes in steps. CPU is smoothed
//! over a few seconds; the loop is damped by 1/(2 sqrt(GAIN SMOOTHING)) = 0.65. Both begin at the limit and end
//! at `FITS` of it: without that gap everything would come home and leave again with every few connections.
//! While there is no overflow the others are no members of the pool. So when it begins every connection chooses
//! anew, at its next request, and the home sheds at once what is too much. When it ends, everything comes home
//! in the same way.

use std::num::NonZeroU8;
use std::time::Duration;

use baton_wire::Permille;

use super::rule::Rule;
use super::server::Server;
use crate::slots::Slot;
use crate::{Moment, weighted_round_robin};

/// When a home has too much to do. At least one limit should be set: without any it never has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// The home: the server that serves as long as it can. If it is not there the others serve everything.
    pub home: Slot,
    /// The limit of CPU use on the home's node.
    pub cpu: Option<Permille>,
    /// The limit of established connections of the service.
    pub connections: Option<u32>,
}

/// The time between two looks at the loads.
const PERIOD: Duration = Duration::from_secs(1);

/// How many periods it takes a change of CPU to be believed for most of it (1 - 1/e).
const SMOOTHING: f64 = 3.0;

/// Overflow ends when this part of the limit would suffice.
const FITS: f64 = 0.9;

/// How strongly the share reacts to the CPU: this part of the excess, as a logarithm, goes in each period.
const GAIN: f64 = 0.2;

/// The most that the share of CPU changes in one period.
const STEPS: std::ops::RangeInclusive<f64> = 0.8..=1.2;

/// The home always keeps this share: if it served nothing, its load could not be measured.
const LEAST: f64 = 1.0 / SHARES;

/// Shares are rounded to this many parts, so that choices change only when shares change noticeably.
const SHARES: f64 = 64.0;

#[derive(Debug)]
pub(super) struct Overflow {
    limits: Limits,
    due: Option<Moment>,
    /// The home's smoothed CPU use in permille.
    cpu: Option<f64>,
    by_cpu: f64,
    by_connections: f64,
}

impl Overflow {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            due: None,
            cpu: None,
            by_cpu: 1.0,
            by_connections: 1.0,
        }
    }

    fn look_at(&mut self, home: &Server<'_>, servers: &[Server<'_>]) {
        // A home that is not heard has no new load.
        let Some(load) = home.load else { return };
        if let Some(limit) = self.limits.connections {
            let all = servers.iter().filter_map(|server| server.load);
            let all = all.map(|load| u64::from(load.connections)).sum();
            self.look_at_connections(limit.into(), all);
        }
        if let Some(limit) = self.limits.cpu {
            let now = f64::from(load.cpu.get());
            let believed = self.cpu.map_or(now, |cpu| cpu + (now - cpu) / SMOOTHING);
            self.cpu = Some(believed);
            self.look_at_cpu(f64::from(limit.get()), believed);
        }
    }

    fn look_at_connections(&mut self, limit: u64, all: u64) {
        let share = limit as f64 / all.max(1) as f64;
        let overflows = self.by_connections < 1.0;
        self.by_connections = match overflows {
            false if all > limit => share,
            true if share * FITS < 1.0 => share.min(1.0 - LEAST),
            _ => 1.0,
        };
    }

    fn look_at_cpu(&mut self, limit: f64, cpu: f64) {
        let room = limit / cpu.max(1.0);
        if room < 1.0 {
            self.by_cpu = (self.by_cpu * room.powf(GAIN).max(*STEPS.start())).max(LEAST);
        } else if room * FITS > 1.0 {
            self.by_cpu = (self.by_cpu * (room * FITS).powf(GAIN).min(*STEPS.end())).min(1.0);
        }
    }

    /// The home's share, rounded to a multiple of 1 / `SHARES`.
    fn share(&self) -> f64 {
        let share = self.by_cpu.min(self.by_connections).max(LEAST);
        (share * SHARES).round() / SHARES
    }
}

impl Rule for Overflow {
    fn choices(&mut self, now: Moment, servers: &[Server<'_>]) -> Vec<usize> {
        let is_home = |server: &Server<'_>| server.slot == self.limits.home;
        let Some(home) = servers.iter().position(is_home) else {
            *self = Self::new(self.limits);
            let weights: Vec<NonZeroU8> = servers.iter().map(|server| server.weight).collect();
            return weighted_round_robin::sequence(&weights);
        };
        if self.due.is_none_or(|due| due <= now) {
            self.due = Some(now + PERIOD);
            self.look_at(&servers[home], servers);
        }
        let share = self.share();
        if share >= 1.0 || servers.len() == 1 {
            return vec![home];
        }
        weighted_round_robin::sequence(&turns(servers, home, share))
    }

    fn next_timeout(&self) -> Option<Moment> {
        self.due
    }
}

/// Whole numbers of turns: the home's by its share, and those of the others by their weights from the rest.
fn turns(servers: &[Server<'_>], home: usize, share: f64) -> Vec<NonZeroU8> {
    let others = servers
        .iter()
        .enumerate()
        .filter(|(index, _)| *index != home);
    let weights: f64 = others
        .map(|(_, server)| f64::from(server.weight.get()))
        .sum();
    let parts: Vec<f64> = (servers.iter().enumerate())
        .map(|(index, server)| match index == home {
            true => share,
            false => (1.0 - share) * f64::from(server.weight.get()) / weights,
        })
        .collect();
    let greatest = parts.iter().copied().fold(0.0, f64::max);
    let turns = |part: &f64| {
        // At most 255; a share too small for a turn has one all the same.
        let turns = (part / greatest * f64::from(u8::MAX)).round() as u8;
        NonZeroU8::new(turns).unwrap_or(NonZeroU8::MIN)
    };
    parts.iter().map(turns).collect()
}
