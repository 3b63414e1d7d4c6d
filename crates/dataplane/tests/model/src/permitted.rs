//! What may leave the connection server, by what came.

use baton_wire::Message;

use crate::{
    connection::Connection,
    cs::Leaves,
    packet::{Packet, SYN},
};

/// Of a client's own packet.
pub fn client(connection: &Connection, packet: &Packet, leaves: &Leaves) -> Result<(), String> {
    unchanged_but_for_ack(connection, packet, leaves)?;
    match leaves {
        Leaves::Up => Err("a client's packet went up to the node's own kernel".into()),
        Leaves::Message {
            to,
            message: Message::Adopt { .. },
            ..
        } => begins(connection, packet, *to, "ADOPT"),
        Leaves::Message {
            message: Message::Elsewhere { next, .. },
            ..
        } => begins(
            connection,
            packet,
            crate::world::server_at(*next),
            "ELSEWHERE",
        ),
        Leaves::Message {
            message: Message::Handover { .. },
            ..
        } => Err("a HANDOVER, which would be delivered to the wrong server".into()),
        _ => Ok(()),
    }
}

/// Of what user space has let go: a client's packet, or a part of one.
pub fn user_space(connection: &Connection, leaves: &Leaves) -> Result<(), String> {
    let Some(packet) = leaves.packet() else {
        return Ok(());
    };
    if connection.is_honest && !connection.is_of_client(packet) {
        return Err("user space has let something go that its client did not send".into());
    }
    client(connection, packet, leaves)
}

/// Of a data server's message about one.
pub fn server(connection: &Connection, packet: &Packet, leaves: &Leaves) -> Result<(), String> {
    match leaves {
        Leaves::Client(_) => Err("a message of a data server made a packet to a client".into()),
        Leaves::Up => Ok(()),
        leaves => client(connection, packet, leaves),
    }
}

/// Of a packet of somebody who knows neither sequence number.
pub fn forged(packet: &Packet, leaves: &Leaves) -> Result<(), String> {
    unchanged(packet, leaves)?;
    match leaves {
        Leaves::Up => Err("a forged packet went up to the node's own kernel".into()),
        Leaves::Client(_) if !packet.has(SYN) => Err("a forged packet was answered".into()),
        Leaves::Message {
            message: Message::Adopt { .. } | Message::Elsewhere { .. } | Message::Handover { .. },
            ..
        } => Err("a forged packet moves a connection".into()),
        _ => Ok(()),
    }
}

/// What goes on is what came.
fn unchanged(packet: &Packet, leaves: &Leaves) -> Result<(), String> {
    match leaves.packet() {
        Some(left) if left != packet => Err(format!("{left:?} left in the place of {packet:?}")),
        _ => Ok(()),
    }
}

/// The same, or it acknowledges what its client has acknowledged since.
fn unchanged_but_for_ack(
    connection: &Connection,
    packet: &Packet,
    leaves: &Leaves,
) -> Result<(), String> {
    let Some(left) = leaves.packet().filter(|left| left.ack != packet.ack) else {
        return unchanged(packet, leaves);
    };
    let renewed = Packet {
        ack: left.ack,
        ..packet.clone()
    };
    let is_later = left.ack.wrapping_sub(packet.ack) < 1 << 31;
    if *left == renewed && is_later && connection.has_acknowledged(left.ack) {
        return Ok(());
    }
    unchanged(packet, leaves)
}

/// A connection comes to a data server only with a request that is for it, and nothing for others behind that.
fn begins(connection: &Connection, packet: &Packet, to: usize, how: &str) -> Result<(), String> {
    if !connection.is_honest {
        return Ok(());
    }
    let script = &connection.script;
    let begin = connection.offset(packet.seq);
    let Some(begin) = begin.filter(|begin| script.requests.iter().any(|r| r.begin == *begin))
    else {
        return Err(format!("{how} at a byte at which no request begins"));
    };
    let end = begin + packet.payload.len();
    let mut here = script
        .requests
        .iter()
        .filter(|r| r.begin < end && begin < r.end);
    match here.find(|request| !request.pool.has(to)) {
        Some(other) => Err(format!(
            "{how} to server {to} with a request for {:?}",
            other.pool
        )),
        None => Ok(()),
    }
}
