//! Idle connections leave a data server that drains. Once a second the daemon sends in an empty ACK for each in its
//! client's name, so that the program looks at the connection.

use crate::daemon::Daemon;

impl Daemon {
    /// Tells connection servers which connections are at rest. If this data server drains and `release_after` is set,
    /// idle connections leave. Returns at once.
    pub(crate) fn release_idle(&self) {
        let Some(server) = &self.data_server else {
            return;
        };
        let quiet = self
            .drain
            .is_on()
            .then_some(self.local.config.cs.release_after);
        let quiet = quiet.flatten();
        if quiet.is_some() {
            server.tls_agent.release_idle();
        }
        if let Some(agent) = &server.agent {
            agent.tell_rests();
            quiet.inspect(|quiet| agent.let_idle_leave(*quiet));
        }
    }
}
