/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TCB entries: what the connection server remembers of a connection. */
#ifndef BATON_CS_TCB_H
#define BATON_CS_TCB_H

#include "packet.h"
#include "../clock.h"

/*
 * A SYN for a known flow. It may begin a new connection with the old one's ports, or be forged: the
 * entry stays as it is, but from now on a packet with a valid cookie replaces it.
 */
static __always_inline void doubt_tcb(const struct tcb_key *flow)
{
	struct tcb *tcb = bpf_map_lookup_elem(&tcbs, flow);

	if (tcb)
		tcb->state |= TCB_DOUBT;
}

/* What this packet of the client says, noted. */
static __always_inline void note_packet(struct tcb *tcb, struct packet *p)
{
	struct tcphdr *tcp = p->frame.tcp;
	u32 end = bpf_ntohl(tcp->seq) + p->frame.payload;
	u32 ack = bpf_ntohl(tcp->ack_seq);
	u32 now = tick_now();

	if (tcb->seen != now)
		tcb->seen = now;
	if ((int)(end - tcb->last_seq) > 0)
		tcb->last_seq = end;
	if ((int)(ack - tcb->last_ack) > 0)
		tcb->last_ack = ack;
	if (tcp->fin) {
		tcb->state |= TCB_FIN;
		count(p->counters, COUNTER_CS_FIN);
	}
	if (tcp->rst) {
		tcb->state |= TCB_RST;
		count(p->counters, COUNTER_CS_RST);
	} else if (tcb->state & TCB_RST) {
		/* The client lives: that RST was forged, or late. */
		tcb->state &= ~TCB_RST;
	}
}

/* The packet that is adopted is the first the entry knows of. */
static __always_inline bool create_tcb(struct packet *p, u16 owner, const struct lccp_tcb *tcp_part)
{
	struct tcphdr *tcp = p->frame.tcp;
	struct tcb tcb = {
		.adopt_seq = bpf_ntohl(tcp->seq),
		.adopt_ack = bpf_ntohl(tcp->ack_seq),
		.last_seq = bpf_ntohl(tcp->seq) + p->frame.payload,
		.last_ack = bpf_ntohl(tcp->ack_seq),
		.response_start = bpf_ntohl(tcp->ack_seq),
		.seen = tick_now(),
		.owner = owner,
		.mss = bpf_ntohs(tcp_part->be_mss),
		.snd_wscale = tcp_part->snd_wscale,
		.rcv_wscale = tcp_part->rcv_wscale,
		.options = tcp_part->options,
		.state = tcp->fin ? TCB_FIN : 0,
	};

	return bpf_map_update_elem(&tcbs, &p->flow, &tcb, BPF_ANY) == 0;
}

static __always_inline struct lccp_tcb travelling_part(const struct tcb *tcb)
{
	return (struct lccp_tcb){
		.be_mss = bpf_htons(tcb->mss),
		.snd_wscale = tcb->snd_wscale,
		.rcv_wscale = tcb->rcv_wscale,
		.options = tcb->options,
	};
}

#endif
