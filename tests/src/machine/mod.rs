//! A cluster of QEMU machines: a client, two connection servers, two data servers. Each has a kernel of its own,
//! virtio-net with two queues and all its offloads, systemd, and the unit of `packaging/`. `tests/machines.md` says
//! how to run it.

mod bodies;
pub mod client;
pub mod cluster;
mod control;
mod drivers;
mod guest;
mod handovers;
mod network;
mod reboots;
mod rolling;

use anyhow::Result;
use cluster::Cluster;

/// The environment variable that names the kernel release of the machines, one of those in target/kernels/linux. The
/// checks run only if it is set.
pub const RELEASE: &str = "BATON_MACHINES";

/// One check of the machines.
pub struct Check {
    /// The name of the test.
    pub name: &'static str,
    /// The property that the check shows.
    pub shows: &'static str,
    /// The function that runs the check.
    pub run: fn(&mut Cluster) -> Result<()>,
}

/// All checks, in the order in which they run.
pub const CHECKS: [Check; 7] = [
    Check {
        name: "drivers",
        shows: "XDP is native in a real driver with two queues, offloads are on at data servers, and baton doctor finds \
                nothing bad",
        run: drivers::attached,
    },
    Check {
        name: "offloads-that-stay",
        shows: "A driver that cannot switch off its receive offloads refuses native XDP",
        run: drivers::refused,
    },
    Check {
        name: "handovers",
        shows: "Connections move with every request, each answer is right, and the driver sends from XDP",
        run: handovers::every_request,
    },
    Check {
        name: "handovers-every-second",
        shows: "Connections move with every second request, each answer is right, and the driver sends from XDP",
        run: handovers::every_second_request,
    },
    Check {
        name: "bodies",
        shows: "Bodies arrive as they were sent, both ways, with segments merged and checksums left to drivers",
        run: bodies::compared,
    },
    Check {
        name: "rolling-reboot",
        shows: "All four nodes are rebooted in turn under load: nothing ends with `resume`, and without it only \
                connections of the data server that is away",
        run: rolling::in_order,
    },
    Check {
        name: "rolling-power-failure",
        shows: "The power fails at all four nodes in turn under load: nothing ends with `resume`, and without it only \
                connections of the data server that is away",
        run: rolling::by_force,
    },
];

/// Removes the machines' network and files after an interrupt; the machines themselves end with this process.
pub fn remove_network() {
    network::remove();
    let _ = std::fs::remove_dir_all(cluster::DIRECTORY);
}
