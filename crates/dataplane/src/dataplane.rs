//! A node's attached packet path, which the daemon holds.

use std::{collections::BTreeMap, os::fd::OwnedFd};

use baton_abi::{
    COUNTER_MAX, COUNTER_NAMES, Counters, DataServer as Way, MAX_DATA_SERVERS, Service, ServiceKey,
    Settings,
};

use crate::{
    ConnectionServer, DataServer, Error, Options, Programs, Routing, Switch, Tallied, XdpMode,
    loading::{attach, everywhere},
    maps::{element, entries, per_cpu, read, remove, update},
};

/// Programs on a node's interfaces, and their maps.
pub struct Dataplane {
    programs: Programs,
    links: Vec<OwnedFd>,
    pub(crate) head_links: Vec<OwnedFd>,
    pub(crate) relay_links: BTreeMap<u32, OwnedFd>,
    xdp_mode: Option<XdpMode>,
    taken_over: bool,
    gives_windows: bool,
}

impl Dataplane {
    /// Loads the programs for these options; [`Dataplane::attach`] puts them to work. Between the two
    /// the maps should be filled.
    pub fn load(options: &Options) -> Result<Self, Error> {
        let programs = Programs::load(options)?;
        Ok(Self {
            programs,
            links: Vec::new(),
            head_links: Vec::new(),
            relay_links: BTreeMap::new(),
            xdp_mode: None,
            taken_over: false,
            gives_windows: false,
        })
    }

    /// Attaches the programs to the interfaces with these indices. If an earlier process left its links pinned, their
    /// programs are replaced between two packets. What that process left elsewhere is detached.
    pub fn attach(&mut self, interfaces: &[u32], options: &Options) -> Result<(), Error> {
        let pins = options.pins.as_ref();
        // The data server's program is attached first, because a running connection server sends it ADOPTs at once.
        if let Some(server) = &self.programs.data_server {
            let attached = everywhere::attach("ds", interfaces, pins, |interface, pins| {
                attach::attach_ds(&server.ingress, interface, pins)
            })?;
            self.taken_over |= attached.iter().any(|one| one.taken_over);
            self.links.extend(attached.into_iter().map(|one| one.link));
            let link = attach::attach_window(&server.window, pins)?;
            self.gives_windows = link.is_some();
            self.links.extend(link);
        }
        let programs = &self.programs;
        let of_cs = programs
            .connection_server
            .as_ref()
            .map(|server| &server.xdp);
        let of_switch = programs.switch.as_ref().map(|switch| &switch.xdp);
        for (name, program) in [("cs", of_cs), ("switch", of_switch)] {
            let Some(program) = program else { continue };
            let (attached, mode) = everywhere::attach_xdp(
                name,
                program,
                interfaces,
                options.frags,
                pins,
                options.xdp,
            )?;
            self.taken_over |= attached.iter().any(|one| one.taken_over);
            self.links.extend(attached.into_iter().map(|one| one.link));
            self.xdp_mode = Some(mode);
        }
        Ok(())
    }

    /// Lets go of the links, so that removing their pins ends the programs.
    pub fn release(&mut self) {
        self.links.clear();
        self.head_links.clear();
        self.relay_links.clear();
    }

    /// The mode of the XDP program, which is the same at all interfaces.
    pub fn xdp_mode(&self) -> Option<XdpMode> {
        self.xdp_mode
    }

    /// Whether connections begin with the congestion window of their last owner. This needs control groups of version
    /// 2.
    pub fn gives_windows(&self) -> bool {
        self.gives_windows
    }

    /// Whether links of an earlier process were found and updated.
    pub fn taken_over(&self) -> bool {
        self.taken_over
    }

    /// The names of an earlier process's pinned maps that could not be taken over, because another version wrote them
    /// in another layout. No connection was in them.
    pub fn made_anew(&self) -> &[String] {
        &self.programs.made_anew
    }

    /// The connection server's programs and maps, if this node is one.
    pub fn as_connection_server(&self) -> Option<&ConnectionServer> {
        self.programs.connection_server.as_ref()
    }

    /// The data server's programs and maps, if this node is one.
    pub fn as_data_server(&self) -> Option<&DataServer> {
        self.programs.data_server.as_ref()
    }

    /// The switch's program and map, if this node is one.
    pub fn as_switch(&self) -> Option<&Switch> {
        self.programs.switch.as_ref()
    }

    /// The maps that say where requests go, if this node routes any, as a connection server or a data server.
    pub fn routing(&self) -> Option<&Routing> {
        self.programs.routing.as_deref()
    }

    /// Sets a tally to zero, because its index goes to something else. A node that routes nothing has no tallies.
    pub fn clear_tally(&self, of: Tallied) -> Result<(), Error> {
        if let Some(routing) = self.routing() {
            routing.clear_tally(of)?;
        }
        if let Some(server) = self.as_data_server() {
            server.clear_door_tally(of)?;
        }
        Ok(())
    }

    /// The settings as the programs read them.
    pub fn settings(&self) -> Result<Settings, Error> {
        element("settings", &self.programs.common.settings, 0)
    }

    /// Writes the settings. Packets meanwhile may see a mix of old and new words, each of them valid.
    pub fn set_settings(&self, settings: &Settings) -> Result<(), Error> {
        update("settings", &self.programs.common.settings, &0u32, settings)
    }

    /// All services, and cluster addresses (port 0).
    pub fn services(&self) -> Result<Vec<(ServiceKey, Service)>, Error> {
        entries("services", &self.programs.common.services)
    }

    /// Adds or replaces a service, at once for all packets.
    pub fn set_service(&self, key: &ServiceKey, service: &Service) -> Result<(), Error> {
        update("services", &self.programs.common.services, key, service)
    }

    /// Removes a service; its packets go to the kernel from now on.
    pub fn remove_service(&self, key: &ServiceKey) -> Result<(), Error> {
        remove("services", &self.programs.common.services, key)
    }

    /// The data server at an index; all zero if there is none.
    pub fn data_server(&self, index: u16) -> Result<Way, Error> {
        element(
            "data_servers",
            &self.programs.common.data_servers,
            index.into(),
        )
    }

    /// Every data server that is set, with its index.
    pub fn data_servers(&self) -> Result<Vec<(u16, Way)>, Error> {
        (0..MAX_DATA_SERVERS as u16)
            .map(|index| Ok((index, self.data_server(index)?)))
            .filter(|found| !matches!(found, Ok((_, server)) if server.flags == 0))
            .collect()
    }

    /// Sets the data server at an index; a default one clears it.
    pub fn set_data_server(&self, index: u16, server: &Way) -> Result<(), Error> {
        let servers = &self.programs.common.data_servers;
        update("data_servers", servers, &u32::from(index), server)
    }

    /// The value of every counter, summed over processors.
    pub fn counter_values(&self) -> Result<Counters, Error> {
        let mut sum = Counters::default();
        for cpu in per_cpu("counters", &self.programs.common.counters, 0)? {
            let counters: Counters = read("counters", &cpu)?;
            for (total, value) in sum.value.iter_mut().zip(counters.value) {
                *total += value;
            }
        }
        Ok(sum)
    }

    /// The name (`cs_forward`) and value of every counter, summed over processors.
    pub fn counters(&self) -> Result<Vec<(String, u64)>, Error> {
        let counters = self.counter_values()?;
        Ok((0..COUNTER_MAX)
            .map(|counter| (counter_name(counter), counters.value[counter as usize]))
            .collect())
    }

    /// The programs, for running them on single packets.
    pub fn programs(&self) -> &Programs {
        &self.programs
    }
}

/// The name of a counter of `enum counter`, as metrics and status show it: `cs_forward`.
pub fn counter_name(counter: u32) -> String {
    COUNTER_NAMES
        .iter()
        .find(|(_, index)| *index == counter)
        .map_or_else(
            || format!("counter_{counter}"),
            |(name, _)| name.trim_start_matches("COUNTER_").to_lowercase(),
        )
}
