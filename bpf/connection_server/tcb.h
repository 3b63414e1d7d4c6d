/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TCB entries: what the connection server knows of each connection, and how a client's packets change it. */
#ifndef BATON_CONNECTION_SERVER_TCB_H
#define BATON_CONNECTION_SERVER_TCB_H

#include "connection_server/tally.h"
#include "include/clock.h"
#include "include/socket_lookup.h"
#include "routing/request.h"
#include "xdp/packet.h"

/* What was chosen for a connection that begins. */
struct choice {
	u16 owner;
	u16 pool;
	u16 route;
	bool replaces;             /* there is an entry of an earlier connection with the same ports, to be replaced */
};

enum {
	NEAR_SEQ = 1 << 16,        /* bytes before and behind last_seq that count as near */
	NEAR_ACK = 1 << 20,        /* the same for last_ack */
	WINDOW_MAX = 1 << 30,      /* largest window (RFC 7323): no acknowledgement moves further at once */
};

/*
 * Whether the packet's numbers are near those of the entry. Those of a new connection on the same ports are not: its
 * acknowledgement is one of our cookies, of which nobody can predict 24 bits, and its client has chosen a new sequence
 * number. So a SYN need not change the entry, and a forged SYN cannot change it. If this is false, the packet may still
 * belong to the old connection, after a jump in its numbers, so its cookie is checked as well.
 */
static __always_inline bool continues(const struct tcb *tcb, const struct tcphdr *tcp)
{
	u32 seq = bpf_ntohl(tcp->seq) - tcb->last_seq + NEAR_SEQ;
	u32 ack = bpf_ntohl(tcp->ack_seq) - tcb->last_ack + NEAR_ACK;

	return seq < 2 * NEAR_SEQ && (ack < 2 * NEAR_ACK || !tcp->ack);
}

enum {
	FAR_SEQ = 1 << 25,
	FAR_ACK = 1 << 12,
};

/*
 * Whether the packet continues a large upload on the entry's connection. More of an upload can be in flight than
 * continues() allows: many packets in a row may be lost before this node, and old ones may be retransmitted. The client
 * acknowledges almost nothing meanwhile, so the acknowledgement must be close, and random numbers pass as seldom as in
 * continues(). The cookie must not decide: by chance one packet in 2^23 has a valid one, and it would begin a new
 * connection in the middle of the upload.
 */
static __always_inline bool continues_upload(const struct tcb *tcb, const struct tcphdr *tcp)
{
	u32 seq = bpf_ntohl(tcp->seq) - tcb->last_seq + FAR_SEQ;

	return tcp->ack && seq < 2 * FAR_SEQ && bpf_ntohl(tcp->ack_seq) - tcb->last_ack < FAR_ACK;
}

_Static_assert(__builtin_offsetof(struct tcb, owner) % 4 == 0 &&
	       __builtin_offsetof(struct tcb, previous) == __builtin_offsetof(struct tcb, owner) + 2, "one word for both");

/* Makes `owner` the entry's owner. A processor that sees the new owner sees the new `previous` too. */
static __always_inline void give_to(struct tcb *tcb, u16 owner, u16 previous)
{
	tcb->previous = previous;
	tcb->nones = 0;
	IN_THIS_ORDER();
	tcb->owner = owner;
}

/*
 * Makes `owner` the entry's owner in the place of `before`. False if that is not the owner any more, because another
 * processor was quicker. To be called while the entry has no `previous`.
 */
static __always_inline bool give_from(struct tcb *tcb, u16 before, u16 owner)
{
	const u32 no_previous = (u32)NO_DATA_SERVER << 16;
	u32 *both = (u32 *)&tcb->owner; /* `previous` is behind `owner` */

	if (__sync_val_compare_and_swap(both, no_previous | before, no_previous | owner) != (no_previous | before))
		return false;
	tcb->nones = 0;
	return true;
}

/*
 * Whether the connection moves in the middle of a response: its owner is to send the rest, and the data server before
 * it has the connection until nothing is in flight (connection_server/orphans/move.h).
 */
static __always_inline bool is_moving(const struct tcb *tcb)
{
	return (tcb->state & (TCB_RESUMING | TCB_ADOPTING)) == (TCB_RESUMING | TCB_ADOPTING);
}

static __always_inline u8 state_at_door(const struct service *service)
{
	return service->flags & SERVICE_OWNER ? TCB_AT_DOOR : 0;
}

/* Notes that a packet of the connection has come now. */
static __always_inline void touch(struct tcb *tcb)
{
	u32 now = tick_now();

	if (tcb->seen != now)
		tcb->seen = now;
}

/* Notes what the packet acknowledges, whichever data server it goes to. */
static __noinline void note_ack(struct tcb *tcb, const struct tcphdr *tcp)
{
	u32 ack = bpf_ntohl(tcp->ack_seq);

	if (!tcp->ack || (int)(ack - tcb->last_ack) <= 0)
		return;
	tcb->last_ack = ack;
	if (ack - tcb->counted >= SETTLE_BYTES)
		settle(tcb, ack);
	/* The client has a part of the response, so the owner has adopted the request. */
	if (tcb->state & TCB_WAITING)
		tcb->state &= ~(TCB_WAITING | TCB_ADOPTING);
}

/* Notes a client's packet in its entry: the time, the numbers and the flags. */
static __always_inline void note_packet(struct tcb *tcb, struct packet *p)
{
	struct tcphdr *tcp = p->frame.tcp;
	u32 end = bpf_ntohl(tcp->seq) + p->frame.payload;

	touch(tcb);
	/*
	 * An empty acknowledgement's sequence number may lie beyond data that was lost on its way here. That data will
	 * come again.
	 */
	if ((p->frame.payload || tcp->fin) && (int)(end - tcb->last_seq) > 0)
		tcb->last_seq = end;
	note_ack(tcb, tcp);
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
		/* The client goes on sending, so the RST was forged or late. */
		tcb->state &= ~TCB_RST;
	}
}

/*
 * Whether a packet is noted although its numbers are not near the entry's: it is empty, has exactly the entry's sequence
 * number, and acknowledges more than counts as near, as in a fast download. This is safe, because it cannot begin a
 * connection.
 */
static __always_inline bool is_large_step(const struct tcb *tcb, const struct packet *p)
{
	const struct tcphdr *tcp = p->frame.tcp;

	return tcp->ack && !p->frame.payload && !tcp->fin && !tcp->rst && bpf_ntohl(tcp->seq) == tcb->last_seq &&
	       bpf_ntohl(tcp->ack_seq) - tcb->last_ack < WINDOW_MAX;
}

/*
 * Makes the entry of the connection that this packet begins. Returns an error if there is an entry that is not to be
 * replaced.
 */
static __noinline long create_tcb(struct packet *p, const struct choice *choice, const struct lccp_tcb *tcp_part)
{
	struct tcphdr *tcp = p->frame.tcp;
	struct tcb tcb = {
		.request_seq = bpf_ntohl(tcp->seq),
		.last_seq = bpf_ntohl(tcp->seq) + p->frame.payload,
		.last_ack = bpf_ntohl(tcp->ack_seq),
		.seen = tick_now(),
		.owner = choice->owner,
		.previous = NO_DATA_SERVER,
		.pool = choice->pool,
		.route = choice->route,
		.counted = bpf_ntohl(tcp->ack_seq),
		.mss = bpf_ntohs(tcp_part->be_mss),
		.snd_wscale = tcp_part->snd_wscale,
		.rcv_wscale = tcp_part->rcv_wscale,
		.options = tcp_part->options,
		.state = state_at_door(p->service) | TCB_ADOPTING | TCB_WAITING | (tcp->fin ? TCB_FIN : 0),
	};

	return bpf_map_update_elem(&tcbs, &p->flow, &tcb, choice->replaces ? BPF_ANY : BPF_NOEXIST);
}

/* What ADOPT says of the connection, from its entry. */
static __always_inline struct lccp_tcb part_for_adopt(const struct tcb *tcb)
{
	return (struct lccp_tcb){
		.be_mss = bpf_htons(tcb->mss),
		.snd_wscale = tcb->snd_wscale,
		.rcv_wscale = tcb->rcv_wscale,
		.options = tcb->options,
	};
}

#endif
