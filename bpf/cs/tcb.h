/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TCB entries: what the connection server remembers of a connection. */
#ifndef BATON_CS_TCB_H
#define BATON_CS_TCB_H

#include "packet.h"
#include "tally.h"
#include "../clock.h"

/* What the dispatcher decided. */
struct choice {
	u16 owner;
	u16 pool;
	u16 generation;
	u16 route;
};

enum {
	NEAR_SEQ = 1 << 16,
	NEAR_ACK = 1 << 20,
	WINDOW_MAX = 1 << 30,      /* RFC 7323: more cannot have been acknowledged at once */
};

/*
 * Whether a packet goes on where the connection of this entry is. A new one on the same ports begins
 * elsewhere: its acknowledgement is one of our cookies, 24 bits of which nobody can foretell, and its
 * sequence number the client's own new start. So a SYN need not touch the entry, and a forged one cannot.
 * "No" is only a doubt: a jump in an old connection costs that packet a look at its cookie.
 */
static __always_inline bool continues(const struct tcb *tcb, const struct tcphdr *tcp)
{
	u32 seq = bpf_ntohl(tcp->seq) - tcb->last_seq + NEAR_SEQ;
	u32 ack = bpf_ntohl(tcp->ack_seq) - tcb->last_ack + NEAR_ACK;

	return seq < 2 * NEAR_SEQ && (ack < 2 * NEAR_ACK || !tcp->ack);
}

/* Its response is to go on at its owner, and the one before has it until nothing of it is on its way: cs/move.h. */
static __always_inline bool is_moving(const struct tcb *tcb)
{
	return (tcb->state & (TCB_RESUMING | TCB_ADOPTING)) == (TCB_RESUMING | TCB_ADOPTING);
}

static __always_inline void pin(struct packet *p, struct tcb *tcb)
{
	tcb->state |= TCB_PINNED;
	count(p->counters, COUNTER_CS_PINNED);
}

static __always_inline void touch(struct tcb *tcb)
{
	u32 now = tick_now();

	if (tcb->seen != now)
		tcb->seen = now;
}

/* What this packet of the client, which goes on with the connection, says. */
static __always_inline void note_packet(struct tcb *tcb, struct packet *p)
{
	struct tcphdr *tcp = p->frame.tcp;
	u32 end = bpf_ntohl(tcp->seq) + p->frame.payload;
	u32 ack = bpf_ntohl(tcp->ack_seq);

	touch(tcb);
	/* An acknowledgement also tells of data that was sent and has not come: that is still to come. */
	if ((p->frame.payload || tcp->fin) && (int)(end - tcb->last_seq) > 0)
		tcb->last_seq = end;
	if (tcp->ack && (int)(ack - tcb->last_ack) > 0) {
		tcb->last_ack = ack;
		if (ack - tcb->counted >= SETTLE_BYTES)
			settle(tcb, ack);
		/* A response has begun: whoever was to adopt the request, or the idle connection, has it. */
		if (tcb->state & (TCB_WAITING | TCB_RELEASED))
			tcb->state &= ~(TCB_WAITING | TCB_ADOPTING | TCB_RELEASED);
	}
	if (tcp->fin | tcp->rst)
		settle(tcb, tcb->last_ack);
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

/*
 * A packet from elsewhere, which is no new connection's. From here on it is believed: if it was forged
 * or late, the next true one is the jump. Its FIN or RST is the owner's to judge, and ends no entry.
 * What was in between is not known: with data, where requests begin is not either.
 */
static __always_inline void note_jump(struct tcb *tcb, struct packet *p)
{
	struct tcphdr *tcp = p->frame.tcp;
	u32 seq = bpf_ntohl(tcp->seq), ack = bpf_ntohl(tcp->ack_seq);

	touch(tcb);
	settle(tcb, tcb->last_ack);
	if (tcp->ack) {
		/* A fast download is acknowledged in large steps: that much, and no more, is one. */
		if (seq - tcb->last_seq + NEAR_SEQ < 2 * NEAR_SEQ && ack - tcb->last_ack < WINDOW_MAX) {
			settle(tcb, ack);
			if (ack != tcb->last_ack && !is_moving(tcb))
				tcb->state &= ~(TCB_WAITING | TCB_ADOPTING | TCB_RELEASED);
		} else if (tcb->last_ack - ack >= WINDOW_MAX) {
			tcb->counted = ack; /* no late packet, whose bytes are counted */
		}
		tcb->last_ack = ack;
	}
	tcb->last_seq = seq + p->frame.payload;
	if (p->frame.payload && !(tcb->state & TCB_PINNED))
		pin(p, tcb);
}

/* The packet that is adopted is the first the entry knows of. */
static __noinline bool create_tcb(struct packet *p, const struct choice *choice, u8 state,
				       u32 request_bytes, const struct lccp_tcb *tcp_part)
{
	struct tcphdr *tcp = p->frame.tcp;
	struct tcb tcb = {
		.request_seq = bpf_ntohl(tcp->seq),
		.last_seq = bpf_ntohl(tcp->seq) + p->frame.payload,
		.last_ack = bpf_ntohl(tcp->ack_seq),
		.next_request = bpf_ntohl(tcp->seq) + request_bytes,
		.seen = tick_now(),
		.owner = choice->owner,
		.previous = NO_DATA_SERVER,
		.pool = choice->pool,
		.generation = choice->generation,
		.route = choice->route,
		.counted = bpf_ntohl(tcp->ack_seq),
		.mss = bpf_ntohs(tcp_part->be_mss),
		.snd_wscale = tcp_part->snd_wscale,
		.rcv_wscale = tcp_part->rcv_wscale,
		.options = tcp_part->options,
		.state = state | TCB_ADOPTING | TCB_WAITING | (tcp->fin ? TCB_FIN : 0),
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
