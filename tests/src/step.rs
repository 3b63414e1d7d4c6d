//! The vocabulary of scenarios: each step a struct whose fields are the step's parameters.

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
    Get(crate::step::clients::get::Get),
    /// curl sends bodies, and the server has read them as they were.
    Post(crate::step::clients::post::Post),
    /// wrk or ab, and no request fails, while other steps happen.
    Load(crate::step::clients::load::Load),
    /// Clients that go on while further steps happen.
    Begin(crate::step::clients::background::Begin),
    /// What is done to them from now on.
    Phase(crate::step::clients::background::Phase),
    /// They end, and none has failed.
    Finish(crate::step::clients::background::Finish),
    /// Some steps several times.
    Repeat(crate::step::operations::repeat::Repeat),
    /// Long downloads live through other steps.
    Downloads(crate::step::clients::downloads::Downloads),
    /// Many clients, most of them idle, while other steps happen.
    Crowd(crate::step::clients::crowd::Crowd),
    /// Clients that leave by a RST, after other steps.
    Abort(crate::step::clients::abort::Abort),
    /// Clients that connect ahead of need, and probe.
    Ahead(crate::step::clients::ahead::Ahead),
    /// `baton drain`.
    Drain(crate::step::operations::drain::Drain),
    /// A request in small pieces.
    Trickle(crate::step::clients::client::Trickle),
    /// An answer that is broken off.
    BrokenOff(crate::step::clients::broken_off::BrokenOff),
    /// Long downloads, some of which may break off; each byte of them is right.
    Interrupted(crate::step::clients::interrupted::Interrupted),
    /// Many slow ones at once.
    Readers(crate::step::clients::readers::Readers),
    /// Very many at once, of which some read nothing.
    Stalled(crate::step::clients::stalled::Stalled),
    /// A WebSocket that echoes.
    Websocket(crate::step::clients::client::Websocket),
    /// A server that speaks first.
    Banner(crate::step::clients::client::Banner),
    /// RSTs that data servers sent for their own connections.
    Resets(crate::step::checks::resets::Resets),
    /// How many requests each data server gets.
    Shares(crate::step::checks::shares::Shares),
    /// Which data server each of many client addresses gets.
    Sticky(crate::step::clients::sticky::Sticky),
    /// A signal to what runs in the lab.
    Kill(crate::step::operations::process::Kill),
    /// What runs in the lab is started again.
    Restart(crate::step::operations::process::Restart),
    /// Something goes wrong: a cable, a machine, a program, packets.
    Fault(crate::step::operations::fault::Fault),
    /// The next version takes the place of a node's daemon and programs.
    Upgrade(crate::step::operations::upgrade::Upgrade),
    /// A node started by the scenario itself.
    StartNode(crate::step::operations::node::StartNode),
    /// It is told to end, and ends well.
    StopNode(crate::step::operations::node::StopNode),
    /// A service manager of a host's own, with baton's unit.
    Systemd(crate::step::operations::systemd::Systemd),
    /// What it is told, and what it says.
    Systemctl(crate::step::operations::systemd::Systemctl),
    /// `baton teardown`.
    Teardown(crate::step::operations::node::Teardown),
    /// `baton node` on a wrong configuration.
    Refuses(crate::step::operations::refuses::Refuses),
    /// A changed configuration, and `baton reload`.
    Reload(crate::step::operations::config::Reload),
    /// Another connection server takes over in order.
    Migrate(crate::step::operations::migrate::Migrate),
    /// What a log must hold.
    Log(crate::step::checks::log::Log),
    /// Every line of the access logs names the client.
    AccessLog(crate::step::checks::log::AccessLog),
    /// Counters are remembered.
    Mark(crate::step::checks::counters::Mark),
    /// How they have moved since.
    Moved(crate::step::checks::counters::Moved),
    /// Requests in every spelling, each answered by whom nginx finds for it.
    Targets(crate::step::clients::targets::Targets),
    /// What `baton status` says.
    Status(crate::step::checks::status::Status),
    /// Nothing is left of ended connections.
    NoConnections(crate::step::checks::no_connections::NoConnections),
    /// Loss on links.
    Loss(crate::step::operations::shell::Loss),
    /// Loss of every connection's first data.
    LoseFirst(crate::step::operations::shell::LoseFirst),
    /// Messages between nodes are lost.
    LoseMessages(crate::step::operations::shell::LoseMessages),
    /// That packets were lost indeed.
    Lost(crate::step::operations::shell::Lost),
    /// A command on a host.
    Run(crate::step::operations::shell::Run),
    /// Kernel parameters of a host.
    Sysctl(crate::step::operations::shell::Sysctl),
    /// A host's network settings are remembered.
    Snapshot(crate::step::checks::snapshot::Take),
    /// They are as they were.
    Unchanged(crate::step::checks::snapshot::Unchanged),
    /// They are not.
    Changed(crate::step::checks::snapshot::Changed),
    /// Forged packets without end, while other steps happen.
    Flood(crate::step::attacks::flood::Flood),
    /// Hand-made frames.
    Throw(crate::step::attacks::throw::Throw),
    /// A recorded ADOPT, sent again.
    Replay(crate::step::attacks::replay::Replay),
    /// A recorded first segment, sent again.
    ReplayFirst(crate::step::attacks::replay_first::ReplayFirst),
    /// TCP data of a connection nobody knows.
    Stray(crate::step::attacks::stray::Stray),
    /// Connections that are handed from one data server to the next.
    Walk(crate::step::clients::walk::Walk),
    /// One curl, one connection, every data server.
    Tour(crate::step::clients::tour::Tour),
    /// Requests of all kinds, each answered by whom the rules say.
    Ask(crate::step::clients::ask::Ask),
    /// Who has answered how many requests.
    Served(crate::step::checks::served::Served),
    /// What routes, pools and data servers had to do.
    Tallied(crate::step::checks::tallied::Tallied),
    /// Clients that do not wait for answers.
    Pipeline(crate::step::clients::pipeline::Pipeline),
    /// Handovers, as many as one likes.
    Soak(crate::step::clients::soak::Soak),
    /// A host's sockets are counted.
    CountSockets(crate::step::checks::sockets::Count),
    /// There are no more of them than then.
    NoMoreSockets(crate::step::checks::sockets::NoMore),
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
pub mod attacks;
pub mod checks;
pub mod clients;
pub mod operations;
