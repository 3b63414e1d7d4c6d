//! The command line of the benchmark.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

/// Measures baton beside direct access and HAProxy, on one machine in one run.
#[derive(Debug, Parser)]
#[command(name = "bench")]
pub(crate) struct Options {
    /// How often each competitor has its turn
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// How long a turn is
    #[arg(long, default_value = "2s", value_parser = humantime::parse_duration)]
    pub turn: Duration,
    /// Which loads [default: all]
    #[arg(long, value_delimiter = ',')]
    pub loads: Vec<Load>,
    /// Connections of wrk, shared among its three threads
    #[arg(long, default_value_t = 66, value_parser = clap::value_parser!(u32).range(3..=9000))]
    pub connections: u32,
    /// Requests of each competitor in the measurement of latency
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(100..))]
    pub requests: u32,
    /// Only fill a table of connections, and show what it costs
    #[arg(long)]
    pub memory: bool,
    /// Only measure what moving between servers costs
    #[arg(long, conflicts_with = "memory")]
    pub handover: bool,
    /// Only measure what it costs to move when messages between nodes are lost
    #[arg(long, conflicts_with = "memory")]
    pub loss: bool,
    /// Only measure what reaches clients in floods
    #[arg(long, conflicts_with = "memory")]
    pub flood: bool,
    /// Only measure what it costs a request to be decided in user space
    #[arg(long, conflicts_with = "memory")]
    pub rules: bool,
    /// Only show what policies do to the hit rates of caches
    #[arg(long, conflicts_with = "memory")]
    pub locality: bool,
    /// Only show how many data servers one connection server is enough for where clients are aware
    #[arg(long, conflicts_with = "memory")]
    pub direct: bool,
    /// Only measure how long a connection server's entries take to another one
    #[arg(long, conflicts_with = "memory")]
    pub migrate: bool,
    /// Only measure an I/O server with virtual sockets beside servers that answer themselves
    #[arg(long, conflicts_with = "memory")]
    pub saps: bool,
    /// Only measure HTTPS that is routed by the name of the server
    #[arg(long, conflicts_with = "memory")]
    pub tls: bool,
    /// Only measure HTTPS that agents of data servers speak, and connections that move
    #[arg(long, conflicts_with = "memory")]
    pub https: bool,
    /// Sessions at the support site of `--saps`
    #[arg(long, default_value_t = 340, value_parser = clap::value_parser!(u32).range(4..=2000))]
    pub sessions: u32,
    /// Under `--saps`, links of nodes ten times as fast as the bottleneck, which then is nobody's own
    #[arg(long, requires = "saps")]
    pub wide: bool,
    /// Send back what comes to this port: what `--saps` runs on the hosts of its lab
    #[arg(long, hide = true, value_name = "PORT")]
    pub echo: Option<u16>,
    /// Entries of that table
    #[arg(long, default_value_t = 1 << 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub flows: u32,
    /// The baton program [default: built now, optimised if this program is]
    #[arg(long)]
    pub baton: Option<PathBuf>,
    /// Where results are written
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/results"))]
    pub results: PathBuf,
}

impl Options {
    /// The loads that were asked for.
    pub fn loads(&self) -> Vec<Load> {
        if self.loads.is_empty() {
            Load::ALL.to_vec()
        } else {
            self.loads.clone()
        }
    }
}

/// What wrk asks for, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Load {
    /// 4 KB over connections that stay
    #[value(name = "4k")]
    FourKilobytes,
    /// 64 KB over connections that stay
    #[value(name = "64k")]
    SixtyFourKilobytes,
    /// 1 MB over connections that stay
    #[value(name = "1m")]
    Megabyte,
    /// 4 KB, each over a connection of its own
    #[value(name = "4k-close")]
    FourKilobytesClose,
}

impl Load {
    /// All loads, in the order of the report.
    pub const ALL: [Load; 4] = [
        Load::FourKilobytes,
        Load::SixtyFourKilobytes,
        Load::Megabyte,
        Load::FourKilobytesClose,
    ];

    /// The name that tables show.
    pub fn name(self) -> &'static str {
        match self {
            Load::FourKilobytes => "4 KB keep-alive",
            Load::SixtyFourKilobytes => "64 KB keep-alive",
            Load::Megabyte => "1 MB keep-alive",
            Load::FourKilobytesClose => "4 KB close",
        }
    }
}
