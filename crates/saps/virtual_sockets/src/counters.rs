//! The agent's counters, for the metrics.

baton_core::shared_counters! {
    /// The agent's counters. Each counts a decision or an end. Together with the hooks' counters (`enum app_counter`)
    /// they say what became of every connection.
    pub struct Counters("agent_") {
        /// Calls that the far end answered.
        calls_answered,
        /// Calls that the far end refused, with whatever error; the program has been told.
        calls_refused,
        /// Calls that timed out at the far end; the program's own timer ends them.
        calls_timed_out,
        /// Calls whose program gave up before the far end answered.
        calls_given_up,
        /// Calls whose far end answered after the program's socket was gone; the far end is reset.
        calls_too_late,
        /// Refusals of the I/O server to listen on a port. The agent asks again for as long as the program listens.
        listens_refused,
        /// Clients' connections that reached a program.
        arrivals,
        /// Clients' connections that no program's listener took; they are reset.
        arrivals_refused,
        /// Connections that came to a regular end in both directions.
        finished,
        /// Connections that were reset at one end, and so at the other.
        reset,
    }
}
