//! What nodes say to each other.

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
        /// Which connection.
        flow: Flow,
        /// With which TCP parameters.
        tcb: TcbPart,
        /// The CS that wants to hear of a refusal; none: the sender.
        asker: Option<ShortAddress>,
    },
    /// DS to DS: the same of a connection that has gone with this packet, as that may never have come. Who has had it does not
    /// adopt it again. Carries the client's packet.
    AdoptAgain {
        /// Which connection.
        flow: Flow,
        /// With which TCP parameters; none of its response is said to be with the client already.
        tcb: TcbPart,
        /// The CS that wants to hear of a refusal; none: the sender.
        asker: Option<ShortAddress>,
        /// The DS that keeps the packet's data, and sends it until it hears [`Received`](Self::Received); none: its client.
        keeper: Option<ShortAddress>,
    },
    /// DS to DS, as [`Forward`](Self::Forward): a packet of a client, of which a DS keeps the data and sends it until it hears
    /// [`Received`](Self::Received). Carries that packet.
    ForwardKept {
        /// Which connection.
        flow: Flow,
        /// The DS that keeps it.
        keeper: ShortAddress,
        /// How many DSs did not have the connection before.
        attempt: u8,
    },
    /// DS to DS: of the data that the receiver keeps of this connection, all before that sequence number is here. Carries some
    /// of it.
    Received {
        /// Which connection.
        flow: Flow,
        /// The sequence number; `None`: the connection is not here, nor is it known where it may be.
        end: Option<u32>,
    },
    /// DS to CS: no socket could be made here, try another. Carries the client's packet back.
    Refused {
        /// Which connection.
        flow: Flow,
        /// As it came in the ADOPT.
        tcb: TcbPart,
        /// Why.
        refusal: Refusal,
    },
    /// CS to DS, or DS to DS: a packet of a client for the connection's owner. Carries that packet.
    Forward {
        /// Which connection.
        flow: Flow,
        /// The DS that has the connection if the receiver has not.
        next: Option<ShortAddress>,
        /// How many DSs did not have the connection before. After one it is not sent back again.
        attempt: u8,
    },
    /// DS to CS: the connection is not here. Carries the client's packet back.
    None {
        /// Which connection.
        flow: Flow,
        /// 0 of a packet that came by itself or in a FORWARD. At the end of a CLAIM: how many DSs do not
        /// have it.
        attempt: u8,
        /// Whether the packet came by itself: then the CS had judged it before.
        is_plain: bool,
    },
    /// CS to DS, and from DS to DS until one has it: who has this connection? Carries the client's packet.
    Claim {
        /// Which connection.
        flow: Flow,
        /// The CS that asks.
        asker: ShortAddress,
        /// How many DSs were asked before.
        attempt: u8,
        /// Whether the packet is here without its data: then whoever has the connection only answers.
        is_cut: bool,
    },
    /// DS to the CS that asks: it is here. Carries the packet back, which has been delivered. Or the owner to the CS: it is
    /// at another DS from this packet on, which is there.
    Moved {
        /// Which connection.
        flow: Flow,
        /// With which TCP parameters another DS would adopt it.
        tcb: TcbPart,
        /// The other DS, if the sender has handed the connection on.
        next: Option<ShortAddress>,
        /// Whether the packet was asked about without its data.
        is_cut: bool,
    },
    /// Daemon to daemon: heartbeat, load and health.
    Hello(Hello),
    /// Daemon to daemon: the number of the last message that moves a connection from here to there. The
    /// numbers themselves are the programs', in `be_sequence` of the header.
    Sync {
        /// That number.
        last: u16,
    },
    /// Daemon to daemon: these messages did not come; they may be sent again.
    Again(Numbers),
    /// DS to dispatcher, daemon to daemon: which DS is to serve this request?
    Query(Query),
    /// Dispatcher to DS, daemon to daemon: this one.
    Reply(Reply),
    /// Daemon to daemon: a batch of TCB entries that the receiver is to have.
    Tcbs(Tcbs),
    /// Daemon to daemon: which of those batches came, and what became of them.
    Taken(Taken),
    /// Daemon to daemon: who is, or would be, the connection server in front.
    Candidate(Candidate),
    /// Daemon to daemon: what an operator wants of the receiver.
    Order(Order),
    /// Daemon to daemon: how an order is getting on.
    Account(Account),
    /// Daemon to DS program, which turns it round to the daemon: does the host live?
    Alive {
        /// The answer.
        turned: bool,
        /// Whether the one who asked has taken the receiver for dead.
        dead: bool,
    },
    /// CS daemon to DS program: let the rest of this response come from another DS. Carries an empty ACK in
    /// the client's name.
    Yield {
        /// Which connection.
        flow: Flow,
        /// The other DS; none: it stays where it is.
        next: Option<ShortAddress>,
    },
    /// DS program to CS daemon: what has become of that. Carries the ACK back.
    Yielded {
        /// Which connection.
        flow: Flow,
        /// Where it is.
        answer: YieldAnswer,
    },
    /// CS to DS, daemon to daemon: have the rest of this response ready.
    Resume(Resume),
    /// DS to CS, daemon to daemon: what has become of that.
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
            | Self::Again(_)
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
            | Self::Again(_)
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
