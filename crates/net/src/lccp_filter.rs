//! Which messages a socket receives: a filter in the kernel (classic BPF, `Documentation/networking/filter.rst`).
//!
//! Every raw socket of a protocol gets a copy of each of its packets. While thousands of TCB entries migrate, a reader
//! that does not need them should not have to read them.

use libc::{
    BPF_B, BPF_IND, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_K, BPF_LD, BPF_LDX, BPF_LEN, BPF_MSH, BPF_RET,
    BPF_SUB, BPF_W, BPF_X,
};
use socket2::SockFilter;

/// The offset of the command in `struct lccp_header`.
const COMMAND_AT: u32 = 2;

/// A filter that passes only messages with these commands or, if `heard` is false, only the others. A packet that is
/// too short to have a command counts as one of the others.
pub fn by_command(commands: &[u8], heard: bool) -> Vec<SockFilter> {
    const ALL: u32 = u32::MAX;
    let (named, others) = if heard { (ALL, 0) } else { (0, ALL) };
    // Jumps are counted from the next instruction; the filter ends with one RET for each answer.
    let to_others = commands.len() as u8 + 1;
    let mut filter = vec![
        // X: the IP header's length. A: the packet's length less that of the LCCP header up to and with the command.
        // The packet has a command if A is at least X.
        op(BPF_LDX | BPF_B | BPF_MSH, 0, 0, 0),
        op(BPF_LD | BPF_W | BPF_LEN, 0, 0, 0),
        op(libc::BPF_ALU | BPF_SUB | BPF_K, 0, 0, COMMAND_AT + 1),
        op(BPF_JMP | BPF_JGE | BPF_X, 0, to_others, 0),
        op(BPF_LD | BPF_B | BPF_IND, 0, 0, COMMAND_AT),
    ];
    for (at, command) in commands.iter().enumerate() {
        let to_named = (commands.len() - at) as u8;
        filter.push(op(
            BPF_JMP | BPF_JEQ | BPF_K,
            to_named,
            0,
            u32::from(*command),
        ));
    }
    filter.push(op(BPF_RET | BPF_K, 0, 0, others));
    filter.push(op(BPF_RET | BPF_K, 0, 0, named));
    filter
}

fn op(code: u32, if_true: u8, if_false: u8, value: u32) -> SockFilter {
    // Codes of classic BPF are sums of flags below 2^8.
    SockFilter::new(code as u16, if_true, if_false, value)
}
