//! The vocabulary of scenarios: each step a struct whose fields are the step's parameters.

pub mod abort;
pub mod ahead;
pub mod ask;
pub mod background;
pub mod broken_off;
pub mod client;
pub mod config;
pub mod counters;
pub mod crowd;
pub mod downloads;
pub mod drain;
pub mod fault;
pub mod flood;
pub mod get;
pub mod http;
pub mod interrupted;
pub mod load;
pub mod log;
pub mod migrate;
pub mod no_connections;
pub mod node;
pub mod pipeline;
pub mod post;
pub mod process;
pub mod readers;
pub mod refuses;
pub mod repeat;
pub mod replay;
pub mod replay_first;
pub mod resets;
pub mod served;
pub mod shares;
pub mod shell;
pub mod snapshot;
pub mod soak;
pub mod sockets;
pub mod stalled;
pub mod status;
pub mod sticky;
pub mod stray;
pub mod systemd;
pub mod tallied;
pub mod targets;
pub mod throw;
pub mod tour;
pub mod upgrade;
pub mod walk;

use std::fmt;

use anyhow::Result;
use serde::Deserialize;

use crate::slowness;
use crate::span::Span;
use crate::world::World;

/// One step: something that is done, or expected, or both.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum Step {
    /// curl fetches pages, and their bytes are the right ones.
    Get(get::Get),
    /// curl sends bodies, and the server has read them as they were.
    Post(post::Post),
    /// wrk or ab, and no request fails, while other steps happen.
    Load(load::Load),
    /// Clients that go on while further steps happen.
    Begin(background::Begin),
    /// What is done to them from now on.
    Phase(background::Phase),
    /// They end, and none has failed.
    Finish(background::Finish),
    /// Some steps several times.
    Repeat(repeat::Repeat),
    /// Long downloads live through other steps.
    Downloads(downloads::Downloads),
    /// Many clients, most of them idle, while other steps happen.
    Crowd(crowd::Crowd),
    /// Clients that leave by a RST, after other steps.
    Abort(abort::Abort),
    /// Clients that connect ahead of need, and probe.
    Ahead(ahead::Ahead),
    /// `baton drain`.
    Drain(drain::Drain),
    /// A request in small pieces.
    Trickle(client::Trickle),
    /// An answer that is broken off.
    BrokenOff(broken_off::BrokenOff),
    /// Long downloads, some of which may break off; each byte of them is right.
    Interrupted(interrupted::Interrupted),
    /// Many slow ones at once.
    Readers(readers::Readers),
    /// Very many at once, of which some read nothing.
    Stalled(stalled::Stalled),
    /// A WebSocket that echoes.
    Websocket(client::Websocket),
    /// A server that speaks first.
    Banner(client::Banner),
    /// RSTs that data servers sent for their own connections.
    Resets(resets::Resets),
    /// How many requests each data server gets.
    Shares(shares::Shares),
    /// Which data server each of many client addresses gets.
    Sticky(sticky::Sticky),
    /// A signal to what runs in the lab.
    Kill(process::Kill),
    /// What runs in the lab is started again.
    Restart(process::Restart),
    /// Something goes wrong: a cable, a machine, a program, packets.
    Fault(fault::Fault),
    /// The next version takes the place of a node's daemon and programs.
    Upgrade(upgrade::Upgrade),
    /// A node started by the scenario itself.
    StartNode(node::StartNode),
    /// It is told to end, and ends well.
    StopNode(node::StopNode),
    /// A service manager of a host's own, with baton's unit.
    Systemd(systemd::Systemd),
    /// What it is told, and what it says.
    Systemctl(systemd::Systemctl),
    /// `baton teardown`.
    Teardown(node::Teardown),
    /// `baton node` on a wrong configuration.
    Refuses(refuses::Refuses),
    /// A changed configuration, and `baton reload`.
    Reload(config::Reload),
    /// Another connection server takes over in order.
    Migrate(migrate::Migrate),
    /// What a log must hold.
    Log(log::Log),
    /// Every line of the access logs names the client.
    AccessLog(log::AccessLog),
    /// Counters are remembered.
    Mark(counters::Mark),
    /// How they have moved since.
    Moved(counters::Moved),
    /// Requests in every spelling, each answered by whom nginx finds for it.
    Targets(targets::Targets),
    /// What `baton status` says.
    Status(status::Status),
    /// Nothing is left of ended connections.
    NoConnections(no_connections::NoConnections),
    /// Loss on links.
    Loss(shell::Loss),
    /// Loss of every connection's first data.
    LoseFirst(shell::LoseFirst),
    /// Messages between nodes are lost.
    LoseMessages(shell::LoseMessages),
    /// That packets were lost indeed.
    Lost(shell::Lost),
    /// A command on a host.
    Run(shell::Run),
    /// Kernel parameters of a host.
    Sysctl(shell::Sysctl),
    /// A host's network settings are remembered.
    Snapshot(snapshot::Take),
    /// They are as they were.
    Unchanged(snapshot::Unchanged),
    /// They are not.
    Changed(snapshot::Changed),
    /// Forged packets without end, while other steps happen.
    Flood(flood::Flood),
    /// Hand-made frames.
    Throw(throw::Throw),
    /// A recorded ADOPT, sent again.
    Replay(replay::Replay),
    /// A recorded first segment, sent again.
    ReplayFirst(replay_first::ReplayFirst),
    /// TCP data of a connection nobody knows.
    Stray(stray::Stray),
    /// Connections that are handed from one data server to the next.
    Walk(walk::Walk),
    /// One curl, one connection, every data server.
    Tour(tour::Tour),
    /// Requests of all kinds, each answered by whom the rules say.
    Ask(ask::Ask),
    /// Who has answered how many requests.
    Served(served::Served),
    /// What routes, pools and data servers had to do.
    Tallied(tallied::Tallied),
    /// Clients that do not wait for answers.
    Pipeline(pipeline::Pipeline),
    /// Handovers, as many as one likes.
    Soak(soak::Soak),
    /// A host's sockets are counted.
    CountSockets(sockets::Count),
    /// There are no more of them than then.
    NoMoreSockets(sockets::NoMore),
    /// Time passes.
    Wait(Wait),
}

/// Time passes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wait {
    r#for: Span,
}

impl Step {
    /// Does it.
    ///
    /// # Errors
    /// What was not as expected.
    pub fn run(&self, world: &mut World) -> Result<()> {
        match self {
            Step::Get(step) => step.run(world),
            Step::Post(step) => step.run(world),
            Step::Load(step) => step.run(world),
            Step::Begin(step) => step.run(world),
            Step::Phase(step) => step.run(world),
            Step::Finish(step) => step.run(world),
            Step::Downloads(step) => step.run(world),
            Step::Crowd(step) => step.run(world),
            Step::Abort(step) => step.run(world),
            Step::Ahead(step) => step.run(world),
            Step::Drain(step) => step.run(world),
            Step::Trickle(step) => step.run(world),
            Step::BrokenOff(step) => step.run(world),
            Step::Interrupted(step) => step.run(world),
            Step::Readers(step) => step.run(world),
            Step::Stalled(step) => step.run(world),
            Step::Websocket(step) => step.run(world),
            Step::Banner(step) => step.run(world),
            Step::Resets(step) => step.run(world),
            Step::Shares(step) => step.run(world),
            Step::Sticky(step) => step.run(world),
            Step::Kill(step) => step.run(world),
            Step::Restart(step) => step.run(world),
            Step::Fault(step) => step.run(world),
            Step::Upgrade(step) => step.run(world),
            Step::StartNode(step) => step.run(world),
            Step::StopNode(step) => step.run(world),
            Step::Systemd(step) => step.run(world),
            Step::Systemctl(step) => step.run(world),
            Step::Teardown(step) => step.run(world),
            Step::Refuses(step) => step.run(world),
            Step::Reload(step) => step.run(world),
            Step::Migrate(step) => step.run(world),
            Step::Log(step) => step.run(world),
            Step::AccessLog(step) => step.run(world),
            Step::Mark(step) => step.run(world),
            Step::Moved(step) => step.run(world),
            Step::Status(step) => step.run(world),
            Step::NoConnections(step) => step.run(world),
            Step::Loss(step) => step.run(world),
            Step::LoseFirst(step) => step.run(world),
            Step::LoseMessages(step) => step.run(world),
            Step::Lost(step) => step.run(world),
            Step::Run(step) => step.run(world),
            Step::Sysctl(step) => step.run(world),
            Step::Snapshot(step) => step.run(world),
            Step::Unchanged(step) => step.run(world),
            Step::Changed(step) => step.run(world),
            Step::Flood(step) => step.run(world),
            Step::Throw(step) => step.run(world),
            Step::Replay(step) => step.run(world),
            Step::ReplayFirst(step) => step.run(world),
            Step::Stray(step) => step.run(world),
            Step::Walk(step) => step.run(world),
            Step::Tour(step) => step.run(world),
            Step::Ask(step) => step.run(world),
            Step::Targets(step) => step.run(world),
            Step::Served(step) => step.run(world),
            Step::Tallied(step) => step.run(world),
            Step::Pipeline(step) => step.run(world),
            Step::Soak(step) => step.run(world),
            Step::CountSockets(step) => step.run(world),
            Step::NoMoreSockets(step) => step.run(world),
            Step::Repeat(step) => step.run(world),
            Step::Wait(step) => {
                std::thread::sleep(step.r#for.0);
                Ok(())
            }
        }
    }
}

/// How long what must come is waited for, unless a scenario says otherwise.
pub(crate) fn patience() -> Span {
    Span(slowness::patience())
}

/// The step's name, in short.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = format!("{self:?}");
        let name = whole.split('(').next().unwrap_or_default();
        f.write_str(&name.to_lowercase())
    }
}
