//! What holds for every frame, whatever is in it: verdict, length, checksums and counters fit together.

use baton_abi::ETHER_SWITCHED;
use etherparse::IpNumber;

use crate::prelude::*;

/// The number of bytes that the programs put around a packet.
const OVERHEAD: usize = 100;
/// The IP protocol of messages.
const LCCP: IpNumber = IpNumber(253);
/// The longest SYN-ACK.
pub const SYN_ACK: usize = 74;
/// The counters of packets around which the connection server puts a message.
const WRAPPED: [&str; 4] = ["cs_adopt", "cs_adopt_again", "cs_claim", "cs_behind_adopt"];

/// Checks what came of a frame at the connection server.
pub fn holds_at_cs(seen: &Seen) -> Result<(), String> {
    if seen.verdict == Aborted {
        return Err("aborted".into());
    }
    counted_once(seen)?;
    // A frame from the switch is taken out of the outer frame, and then handled like any other.
    let outer = if is_switched(&seen.input) { 14 } else { 0 };
    let (before, after) = (seen.input.len() - outer, seen.frame.len());
    match seen.verdict {
        Pass if outer == 0 && seen.frame != seen.input => Err("changed, and passed".into()),
        Pass if seen.frame == seen.input => Ok(()),
        Pass if seen.frame[6..] != seen.input[outer + 6..] => Err("changed, and passed".into()),
        Tx | Redirect => {
            let is = |names: &[&str]| names.iter().any(|name| seen.counted.contains_key(*name));
            let right = if is(&["cs_forward", "cs_icmp"]) {
                after == before
            } else if is(&["cs_refused", "cs_none", "cs_ahead"])
                || is_lccp(&seen.input[outer..]) && is(&["cs_adopt_again"])
            {
                // The frame is an answer to a message, and is sent on in its place.
                after == before && outer_is_valid(seen)
            } else if is(&["cs_claim_cut"]) {
                after < before + OVERHEAD && outer_is_valid(seen)
            } else if is(&WRAPPED) {
                after == before + OVERHEAD && outer_is_valid(seen)
            } else {
                // Our own segments are always whole, whatever they answer.
                after <= SYN_ACK && verify_checksums(&seen.frame).is_ok()
            };
            right
                .then_some(())
                .ok_or_else(|| "not what its counter says".into())
        }
        _ => Ok(()),
    }
}

/// Checks what came of a frame at the data server.
pub fn holds_at_ds(seen: &Seen) -> Result<(), String> {
    counted_once(seen)?;
    let (before, after) = (seen.input.len(), seen.frame.len());
    const STRIPPED: [&str; 4] = [
        "ds_claimed",
        "ds_duplicate",
        "ds_forwarded",
        "ds_stale_ended",
    ];
    let stripped = seen
        .counted
        .keys()
        .any(|name| STRIPPED.iter().any(|start| name.starts_with(start)));
    let right = match seen.verdict {
        Pass if stripped => after + OVERHEAD == before,
        Pass => seen.frame == seen.input,
        // A packet without its data cannot be delivered, so the answer takes the place of the question.
        Redirect if seen.counted.contains_key("ds_claimed") => {
            after == before && outer_is_valid(seen)
        }
        Redirect if seen.counted.contains_key("ds_refused") => after == before,
        Redirect
            if [
                "ds_alive",
                "ds_no_way",
                "ds_claim_passed_on",
                "ds_unclaimed",
                "ds_yield_refused",
            ]
            .iter()
            .any(|way| seen.counted.contains_key(*way)) =>
        {
            after == before && outer_is_valid(seen)
        }
        // NONE is put around a plain packet, or takes the place of the message around it.
        Redirect if seen.counted.contains_key("ds_none") => {
            [before, before + OVERHEAD].contains(&after) && outer_is_valid(seen)
        }
        Drop => !seen.counted.contains_key("ds_delivered"),
        _ => false,
    };
    right
        .then_some(())
        .ok_or_else(|| "not what its counter says".into())
}

fn is_lccp(frame: &[u8]) -> bool {
    frame[12..14] == [8, 0] && frame[IP + 9] == LCCP.0
}

fn is_switched(frame: &[u8]) -> bool {
    frame[12..14] == (ETHER_SWITCHED as u16).to_be_bytes()
}

/// Checks what came of a frame at the switch: it goes on whole, inside another frame or alone.
pub fn holds_at_switch(seen: &Seen) -> Result<(), String> {
    counted_once(seen)?;
    let right = match seen.verdict {
        Pass => seen.frame == seen.input,
        Tx if seen.counted.contains_key("switch_plain") => seen.frame[12..] == seen.input[12..],
        Tx => seen.frame[14..] == seen.input,
        verdict => verdict == Drop,
    };
    right
        .then_some(())
        .ok_or_else(|| "not what its counter says".into())
}

/// Checks that only one counter gives the reason for what came of the packet. Some reasons have a companion.
fn counted_once(seen: &Seen) -> Result<(), String> {
    const COMPANIONS: &str = "\
        switch_plain cs_claim cs_claim_cut cs_begun_before cs_forward_bytes cs_fin cs_jump \
        cs_rst cs_refused_by_all cs_response_bytes ds_delivered ds_no_socket ds_no_way \
        ds_unassigned";
    let reasons = seen
        .counted
        .iter()
        .filter(|(name, by)| {
            !COMPANIONS.split(' ').any(|companion| companion == *name) && **by == 1
        })
        .count();
    let companions = seen.counted.len() - reasons;
    let passed_in_silence = seen.verdict == Pass && seen.counted.is_empty();
    match (reasons, companions) {
        (0, 0) if passed_in_silence => Ok(()),
        (1, _) | (0, 1) => Ok(()),
        _ => Err(format!("counted {:?}", seen.counted)),
    }
}

/// Whether what a program wrote around a packet has a right Ethernet header, IP header and length.
fn outer_is_valid(seen: &Seen) -> bool {
    Packet::read(&seen.frame).is_ok_and(|outer| outer.ip.protocol == LCCP)
}
