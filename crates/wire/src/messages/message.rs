//! The messages that nodes send each other.

use baton_abi::{LCCP_RECEPTOR_CS, LCCP_RECEPTOR_DAEMON, LCCP_RECEPTOR_DS};

use crate::{
    Account, Candidate, Flow, Heads, Hello, Numbers, Order, Query, Ready, Refusal, Reply, Resume,
    ShortAddress, Taken, TcbPart, Tcbs, YieldAnswer,
};

/// One LCCP message. Its command and its [`Receptor`] follow from the variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// DM1, CS to DS, or DS to DS where the connection goes on: adopt this connection. Carries the client's
    /// packet.
    Adopt {
        /// The connection to adopt.
        flow: Flow,
        /// Its TCP parameters.
        tcb: TcbPart,
        /// The CS that is to hear of a refusal; `None`: the sender.
        asker: Option<ShortAddress>,
    },
    /// DS to DS: adopt this connection, which has left with this packet. It is sent again because the first one may
    /// never have come. A DS that has had the connection does not adopt it again. Carries the client's packet.
    AdoptAgain {
        /// The connection to adopt.
        flow: Flow,
        /// Its TCP parameters; their `resume` is 0.
        tcb: TcbPart,
        /// The CS that is to hear of a refusal; `None`: the sender.
        asker: Option<ShortAddress>,
        /// The DS that keeps the packet's data, and sends it until it hears [`Received`](Self::Received); `None`: only
        /// the client has the data.
        keeper: Option<ShortAddress>,
    },
    /// DS to DS, like [`Forward`](Self::Forward): a client's packet whose data a DS keeps, and sends until it hears
    /// [`Received`](Self::Received). Carries that packet.
    ForwardKept {
        /// The packet's connection.
        flow: Flow,
        /// The DS that keeps the data.
        keeper: ShortAddress,
        /// How many DSs before did not have the connection.
        attempt: u8,
    },
    /// DS to DS: of the data that the receiver keeps of this connection, everything before a sequence number is here.
    /// Carries some of that data.
    Received {
        /// The connection.
        flow: Flow,
        /// That sequence number. `None`: the connection is not here, and it is not known where it may be.
        end: Option<u32>,
    },
    /// DS to CS: no socket could be made here, so try another DS. Carries the client's packet back.
    Refused {
        /// The connection that was not adopted.
        flow: Flow,
        /// Its TCP parameters, as they came in the ADOPT.
        tcb: TcbPart,
        /// The reason.
        refusal: Refusal,
    },
    /// CS to DS, or DS to DS: a packet of a client for the connection's owner. Carries that packet.
    Forward {
        /// The packet's connection.
        flow: Flow,
        /// The DS that has the connection if the receiver does not have it.
        next: Option<ShortAddress>,
        /// How many DSs before did not have the connection. After one of them the packet is not sent back again.
        attempt: u8,
    },
    /// DS to CS: the connection is not here. Carries the client's packet back.
    None {
        /// The connection.
        flow: Flow,
        /// How many DSs do not have the connection, at the end of a CLAIM. 0 for a packet that came by itself or in a
        /// FORWARD.
        attempt: u8,
        /// Whether the packet came by itself, so that the CS had judged it before.
        is_plain: bool,
    },
    /// CS to DS, and from DS to DS until one has it: who has this connection? Carries the client's packet.
    Claim {
        /// The connection that is asked for.
        flow: Flow,
        /// The CS that asks.
        asker: ShortAddress,
        /// How many DSs were asked before this one.
        attempt: u8,
        /// Whether the packet comes without its data. If so, the DS that has the connection only answers.
        is_cut: bool,
    },
    /// DS to the CS that asks: the connection is here. Carries the packet back, which has been delivered. Or the owner
    /// to its CS: from this packet on the connection is at another DS, which has the packet.
    Moved {
        /// The connection.
        flow: Flow,
        /// The TCP parameters with which another DS would adopt it.
        tcb: TcbPart,
        /// The other DS, if the sender has handed the connection on.
        next: Option<ShortAddress>,
        /// Whether the question came without the packet's data.
        is_cut: bool,
    },
    /// Daemon to daemon: heartbeat, load and health.
    Hello(Hello),
    /// Daemon to daemon: the number of the last message that moves a connection from the sender to the receiver. The
    /// programs write such numbers to `be_sequence` of the header.
    Sync {
        /// The number of that last message.
        last: u16,
    },
    /// Daemon to daemon: these messages did not come; they may be sent again.
    Resend(Numbers),
    /// Daemon of a DS to the dispatcher's daemon: which DS is to serve this request?
    Query(Query),
    /// The dispatcher's daemon to the daemon of a DS: the DS that is to serve the request.
    Reply(Reply),
    /// Daemon to daemon: a batch of TCB entries that the receiver is to have.
    Tcbs(Tcbs),
    /// Daemon to daemon: which of those batches came, and how many of their entries were taken.
    Taken(Taken),
    /// Daemon to daemon: which connection server is in front, or would be.
    Candidate(Candidate),
    /// Daemon to daemon: what an operator wants of the receiver.
    Order(Order),
    /// Daemon to daemon: how an order is getting on.
    Account(Account),
    /// Daemon to DS program, which sends it back to the daemon: does the host live?
    Alive {
        /// Whether this is the answer.
        turned: bool,
        /// Whether the sender of the question has taken the receiver for dead.
        dead: bool,
    },
    /// CS daemon to DS program: let the rest of this response come from another DS. Carries an empty ACK in
    /// the client's name.
    Yield {
        /// The connection whose response is to move.
        flow: Flow,
        /// The other DS; `None`: the connection stays where it is.
        next: Option<ShortAddress>,
    },
    /// DS program to CS daemon: the outcome of a YIELD. Carries the ACK back.
    Yielded {
        /// The connection.
        flow: Flow,
        /// Where the connection is.
        answer: YieldAnswer,
    },
    /// CS to DS, daemon to daemon: have the rest of this response ready.
    Resume(Resume),
    /// DS to CS, daemon to daemon: the outcome of a RESUME.
    Ready(Ready),
    /// DS to CS, daemon to daemon: how responses begin that leave the sender.
    Heads(Heads),
}

impl Message {
    /// Which component of the receiving node this message is for.
    pub const fn receptor(&self) -> Receptor {
        match self {
            Self::Adopt { .. }
            | Self::AdoptAgain { .. }
            | Self::ForwardKept { .. }
            | Self::Received { .. }
            | Self::Forward { .. }
            | Self::Claim { .. }
            | Self::Yield { .. }
            | Self::Alive { turned: false, .. } => Receptor::Ds,
            Self::Refused { .. } | Self::None { .. } | Self::Moved { .. } => Receptor::Cs,
            Self::Hello(_)
            | Self::Sync { .. }
            | Self::Resend(_)
            | Self::Query(_)
            | Self::Reply(_)
            | Self::Tcbs(_)
            | Self::Taken(_)
            | Self::Candidate(_) => Receptor::Daemon,
            Self::Order(_) | Self::Account(_) | Self::Heads(_) | Self::Yielded { .. } => {
                Receptor::Daemon
            }
            Self::Alive { turned: true, .. } | Self::Resume(_) | Self::Ready(_) => Receptor::Daemon,
        }
    }

    /// The flow whose packet follows this message; `None` if none follows.
    pub const fn carries(&self) -> Option<Flow> {
        match self {
            Self::Adopt { flow, .. }
            | Self::Refused { flow, .. }
            | Self::AdoptAgain { flow, .. }
            | Self::ForwardKept { flow, .. }
            | Self::Received { flow, .. }
            | Self::Forward { flow, .. }
            | Self::None { flow, .. }
            | Self::Claim { flow, .. }
            | Self::Yield { flow, .. }
            | Self::Yielded { flow, .. }
            | Self::Moved { flow, .. } => Some(*flow),
            Self::Hello(_)
            | Self::Sync { .. }
            | Self::Resend(_)
            | Self::Query(_)
            | Self::Reply(_)
            | Self::Tcbs(_)
            | Self::Taken(_)
            | Self::Candidate(_) => None,
            Self::Order(_) | Self::Account(_) | Self::Heads(_) => None,
            Self::Alive { .. } | Self::Resume(_) | Self::Ready(_) => None,
        }
    }
}

/// A component of a node that takes messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Receptor {
    /// The CS program.
    Cs,
    /// The DS program.
    Ds,
    /// The daemon.
    Daemon,
}

impl Receptor {
    /// Its number in a message (`enum lccp_receptor`).
    pub const fn number(self) -> u32 {
        match self {
            Self::Cs => LCCP_RECEPTOR_CS,
            Self::Ds => LCCP_RECEPTOR_DS,
            Self::Daemon => LCCP_RECEPTOR_DAEMON,
        }
    }
}
