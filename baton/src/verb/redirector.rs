//! `baton redirector`: a front that speaks EOP for servers that do not (`baton_redsocks::front`).

use std::{
    net::SocketAddr, num::NonZeroU8, path::PathBuf, process::ExitCode, str::FromStr, time::Duration,
};

use anyhow::{Context as _, Result, bail};
use baton_core::policy::Policy;
use baton_redsocks::front::{Front, Options, Plain, Servers};
use baton_wire::ClusterKey;
use clap::{Args, ValueEnum};
use eop_protocol::{MOST, Target, wire::EopKey};
use tokio::signal::unix::{SignalKind, signal};

#[derive(Args)]
pub struct Redirector {
    /// The address and port where clients connect
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
    /// The server behind, on this host or elsewhere: plain TCP
    #[arg(long, value_name = "ADDRESS:PORT", required_unless_present = "server")]
    to: Option<SocketAddr>,
    /// A front to which clients may be redirected, this one or another, and its weight if not 1; may be repeated.
    /// Without --to, clients are redirected to one of these at once; with it, by their requests under --policy path,
    /// otherwise when this front drains (SIGTERM)
    #[arg(long, value_name = "ADDRESS:PORT[=WEIGHT]")]
    server: Vec<Share>,
    /// How one of the servers is chosen
    #[arg(long, value_enum, default_value_t = By::RoundRobin)]
    policy: By,
    /// What to do with plain clients that are to be served by another server
    #[arg(long, value_enum, default_value_t = PlainClients::Relay)]
    plain: PlainClients,
    /// Say with each 307 that for so many seconds the client may send all its requests for this server to that one
    /// directly (Alt-Svc, RFC 7838). Not with --policy path, because Alt-Svc does not distinguish paths
    #[arg(long, value_name = "SECONDS")]
    alt_svc: Option<u32>,
    /// The cluster's key, 64 hex digits: redirected clients get a token, which is checked where they connect
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Serve only clients that were redirected here, as their token shows; all others are reset
    #[arg(long, requires = "key_file")]
    redirected_only: bool,
    /// How many ms to wait for a client's first bytes before connecting to the server, which may want to speak first
    #[arg(long, value_name = "MS", default_value_t = 200)]
    patience: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum By {
    /// Each in turn
    RoundRobin,
    /// Each in turn, as often as its weight says
    Weighted,
    /// By the client's address
    Client,
    /// By the path of an HTTP/1 request
    Path,
}

#[derive(Clone, Copy, ValueEnum)]
enum PlainClients {
    /// Relay their bytes
    Relay,
    /// Answer HTTP/1 clients with a 307, and relay the bytes of others
    Location,
}

#[derive(Clone, Copy)]
struct Share(Target);

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, weight) = text.split_once('=').unwrap_or((text, "1"));
        let wrong = "write ADDRESS:PORT or ADDRESS:PORT=WEIGHT, with a weight from 1 to 255";
        Ok(Self(Target {
            address: address.parse().map_err(|_| wrong)?,
            weight: NonZeroU8::from_str(weight).map_err(|_| wrong)?,
        }))
    }
}

impl Redirector {
    pub fn run(self) -> Result<ExitCode> {
        let others: Vec<Target> = self.server.iter().map(|share| share.0).collect();
        if others.len() > MOST {
            bail!("{} servers are too many: at most {MOST}", others.len());
        }
        let plain = match (self.plain, self.alt_svc) {
            (PlainClients::Relay, Some(_)) => {
                bail!("--alt-svc goes with a 307: add --plain location")
            }
            (PlainClients::Location, Some(_)) if matches!(self.policy, By::Path) => {
                bail!(
                    "--alt-svc is for all paths of a client: choose another --policy, or leave it out"
                )
            }
            (PlainClients::Relay, None) => Plain::Relay,
            (PlainClients::Location, seconds) => Plain::Location {
                alternative: seconds.map(|seconds| Duration::from_secs(seconds.into())),
            },
        };
        let servers = match self.to {
            Some(server) if others.is_empty() => Servers::Behind(server),
            Some(server) => Servers::Both(server, others),
            None => Servers::Others(others),
        };
        let key = self.key_file.as_deref().map(|file| {
            let text = std::fs::read_to_string(file)
                .with_context(|| format!("cannot read the key of {}", file.display()))?;
            let key: ClusterKey = (text.trim().parse())
                .map_err(|error| anyhow::anyhow!("{}: {error}", file.display()))?;
            anyhow::Ok(EopKey::of(&key))
        });
        let options = Options {
            listen: self.listen,
            servers,
            policy: match self.policy {
                By::RoundRobin => Policy::RoundRobin,
                By::Weighted => Policy::Weighted,
                By::Client => Policy::Client,
                By::Path => Policy::Path,
            },
            plain,
            key: key.transpose()?,
            redirected_only: self.redirected_only,
            patience: Duration::from_millis(self.patience),
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?;
        runtime.block_on(serve(options))
    }
}

async fn serve(options: Options) -> Result<ExitCode> {
    let listen = options.listen;
    let front = Front::bind(options).with_context(|| format!("cannot listen on {listen}"))?;
    let counters = front.counters();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let drain = async move {
        terminate.recv().await;
    };
    // SIGTERM drains; who cannot wait for that interrupts.
    tokio::select! {
        () = front.serve(drain) => {}
        _ = interrupt.recv() => {}
    }
    for (name, count) in counters.all() {
        println!("{name} {count}");
    }
    Ok(ExitCode::SUCCESS)
}
