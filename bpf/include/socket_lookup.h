/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether this node's kernel has a connection, and what it knows about it. */
#ifndef BATON_INCLUDE_SOCKET_LOOKUP_H
#define BATON_INCLUDE_SOCKET_LOOKUP_H

#include "abi/abi.h"
#include "include/kernel.h"

enum {
	BEHIND_SEQ = 1 << 20,
	BEHIND_ACK = 1 << 28,
	AHEAD_SEQ = 1 << 25, /* more than any receive window */
};

/*
 * The socket that a packet with these numbers belongs to, or NULL. An older connection of the same ports, whose client
 * has vanished, has other numbers. A socket in TIME_WAIT is not a full socket. A RST may lack the acknowledgement (RFC
 * 9293, 3.5.2).
 */
static __always_inline struct tcp_sock *claimed_socket(struct bpf_sock *sk, const struct tcphdr *of)
{
	if (!sk || sk->state == STATE_LISTEN || sk->state == STATE_TIME_WAIT || sk->state == STATE_CLOSE)
		return 0;
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	if (!tcp)
		return 0;
	u32 seq = bpf_ntohl(of->seq), ack = bpf_ntohl(of->ack_seq);
	return seq - tcp->rcv_nxt + BEHIND_SEQ < BEHIND_SEQ + AHEAD_SEQ &&
			       (!of->ack || tcp->write_seq - ack < BEHIND_ACK) ?
		       tcp :
		       0;
}

/* The travelling part that an ADOPT of this connection would have to carry. */
static __always_inline struct lccp_tcb part_of(const struct tcp_sock *tcp)
{
	struct lccp_tcb part = { .be_mss = bpf_htons(tcp->rx_opt.mss_clamp) };

	if (BPF_CORE_READ_BITFIELD(tcp, rx_opt.sack_ok))
		part.options |= LCCP_TCB_SACK;
	if (BPF_CORE_READ_BITFIELD(tcp, rx_opt.wscale_ok)) {
		part.options |= LCCP_TCB_WSCALE;
		part.snd_wscale = BPF_CORE_READ_BITFIELD(tcp, rx_opt.snd_wscale);
		part.rcv_wscale = BPF_CORE_READ_BITFIELD(tcp, rx_opt.rcv_wscale);
	}
	return part;
}

#endif
