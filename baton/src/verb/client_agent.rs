//! `baton client-agent`: this host, which is no node, is an aware client: its packets go to the data server of each
//! connection themselves.

use std::{
    net::{Ipv4Addr, SocketAddrV4},
    path::PathBuf,
    process::ExitCode,
    str::FromStr,
};

use anyhow::{Context as _, Result, bail};
use baton_dataplane::{ClientOptions, ClientPins, Ipv4Network};
use baton_net::netns;
use clap::{Args, Subcommand};
use nix::{ifaddrs::getifaddrs, net::if_::if_nametoindex};

use super::group::group_or_all;

const BPF_DIR: &str = "/sys/fs/bpf/baton-client";
/// tcp(7): the most that the kernel takes as `TCP_KEEPIDLE`.
const LONGEST_SILENCE: i64 = 32767;

/// What is to be done.
#[derive(Subcommand)]
pub enum ClientAgent {
    /// Send packets of connections to the services directly to their data servers from now on
    Attach(Attach),
    /// Send all packets to the connection server again, those of existing connections included
    Detach(Place),
    /// Show the counters of what was announced, received and sent directly
    Status(Place),
}

#[derive(Args)]
pub struct Attach {
    /// The interface by which packets for the services leave
    #[arg(long, value_name = "NAME")]
    interface: String,
    /// A cluster address and port whose configuration says `direct = true`; may be repeated
    #[arg(long = "service", value_name = "ADDRESS:PORT", required = true)]
    services: Vec<SocketAddrV4>,
    /// The network in which data servers are; addresses of data servers outside it are not accepted
    #[arg(long, value_name = "ADDRESS/BITS")]
    within: Option<Prefix>,
    /// Seconds of silence on a connection, after which its data server is asked whether it is there; if it is not, the
    /// connection server is asked; 0: never
    #[arg(long, value_name = "SECONDS", default_value_t = 10,
          value_parser = clap::value_parser!(u16).range(..=LONGEST_SILENCE))]
    silence: u16,
    /// The control group whose programs take part, a directory of cgroup v2 [default: all programs of the machine]
    #[arg(long, value_name = "DIRECTORY")]
    cgroup: Option<PathBuf>,
    #[command(flatten)]
    place: Place,
}

#[derive(Args)]
pub struct Place {
    /// Where the programs are kept, in a BPF file system
    #[arg(long, value_name = "DIRECTORY", default_value = BPF_DIR)]
    bpf_dir: PathBuf,
}

impl ClientAgent {
    pub fn run(self) -> Result<ExitCode> {
        match self {
            Self::Attach(attach) => attach.run()?,
            Self::Detach(place) => {
                ClientPins::at(place.bpf_dir).detach()?;
                println!(
                    "this host is no aware client now: all packets go to the connection server"
                );
            }
            Self::Status(place) => {
                let Some(counters) = ClientPins::at(place.bpf_dir).counters()? else {
                    bail!("this host is no aware client; start with: baton client-agent attach");
                };
                for (name, value) in counters {
                    println!("{name} {value}");
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Attach {
    fn run(self) -> Result<()> {
        let interface = if_nametoindex(self.interface.as_str())
            .with_context(|| format!("there is no interface {}", self.interface))?;
        let group = group_or_all(self.cgroup)?;
        let options = ClientOptions {
            interface,
            lan: lan(&self.interface)?,
            netns: netns::cookie()?,
            services: self.services,
            within: self.within.map(|prefix| prefix.0),
            silence: self.silence,
        };
        ClientPins::at(self.place.bpf_dir).attach(&group, &options)?;
        println!(
            "programs in {} may send to the data servers of {} services directly, by {}",
            group.display(),
            options.services.len(),
            self.interface
        );
        Ok(())
    }
}

/// The network of an interface's first IPv4 address.
fn lan(interface: &str) -> Result<Ipv4Network> {
    let addresses = getifaddrs().context("cannot list the addresses of interfaces")?;
    let mut networks = addresses.filter(|found| found.interface_name == interface);
    let found = networks.find_map(|found| {
        Some(Ipv4Network {
            address: found.address?.as_sockaddr_in()?.ip(),
            mask: found.netmask?.as_sockaddr_in()?.ip(),
        })
    });
    found.with_context(|| format!("{interface} has no IPv4 address; give it one first"))
}

/// A network as people write it: 192.0.2.0/24.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Prefix(Ipv4Network);

impl FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = || format!("{text:?} is no network; write ADDRESS/BITS, as 192.0.2.0/24");
        let (address, bits) = text.split_once('/').ok_or_else(wanted)?;
        let address: Ipv4Addr = address.parse().map_err(|_| wanted())?;
        let bits: u32 = bits.parse().map_err(|_| wanted())?;
        if bits > u32::BITS {
            return Err(wanted());
        }
        let mask = u32::MAX.checked_shl(u32::BITS - bits).unwrap_or(0);
        Ok(Self(Ipv4Network {
            address,
            mask: Ipv4Addr::from_bits(mask),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_networks() {
        let mask = |text: &str| text.parse::<Prefix>().map(|prefix| prefix.0.mask);
        assert_eq!(mask("192.0.2.0/24"), Ok(Ipv4Addr::from_bits(0xffff_ff00)));
        assert_eq!(mask("192.0.2.1/32"), Ok(Ipv4Addr::BROADCAST));
        assert_eq!(mask("0.0.0.0/0"), Ok(Ipv4Addr::UNSPECIFIED));
        for wrong in ["192.0.2.0", "192.0.2.0/33", "192.0.2/24", "a/b", "::/0"] {
            assert!(mask(wrong).is_err(), "{wrong}");
        }
    }
}
