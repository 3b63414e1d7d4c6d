//! The vocabulary of scenarios. Each step is a struct whose fields are the step's parameters.

use std::fmt;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::span::Span;
use crate::world::World;

/// Defines the steps, each of which is a type with a method `run`.
macro_rules! steps {
    ($($(#[$doc:meta])* $name:ident($step:ty),)+) => {
        /// One step of a scenario: an action, a check, or both.
        #[derive(Debug, Deserialize)]
        #[serde(tag = "do", rename_all = "kebab-case")]
        pub enum Step {
            $($(#[$doc])* $name($step),)+
        }

        impl Step {
            /// Runs the step.
            ///
            /// # Errors
            /// Something was not as expected; the error says what.
            pub fn run(&self, world: &mut World) -> Result<()> {
                match self {
                    $(Step::$name(step) => step.run(world),)+
                }
            }
        }
    };
}

steps! {
    /// curl fetches pages, and their bytes must be the right ones.
    Get(clients::get::Get),
    /// curl sends bodies, and the server must read them unchanged.
    Post(clients::post::Post),
    /// wrk or ab sends requests while other steps happen, and no request may fail.
    Load(clients::load::Load),
    /// Starts clients that go on while further steps happen.
    Begin(clients::background::Begin),
    /// Names what the following steps do to the clients that `begin` started.
    Phase(clients::background::Phase),
    /// Ends the clients that `begin` started; none may have failed.
    Finish(clients::background::Finish),
    /// Runs some steps several times.
    Repeat(operations::repeat::Repeat),
    /// Many clients that are idle while other steps happen.
    Crowd(clients::crowd::Crowd),
    /// Clients that end their connections by a RST, after other steps.
    Abort(clients::abort::Abort),
    /// Clients that connect before they need the connection, and probe it.
    Ahead(clients::ahead::Ahead),
    /// Runs `baton drain`.
    Drain(operations::drain::Drain),
    /// Sends requests in small pieces.
    Trickle(clients::client::Trickle),
    /// Expects that an answer is broken off.
    BrokenOff(clients::broken_off::BrokenOff),
    /// Long downloads, some of which may break off; each byte that arrives must be right.
    Interrupted(clients::interrupted::Interrupted),
    /// Many slow downloads at once.
    Readers(clients::readers::Readers),
    /// Very many connections at once, of which some read nothing.
    Stalled(clients::stalled::Stalled),
    /// A WebSocket whose server echoes.
    Websocket(clients::client::Websocket),
    /// A connection to a server that speaks first.
    Banner(clients::client::Banner),
    /// Counts the RSTs that data servers sent for their own connections.
    Resets(checks::resets::Resets),
    /// Counts how many requests each data server gets.
    Shares(checks::shares::Shares),
    /// Finds out which data server each of many client addresses gets.
    Sticky(clients::sticky::Sticky),
    /// Sends a signal to programs that run in the lab.
    Kill(operations::process::Kill),
    /// Starts programs of the lab again.
    Restart(operations::process::Restart),
    /// Causes a fault of a cable, a machine, a program, packets or a clock.
    Fault(operations::fault::Fault),
    /// Replaces a node's daemon and programs by the next version.
    Upgrade(operations::upgrade::Upgrade),
    /// Starts a node that belongs to the scenario itself.
    StartNode(operations::node::StartNode),
    /// Ends a node that the scenario started; it must end well.
    StopNode(operations::node::StopNode),
    /// Starts a service manager for one host, with baton's unit.
    Systemd(operations::systemd::Systemd),
    /// Runs a command of the service manager, and checks what it says.
    Systemctl(operations::systemd::Systemctl),
    /// Runs `baton teardown`.
    Teardown(operations::node::Teardown),
    /// Runs `baton node` on a wrong configuration, which it must refuse.
    Refuses(operations::refuses::Refuses),
    /// Changes the configuration, and runs `baton reload`.
    Reload(operations::config::Reload),
    /// Has another connection server take over in order.
    Migrate(operations::migrate::Migrate),
    /// Checks what a log holds.
    Log(checks::log::Log),
    /// Checks that every line of the access logs names the client.
    AccessLog(checks::log::AccessLog),
    /// Remembers counters.
    Mark(checks::counters::Mark),
    /// Checks how far counters have moved since the last `mark`.
    Moved(checks::counters::Moved),
    /// Requests in every spelling, each of which must be answered by the data server that nginx finds for it.
    Targets(clients::targets::Targets),
    /// Checks what `baton status` says.
    Status(checks::status::Status),
    /// Checks that nothing is left of ended connections.
    NoConnections(checks::no_connections::NoConnections),
    /// Loses the first data of every connection.
    LoseFirst(operations::shell::LoseFirst),
    /// Checks that packets were really lost.
    Lost(operations::shell::Lost),
    /// Runs a command on a host.
    Run(operations::shell::Run),
    /// Sets kernel parameters of a host.
    Sysctl(operations::shell::Sysctl),
    /// Remembers a host's network settings.
    Snapshot(checks::snapshot::Take),
    /// Checks that the network settings are those of the last `snapshot`.
    Unchanged(checks::snapshot::Unchanged),
    /// Checks that the network settings differ from those of the last `snapshot`.
    Changed(checks::snapshot::Changed),
    /// Sends forged packets without end, while other steps happen.
    Flood(attacks::flood::Flood),
    /// Sends hand-made frames.
    Throw(attacks::throw::Throw),
    /// Sends a recorded ADOPT again.
    Replay(attacks::replay::Replay),
    /// Sends a recorded first segment again.
    ReplayFirst(attacks::replay_first::ReplayFirst),
    /// Sends TCP data of a connection that no node knows.
    Stray(attacks::stray::Stray),
    /// Connections that are handed over from one data server to the next.
    Walk(clients::walk::Walk),
    /// Requests of all kinds, each of which must be answered by the data server that the rules name.
    Ask(clients::ask::Ask),
    /// Counts who has answered how many requests.
    Served(checks::served::Served),
    /// Checks what was counted for routes, pools and data servers.
    Tallied(checks::tallied::Tallied),
    /// Clients that send further requests without waiting for answers.
    Pipeline(clients::pipeline::Pipeline),
    /// Counts a host's sockets.
    CountSockets(checks::sockets::Count),
    /// Checks that there are no more sockets than at the last `count-sockets`.
    NoMoreSockets(checks::sockets::NoMore),
    /// Waits.
    Wait(Wait),
}

/// Waits for some time.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wait {
    r#for: Span,
}

impl Wait {
    /// Runs the step.
    ///
    /// # Errors
    /// None.
    pub fn run(&self, _: &World) -> Result<()> {
        std::thread::sleep(self.r#for.0);
        Ok(())
    }
}

/// Runs the steps that happen in the middle of another step.
///
/// # Errors
/// A step failed; the error says which.
pub(crate) fn meanwhile(steps: &[Step], world: &mut World) -> Result<()> {
    steps.iter().try_for_each(|step| {
        step.run(world)
            .with_context(|| format!("meanwhile, {step}"))
    })
}

/// Shows the step's name in short.
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
