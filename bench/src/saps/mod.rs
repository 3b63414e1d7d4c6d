//! Measures SAPS as its paper did ("Single IP Address Cluster for Internet Servers", section 4). First it is beside
//! the Virtual Server, whose servers answer clients themselves, where the link to the clients is narrow. Then it is
//! beside direct access, where no link is narrow.

mod bandwidth;
mod cluster;
mod connection;
mod four_streams;
mod mix;
mod plain;
mod round_trip;
mod session;
mod support;
mod system;
mod usage;

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;

use anyhow::{Context as _, Result};

use crate::options::Options;
use cluster::Cluster;
use system::turns;

/// Measures, and returns the report in Markdown.
pub(crate) fn measure(options: &Options) -> Result<String> {
    let mut text = narrow(options)?;
    text.push('\n');
    text += &plain::measure(options)?;
    Ok(text)
}

fn narrow(options: &Options) -> Result<String> {
    let cluster = Cluster::raise(options)?;
    let (mut trips, mut bursts, mut streams, mut sites) = (vec![], vec![], vec![], vec![]);
    for round in 1..=options.rounds {
        eprintln!("round {round} of {}", options.rounds);
        trips.push(round_trip::round(&cluster)?);
        bursts.push(turns(|turn| bandwidth::turn(&cluster, turn))?);
        streams.push(turns(|turn| four_streams::turn(&cluster, turn))?);
        sites.push(turns(|turn| {
            support::turn(&cluster, turn, (options.sessions, round))
        })?);
    }
    let usages: Vec<_> = (sites.iter())
        .map(|round| round.each_ref().map(|site| site.usage))
        .collect();
    Ok([
        cluster::markdown(options),
        round_trip::markdown(&trips),
        bandwidth::markdown(&bursts),
        four_streams::markdown(&streams),
        support::markdown(&sites, options.sessions),
        usage::markdown(&usages),
    ]
    .join("\n"))
}

/// Sends back all bytes that come to this port, until the process is ended.
pub(crate) fn echo(port: u16) -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))
        .with_context(|| format!("listen on port {port}"))?;
    for client in listener.incoming() {
        let client = client.context("accept")?;
        // A client that disconnects in the middle is no error.
        thread::spawn(move || send_back(client).ok());
    }
    Ok(())
}

fn send_back(mut client: TcpStream) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    let mut buffer = [0; 4096];
    loop {
        match client.read(&mut buffer)? {
            0 => return Ok(()),
            bytes => client.write_all(&buffer[..bytes])?,
        }
    }
}
