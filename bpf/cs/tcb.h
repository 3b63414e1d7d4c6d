/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TCB entries: what the connection server remembers of a connection. */
#ifndef BATON_CS_TCB_H
#define BATON_CS_TCB_H

#include "packet.h"
#include "request.h"
#include "tally.h"
#include "../clock.h"

/* What the dispatcher decided. */
struct choice {
	u16 owner;
	u16 pool;
	u16 generation;
	u16 route;
	bool replaces;             /* an entry of an earlier connection with the same ports */
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

/* Another owner, who is given the current request, or `requests` of it. */
static __always_inline void give_to(struct tcb *tcb, u16 owner, u16 previous, u8 requests)
{
	tcb->previous = previous;
	IN_THIS_ORDER();
	tcb->owner = owner;
	tcb->requests_before = tcb->requests;
	tcb->requests = requests;
}

/* The one before is it still, or again. */
static __always_inline void swap_owners(struct tcb *tcb)
{
	u16 owner = tcb->owner;
	u8 requests = tcb->requests;

	tcb->owner = tcb->previous;
	tcb->requests = tcb->requests_before;
	tcb->previous = owner;
	tcb->requests_before = requests;
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

/* What the client has got, which holds wherever this packet goes. */
static __noinline void note_ack(struct tcb *tcb, const struct tcphdr *tcp)
{
	u32 ack = bpf_ntohl(tcp->ack_seq);

	if (!tcp->ack || (int)(ack - tcb->last_ack) <= 0)
		return;
	tcb->last_ack = ack;
	if (ack - tcb->counted >= SETTLE_BYTES)
		settle(tcb, ack);
	/* A response has begun: whoever was to adopt the request, or the idle connection, has it. */
	if (tcb->state & (TCB_WAITING | TCB_RELEASED))
		tcb->state &= ~(TCB_WAITING | TCB_ADOPTING | TCB_RELEASED);
}

/* What this packet of the client, which goes on with the connection, says. */
static __always_inline void note_packet(struct tcb *tcb, struct packet *p)
{
	struct tcphdr *tcp = p->frame.tcp;
	u32 end = bpf_ntohl(tcp->seq) + p->frame.payload;

	touch(tcb);
	/* An acknowledgement also tells of data that was sent and has not come: that is still to come. */
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
		/* The client lives: that RST was forged, or late. */
		tcb->state &= ~TCB_RST;
	}
}

/*
 * Whether a packet from elsewhere is believed, which is no new connection's: an empty acknowledgement with the very
 * sequence number at which the entry is, of more than came near. A fast download is acknowledged in large steps.
 */
static __always_inline bool is_large_step(const struct tcb *tcb, const struct packet *p)
{
	const struct tcphdr *tcp = p->frame.tcp;

	return tcp->ack && !p->frame.payload && !tcp->fin && !tcp->rst && bpf_ntohl(tcp->seq) == tcb->last_seq &&
	       bpf_ntohl(tcp->ack_seq) - tcb->last_ack < WINDOW_MAX;
}

/* Where the client is, by the word of its owner. What was in between is not known, nor where requests begin. */
static __always_inline void note_jump(struct tcb *tcb, u32 end, u32 ack)
{
	settle(tcb, tcb->last_ack);
	if (ack - tcb->last_ack < WINDOW_MAX) {
		settle(tcb, ack);
		if (ack != tcb->last_ack && !is_moving(tcb))
			tcb->state &= ~(TCB_WAITING | TCB_ADOPTING | TCB_RELEASED);
	} else {
		tcb->counted = ack;
	}
	tcb->last_ack = ack;
	tcb->last_seq = end;
}

enum {
	HEAD_MAX = 0xffff,         /* as many bytes as an entry can tell */
};

/* Bytes of head of a request that begins with so many bytes of payload. */
static __always_inline u16 head_of(const struct request *r, u32 payload)
{
	u32 head = r->head ? r->head : r->end <= payload ? r->end : 0;

	return head < HEAD_MAX ? head : HEAD_MAX;
}

static __always_inline u8 form_of(const struct request *r)
{
	return (r->chunked || r->goes_on ? TCB_CHUNKED : 0) | (r->incomplete ? TCB_IN_PARTS : 0);
}

/*
 * The packet that is adopted is the first the entry knows of. An error if there is an entry by now that this does not
 * replace: of two copies of that packet on two processors one begins the connection. If its body is followed, this is in
 * the middle of a turn (turn.h), which ends when that is noted too.
 */
static __noinline long create_tcb(struct packet *p, const struct choice *choice, u8 state, const struct request *r,
				  const struct lccp_tcb *tcp_part)
{
	struct tcphdr *tcp = p->frame.tcp;
	struct tcb tcb = {
		.request_seq = bpf_ntohl(tcp->seq),
		.last_seq = bpf_ntohl(tcp->seq) + p->frame.payload,
		.last_ack = bpf_ntohl(tcp->ack_seq),
		.next_request = bpf_ntohl(tcp->seq) + r->end + r->body,
		.seen = tick_now(),
		.owner = choice->owner,
		.previous = NO_DATA_SERVER,
		.pool = choice->pool,
		.generation = choice->generation,
		.route = choice->route,
		.counted = bpf_ntohl(tcp->ack_seq),
		.requests = 1,
		.head = head_of(r, p->frame.payload),
		.form = form_of(r) | (p->service->flags & SERVICE_OWNER ? TCB_AT_DOOR : 0),
		.mss = bpf_ntohs(tcp_part->be_mss),
		.snd_wscale = tcp_part->snd_wscale,
		.rcv_wscale = tcp_part->rcv_wscale,
		.options = tcp_part->options,
		.state = state | TCB_ADOPTING | TCB_WAITING | (tcp->fin ? TCB_FIN : 0),
		.turn = tcp_part->options & LCCP_TCB_CHUNKED ? 1 : 0,
	};

	return bpf_map_update_elem(&tcbs, &p->flow, &tcb, choice->replaces ? BPF_ANY : BPF_NOEXIST);
}

/*
 * Of a request that goes on behind its packet: where it ends, if that is known. Should its entry here be lost, its owner
 * still knows what is more of it.
 */
static __always_inline void tell_end(struct lccp_tcb *part, bool is_known, u16 head, u32 end)
{
	u64 told = is_known ? LCCP_END_TOLD : LCCP_END_UNKNOWN;

	part->be_resume = bpf_cpu_to_be64((u64)head << LCCP_END_HEAD_SHIFT | told << LCCP_END_SHIFT | end);
}

enum {
	MISSING_COUNT = 0x7f,      /* the bits of tcb.missing that count */
	MISSING_OTHER = 0x80,      /* the owner may have been told of another request that begins where the current one does */
};

/* The same of the current request of this entry, which this packet begins. */
static __always_inline void tell_end_of(struct lccp_tcb *part, const struct packet *p, const struct tcb *tcb)
{
	bool is_known = !(tcb->state & TCB_PINNED) && !(tcb->options & LCCP_TCB_CHUNKED);

	if (!(tcb->options & LCCP_TCB_STRICT))
		return;
	if (!is_known || tcb->missing & MISSING_OTHER || tcb->next_request - tcb->request_seq > p->frame.payload)
		tell_end(part, is_known, tcb->head, tcb->next_request);
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
