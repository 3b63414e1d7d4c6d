//! What the agent tells the programs, and what they tell it when asked.

use std::{
    net::{IpAddr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use baton_abi::{
    APP_FAMILY_V4, APP_FAMILY_V6, APP_SOCKET_IPV6, APP_SOCKET_ONLY_IPV6, AppAddress, AppArrival,
    AppCounters, AppDirectKey, AppListener as RawListener, AppSettings,
};
use libbpf_rs::MapHandle;

use super::options::{AppOptions, options};
use crate::{
    Error, Pins,
    clock::{coarse_after, coarse_clock},
    maps::{element, entries, lookup, map_error, per_cpu, read, remove, update},
};

/// The maps of a control group's programs.
pub struct AppMaps {
    pub(super) settings: MapHandle,
    pub(super) counters: MapHandle,
    pub(super) direct: MapHandle,
    pub(super) cluster: MapHandle,
    pub(super) taken: MapHandle,
    pub(super) listeners: MapHandle,
    pub(super) arrivals: MapHandle,
    pub(super) answers: MapHandle,
}

/// A program's listening socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppListener {
    /// The socket's own number.
    pub cookie: u64,
    /// Where the kernel has it: on loopback.
    pub at: SocketAddr,
    /// What its program asked for: any address, or a cluster address.
    pub wanted: SocketAddr,
    /// Whether it is an IPv6 socket. Without `only_ipv6` such a socket takes IPv4 as well.
    pub ipv6: bool,
    /// Whether the socket has IPV6_V6ONLY.
    pub only_ipv6: bool,
    /// The options that its connections inherit.
    pub options: AppOptions,
}

/// A port that programs cannot have: somebody else has it at the I/O server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppTaken {
    /// The number of the port.
    pub port: u16,
    /// Whether the port is taken at the cluster's IPv4 addresses.
    pub v4: bool,
    /// Whether the port is taken at the cluster's IPv6 addresses.
    pub v6: bool,
}

impl AppMaps {
    pub(super) fn try_clone(&self) -> Result<Self, Error> {
        let clone =
            |map: &MapHandle| MapHandle::try_from(map).map_err(|error| map_error("app", error));
        Ok(Self {
            settings: clone(&self.settings)?,
            counters: clone(&self.counters)?,
            direct: clone(&self.direct)?,
            cluster: clone(&self.cluster)?,
            taken: clone(&self.taken)?,
            listeners: clone(&self.listeners)?,
            arrivals: clone(&self.arrivals)?,
            answers: clone(&self.answers)?,
        })
    }

    /// Sets the networks that programs reach without the agent. Loopback always is one.
    ///
    /// # Errors
    /// [`Error::Map`], as of all functions here.
    pub fn set_direct(&self, networks: &[(IpAddr, u8)]) -> Result<(), Error> {
        let wanted: Vec<AppDirectKey> = networks
            .iter()
            .map(|(ip, bits)| AppDirectKey {
                bits: u32::from(*bits) + if ip.is_ipv4() { 96 } else { 0 },
                ip: octets(*ip),
            })
            .collect();
        for key in &wanted {
            update("app_direct", &self.direct, key, &1u32)?;
        }
        for (old, _) in entries::<AppDirectKey, u32>("app_direct", &self.direct)? {
            if !wanted.contains(&old) {
                remove("app_direct", &self.direct, &old)?;
            }
        }
        Ok(())
    }

    /// Sets the cluster addresses. A program that binds to one of them serves the cluster.
    pub fn set_cluster(&self, addresses: &[IpAddr]) -> Result<(), Error> {
        let wanted: Vec<AppAddress> = addresses
            .iter()
            .map(|ip| raw(SocketAddr::new(*ip, 0)))
            .collect();
        for key in &wanted {
            update("app_cluster", &self.cluster, key, &1u32)?;
        }
        for (old, _) in entries::<AppAddress, u32>("app_cluster", &self.cluster)? {
            if !wanted.contains(&old) {
                remove("app_cluster", &self.cluster, &old)?;
            }
        }
        Ok(())
    }

    /// Makes the programs refuse exactly these ports from now on. There may be at most `MAX_APP_TAKEN`.
    pub fn set_taken(&self, ports: &[AppTaken]) -> Result<(), Error> {
        let key = |taken: &AppTaken| u32::from(taken.port.to_be());
        let flag = |is, flag| if is { flag } else { 0 };
        for (old, _) in entries::<u32, u32>("app_taken", &self.taken)? {
            if !ports.iter().any(|taken| key(taken) == old) {
                remove("app_taken", &self.taken, &old)?;
            }
        }
        for taken in ports {
            let families = flag(taken.v4, APP_FAMILY_V4) | flag(taken.v6, APP_FAMILY_V6);
            update("app_taken", &self.taken, &key(taken), &families)?;
        }
        Ok(())
    }

    /// The port that the last agent had; 0 if there was none.
    pub fn agent_port(&self) -> Result<u16, Error> {
        let settings: AppSettings = element("app_settings", &self.settings, 0)?;
        Ok(u16::from_be(settings.be_agent_port))
    }

    /// Tells the programs that an agent answers from this port, from now on for this long.
    pub fn give_sign(&self, port: u16, time: Duration) -> Result<(), Error> {
        let settings = AppSettings {
            alive_until: coarse_after(time),
            be_agent_port: port.to_be(),
            ..AppSettings::default()
        };
        update("app_settings", &self.settings, &0u32, &settings)
    }

    /// Announces the connection that comes next from `agent`, which is the agent's own end of it. `peer` is the
    /// client's end and `local` the cluster's. [`super::AppEvent::Options`] will name the connection by `number`,
    /// which is no socket's cookie.
    pub fn announce(
        &self,
        agent: SocketAddr,
        number: u64,
        peer: SocketAddr,
        local: SocketAddr,
    ) -> Result<(), Error> {
        let arrival = AppArrival {
            local: raw(local),
            peer: raw(peer),
            number,
        };
        update("app_arrivals", &self.arrivals, &raw(agent), &arrival)
    }

    /// Takes an announcement back, if its connection has not come.
    pub fn withdraw(&self, agent: SocketAddr) {
        // Without an entry there is nothing to take back.
        let _ = remove("app_arrivals", &self.arrivals, &raw(agent));
    }

    /// Sets the cluster's end of the connection that this socket is about to have.
    pub fn answer(&self, cookie: u64, local: SocketAddr) -> Result<(), Error> {
        update("app_answers", &self.answers, &cookie, &raw(local))
    }

    /// Everything that listens for the cluster.
    pub fn listeners(&self) -> Result<Vec<AppListener>, Error> {
        let all = entries::<u64, RawListener>("app_listeners", &self.listeners)?;
        Ok(all
            .into_iter()
            .map(|(cookie, one)| AppListener {
                cookie,
                at: address(&one.at),
                wanted: address(&one.wanted),
                ipv6: one.flags & APP_SOCKET_IPV6 != 0,
                only_ipv6: one.flags & APP_SOCKET_ONLY_IPV6 != 0,
                options: options(&one.options),
            })
            .collect())
    }

    /// The options that a listener's connections inherit now. `None` if it no longer listens.
    pub fn listener_options(&self, cookie: u64) -> Result<Option<AppOptions>, Error> {
        let found: Option<RawListener> = lookup("app_listeners", &self.listeners, &cookie)?;
        Ok(found.map(|found| options(&found.options)))
    }

    /// The programs' counters; [`crate::app_counter_name`] names them.
    pub fn counters(&self) -> Result<Vec<u64>, Error> {
        let mut sum = AppCounters::default();
        for cpu in per_cpu("app_counters", &self.counters, 0)? {
            let counters: AppCounters = read("app_counters", &cpu)?;
            for (total, value) in sum.value.iter_mut().zip(counters.value) {
                *total += value;
            }
        }
        Ok(sum.value.to_vec())
    }
}

/// Whether the agent of the node with these pins has given a sign lately.
///
/// # Errors
/// [`Error::Map`], also if there never was an agent.
pub fn app_is_alive(pins: &Pins) -> Result<bool, Error> {
    let map = MapHandle::from_pinned_path(pins.map("app_settings"))
        .map_err(|error| map_error("app_settings", error))?;
    let settings: AppSettings = element("app_settings", &map, 0)?;
    Ok(settings.alive_until >= coarse_clock())
}

fn octets(ip: IpAddr) -> [u8; 16] {
    let ip: Ipv6Addr = match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    ip.octets()
}

fn raw(address: SocketAddr) -> AppAddress {
    AppAddress {
        ip: octets(address.ip()),
        be_port: address.port().to_be(),
        ..AppAddress::default()
    }
}

/// Reads an address. One that is mapped from IPv4 comes back as IPv4.
pub(super) fn address(raw: &AppAddress) -> SocketAddr {
    let ip = IpAddr::from(raw.ip).to_canonical();
    SocketAddr::new(ip, u16::from_be(raw.be_port))
}
