//! A node's packet path, attached: what the daemon holds.

use std::{
    collections::BTreeMap,
    os::fd::{AsFd, OwnedFd},
    time::Duration,
};

use baton_abi::{
    COUNTER_MAX, COUNTER_NAMES, Counters, DataServer, MAX_DATA_SERVERS, Service, ServiceKey,
    Settings, Sweep, Tcb, TcbKey,
};
use zerocopy::IntoBytes;

use crate::{
    Error, Options, Programs, Tick, XdpMode,
    loading::{attach, everywhere},
    sys,
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

/// What one sweep of the TCP table found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Entries that stay.
    pub live: u32,
    /// Entries that were too old.
    pub expired: u32,
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

    /// Attaches to the interfaces with these indices, or, if an earlier process left its links pinned,
    /// replaces their programs between two packets. What it left elsewhere is detached.
    pub fn attach(&mut self, interfaces: &[u32], options: &Options) -> Result<(), Error> {
        let pins = options.pins.as_ref();
        // The data server first: a connection server that runs sends it ADOPTs at once.
        if let Some(program) = &self.programs.ds {
            let attached = everywhere::attach("ds", interfaces, pins, |interface, pins| {
                attach::attach_ds(program, interface, pins)
            })?;
            self.taken_over |= attached.iter().any(|one| one.taken_over);
            self.links.extend(attached.into_iter().map(|one| one.link));
        }
        if let Some(program) = &self.programs.window {
            let link = attach::attach_window(program, pins)?;
            self.gives_windows = link.is_some();
            self.links.extend(link);
        }
        let programs = &self.programs;
        for (name, program) in [("cs", &programs.cs), ("switch", &programs.switch)] {
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

    /// How the XDP program is attached: at all interfaces alike.
    pub fn xdp_mode(&self) -> Option<XdpMode> {
        self.xdp_mode
    }

    /// Whether connections begin with the congestion window of their last owner: not without control
    /// groups of version 2.
    pub fn gives_windows(&self) -> bool {
        self.gives_windows
    }

    /// Whether links of an earlier process were found and updated.
    pub fn taken_over(&self) -> bool {
        self.taken_over
    }

    /// Pinned maps of an earlier process that could not be taken over, because another version wrote them
    /// otherwise. No connection was in them.
    pub fn made_anew(&self) -> &[String] {
        &self.programs.made_anew
    }

    /// The settings as the programs read them.
    pub fn settings(&self) -> Result<Settings, Error> {
        self.programs.maps.settings()
    }

    /// Writes the settings. Packets meanwhile may see a mix of old and new words, each of them valid.
    pub fn set_settings(&self, settings: &Settings) -> Result<(), Error> {
        self.programs.maps.set_settings(settings)
    }

    /// All services, and cluster addresses (port 0).
    pub fn services(&self) -> Result<Vec<(ServiceKey, Service)>, Error> {
        self.programs.maps.services()
    }

    /// Adds or replaces a service, at once for all packets.
    pub fn set_service(&self, key: &ServiceKey, service: &Service) -> Result<(), Error> {
        self.programs.maps.set_service(key, service)
    }

    /// Removes a service; its packets go to the kernel from now on.
    pub fn remove_service(&self, key: &ServiceKey) -> Result<(), Error> {
        self.programs.maps.remove_service(key)
    }

    /// Writes `choices`, indices of data servers, from position `first` on.
    pub fn set_choices(&self, first: u32, choices: &[u16]) -> Result<(), Error> {
        self.programs.maps.set_choices(first, choices)
    }

    /// The data server at an index; all zero if there is none.
    pub fn data_server(&self, index: u16) -> Result<DataServer, Error> {
        self.programs.maps.data_server(index)
    }

    /// Every data server that is set, with its index.
    pub fn data_servers(&self) -> Result<Vec<(u16, DataServer)>, Error> {
        (0..MAX_DATA_SERVERS as u16)
            .map(|index| Ok((index, self.data_server(index)?)))
            .filter(|found| !matches!(found, Ok((_, server)) if server.flags == 0))
            .collect()
    }

    /// Sets the data server at an index; a default one clears it.
    pub fn set_data_server(&self, index: u16, server: &DataServer) -> Result<(), Error> {
        self.programs.maps.set_data_server(index, server)
    }

    /// Live flows of a data server, as the last sweep counted them.
    pub fn flows(&self, index: u16) -> Result<u32, Error> {
        self.programs.maps.flows(index)
    }

    /// Entries the TCP table has room for; 0 on a pure data server.
    pub fn tcb_capacity(&self) -> u32 {
        self.programs.maps.tcb_capacity()
    }

    /// One entry of the TCP table.
    pub fn tcb(&self, key: &TcbKey) -> Result<Option<Tcb>, Error> {
        self.programs.maps.tcb(key)
    }

    /// All entries of the TCP table; for inspection, not for the packet path.
    pub fn tcbs(&self) -> Result<Vec<(TcbKey, Tcb)>, Error> {
        self.programs.maps.tcbs()
    }

    /// Writes an entry of the TCP table.
    pub fn set_tcb(&self, key: &TcbKey, tcb: &Tcb) -> Result<(), Error> {
        self.programs.maps.set_tcb(key, tcb)
    }

    /// The value of every counter, summed over processors.
    pub fn counter_values(&self) -> Result<Counters, Error> {
        self.programs.maps.counters()
    }

    /// The name (`cs_forward`) and value of every counter, summed over processors.
    pub fn counters(&self) -> Result<Vec<(String, u64)>, Error> {
        let counters = self.counter_values()?;
        Ok((0..COUNTER_MAX)
            .map(|counter| (counter_name(counter), counters.value[counter as usize]))
            .collect())
    }

    /// Expires TCB entries and counts the live ones of each data server.
    pub fn sweep(&self, idle: Duration, closing: Duration) -> Result<Swept, Error> {
        let Some(program) = &self.programs.sweep else {
            return Ok(Swept::default());
        };
        for index in 0..MAX_DATA_SERVERS as u16 {
            self.programs.maps.set_flows(index, 0)?;
        }
        let mut sweep = Sweep {
            idle_ticks: Tick::from(idle).0,
            closing_ticks: Tick::from(closing).0,
            ..Sweep::default()
        };
        sys::run_on_argument(program.as_fd(), sweep.as_mut_bytes()).map_err(|cause| {
            Error::Run {
                program: "sweep",
                cause,
            }
        })?;
        Ok(Swept {
            live: sweep.live,
            expired: sweep.expired,
        })
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
