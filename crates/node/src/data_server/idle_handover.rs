//! Idle connections leave a data server that drains. Once a second the daemon sends in an empty ACK for each in its
//! client's name, so that the program looks at the connection.

use crate::daemon::Daemon;

impl Daemon {
    /// Tells connection servers which connections are at rest. If this data server drains and `release_after` is set,
    /// idle connections leave. Returns at once.
    pub(crate) fn release_idle(&self) {
        let Some(agent) = self
            .data_server
            .as_ref()
            .and_then(|server| server.agent.as_ref())
        else {
            return;
        };
        agent.tell_rests();
        if let (true, Some(quiet)) = (self.drain.is_on(), self.local.config.cs.release_after) {
            agent.let_idle_leave(quiet);
        }
    }
}
