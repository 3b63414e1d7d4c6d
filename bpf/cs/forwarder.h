/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The forwarder: keeps a client's packets flowing to the owner of its connection. */
#ifndef BATON_CS_FORWARDER_H
#define BATON_CS_FORWARDER_H

#include "distributor.h"
#include "handover.h"
#include "packet.h"
#include "reply.h"
#include "strict.h"
#include "tcb.h"

static __always_inline void count_forwarded(struct packet *p)
{
	count(p->counters, COUNTER_CS_FORWARD);
	count_bytes(p->counters, COUNTER_CS_FORWARD_BYTES, p->frame.ip_bytes);
}

/* As it is, to one that is not behind a router. */
static __always_inline int forward_plain(struct packet *p, const struct data_server *to)
{
	count_forwarded(p);
	address_frame(p->frame.eth, to);
	return send(p->ctx, to);
}

static __always_inline int forward(struct packet *p, const struct data_server *to)
{
	if (to->flags & DATA_SERVER_ROUTED && !fits_in_lccp(p))
		return drop(p, COUNTER_CS_TOO_BIG);
	if (is_merged(p)) {
		if (!(to->flags & DATA_SERVER_LOCAL) && to->ifindex != p->ctx->ingress_ifindex)
			return drop(p, COUNTER_CS_MERGED_LOST);
		count(p->counters, COUNTER_CS_MERGED);
	}
	if (!(to->flags & DATA_SERVER_ROUTED))
		return forward_plain(p, to);
	count_forwarded(p);
	return distribute(p, to, LCCP_FORWARD, 0, &(struct lccp_tcb){});
}

/*
 * The current request comes again, and nothing was answered yet: its ADOPT or HANDOVER may be lost. Or it is the
 * first after a RELEASE.
 */
static __always_inline bool is_adopted_packet(const struct tcb *tcb, const struct frame *f)
{
	return tcb->state & (TCB_ADOPTING | TCB_RELEASED) && f->tcp->seq == bpf_htonl(tcb->request_seq) &&
	       f->tcp->ack_seq == bpf_htonl(tcb->last_ack) && (f->payload || f->tcp->fin);
}

/* Whether it is there and takes messages. */
static __always_inline bool hears(const struct data_server *server)
{
	return (server->flags & (DATA_SERVER_PRESENT | DATA_SERVER_DEAD | DATA_SERVER_DEAF)) ==
	       DATA_SERVER_PRESENT;
}

/* Whether this is the current request itself, which is for the owner: it was judged again. */
static __always_inline bool is_current_request(const struct tcb *tcb, const struct tcphdr *tcp)
{
	return tcb->head && tcp->seq == bpf_htonl(tcb->request_seq);
}

/* Whether only the owner can say if a request begins with this packet. */
static __always_inline bool must_be_asked_about(const struct packet *p, const struct tcb *tcb)
{
	return p->frame.payload && is_unsure(tcb) && !is_current_request(tcb, p->frame.tcp);
}

/* Behind the end of a connection that began with that, without a request. */
static __always_inline bool came_without_request(const struct packet *p, const struct tcb *tcb)
{
	return p->frame.payload && is_unsure(tcb) && !tcb->head;
}

/* Inside a message; with where the request ends that the packet begins, of the entry `begins`. */
static __noinline int forward_inside(struct packet *p, const struct tcb *begins, const struct data_server *owner,
				     enum counter why)
{
	struct lccp_tcb part = {};

	if (begins)
		tell_end_of(&part, p, begins);
	count(p->counters, why);
	return distribute(p, owner, LCCP_FORWARD, 0, &part);
}

/* The data server knows a duplicate when it sees one. */
static __always_inline int adopt_again(struct packet *p, struct tcb *tcb, const struct data_server *owner)
{
	struct lccp_tcb part = travelling_part(tcb);
	const struct data_server *previous = data_server(tcb->previous);

	if (!fits_in_lccp(p))
		return drop(p, COUNTER_CS_TOO_BIG);
	tell_end_of(&part, p, tcb);
	if (previous && previous->flags & DATA_SERVER_PRESENT && tcb->state & TCB_ADOPTING) {
		/*
		 * It was to hand it over, and cannot any more. Whether it did, and so whether its response was whole, the
		 * next one knows: if not, it has no such connection (NONE).
		 */
		if (!hears(previous))
			return forward_inside(p, tcb, owner, COUNTER_CS_ORPHAN_ASKS);
		count(p->counters, COUNTER_CS_HANDOVER_AGAIN);
		if (is_strict(tcb))
			part.attempt = tcb->requests_before;
		return distribute(p, previous, handover_command(tcb), unmap_address(owner->address), &part);
	}
	count(p->counters, COUNTER_CS_ADOPT_AGAIN);
	return distribute(p, owner, LCCP_ADOPT, unmap_address(p->settings->address), &part);
}

enum {
	HANDOVER_FLIGHT = 4 << 20, /* so much of a request may be here before it is where it goes */
	LARGEST_WINDOW = 1 << 30,  /* RFC 7323, section 2.3 */
};

static __always_inline bool is_handed_over(const struct tcb *tcb)
{
	return tcb->state & TCB_ADOPTING && tcb->previous != NO_DATA_SERVER;
}

/* How far behind the beginning of the current request a packet begins. */
static __always_inline int into_request(const struct tcb *tcb, const struct packet *p)
{
	return bpf_ntohl(p->frame.tcp->seq) - tcb->request_seq;
}

/* The client cannot be so far into its request before the next server has told it that it has that. */
static __always_inline void note_far_into_request(struct tcb *tcb, const struct packet *p)
{
	if (is_handed_over(tcb) && p->frame.payload && into_request(tcb, p) >= LARGEST_WINDOW)
		tcb->state &= ~(TCB_ADOPTING | TCB_RELEASED);
}

/*
 * More of a client whose request is on its way from one owner to the next: the same way, or it would be
 * there before the connection is. The rest of a large body goes straight to the next one, which has the connection by then.
 */
static __always_inline bool must_queue(const struct tcb *tcb, struct packet *p)
{
	return is_handed_over(tcb) && into_request(tcb, p) < HANDOVER_FLIGHT && fits_in_lccp(p);
}

enum {
	FIRST_FLIGHT = 64 << 10,   /* more than any client sends before it hears of its server (initial windows of 10 to 44 segments) */
};

/*
 * More of the request with which a connection begins: by the way of its ADOPT, inside a message. A card with several queues
 * has the messages of this node in one of them, and what goes by itself in any.
 */
static __always_inline bool is_behind_adopt(const struct tcb *tcb, const struct packet *p)
{
	return tcb->state & TCB_ADOPTING && tcb->previous == NO_DATA_SERVER && (p->frame.payload || p->frame.tcp->fin) &&
	       bpf_ntohl(p->frame.tcp->seq) - tcb->request_seq < FIRST_FLIGHT && fits_in_lccp(p);
}

static __always_inline int queue(struct packet *p, u16 previous, const struct data_server *owner, bool strict)
{
	const struct data_server *via = data_server(previous);

	if (!via || !hears(via))
		return forward(p, owner);
	count(p->counters, COUNTER_CS_QUEUED);
	return distribute(p, via, strict ? FORWARD_BEHIND : LCCP_FORWARD, unmap_address(owner->address),
			  &(struct lccp_tcb){});
}

/* The current request, which goes on behind this packet: its owner is to know where it ends. */
static __always_inline bool is_told(const struct packet *p, const struct tcb *tcb)
{
	if (!is_strict(tcb) || !p->frame.payload || p->frame.tcp->seq != bpf_htonl(tcb->request_seq) || !fits_in_lccp(p))
		return false;
	/* 4 GB into a large body: see go_on_with_body(). */
	if (tcb->form & TCB_CHUNKED && !tcb->head)
		return false;
	return tcb->options & LCCP_TCB_CHUNKED || tcb->state & TCB_PINNED || tcb->missing & MISSING_OTHER ||
	       tcb->next_request - tcb->request_seq > p->frame.payload;
}

/* A packet of which nobody here knows whether a request begins with it: the owner says so, or delivers it. */
static __always_inline int ask_owner(struct packet *p, const struct data_server *owner, enum lccp_begins how)
{
	struct lccp_tcb part = { .attempt = how };

	if (!fits_in_lccp(p))
		return drop(p, COUNTER_CS_TOO_BIG);
	if (how != BEGINS_AGAIN)
		count(p->counters, how == BEGINS_COME ? COUNTER_CS_COME : COUNTER_CS_BEGINS);
	return distribute(p, owner, LCCP_BEGINS, 0, &part);
}

#include "orphan.h"

static __noinline int follow(struct packet *p, struct tcb *tcb);

/* For user space. Who has a connection only now, or not yet, says it when it is asked again. */
static __always_inline int ask_what_has_come(struct packet *p, const struct tcb *tcb)
{
	const struct data_server *owner = data_server(tcb->owner);

	if (!owner || !hears(owner) || tcb->state & (TCB_ADOPTING | TCB_RESUMING))
		return drop(p, COUNTER_CS_AGAIN_LATER);
	return ask_owner(p, owner, BEGINS_COME);
}

/* What may have been sent before, with other content: to the owner, if that has it already. */
static __noinline int ask_again(struct packet *p, struct tcb *tcb)
{
	const struct data_server *owner = data_server(tcb->owner);

	touch(tcb);
	/* User space knows whether this is the same, unless it has sent it itself. */
	if (tcb->form & TCB_IN_PARTS && bpf_ntohl(p->frame.tcp->seq) - tcb->request_seq < tcb->head && !was_read(p) &&
	    goes_behind(p))
		return XDP_DROP;
	const struct data_server *previous = data_server(tcb->previous);
	bool can_ask = owner && hears(owner) && !(tcb->state & TCB_RESUMING);
	bool moves = is_handed_over(tcb);
	/* Who was to hand it over is dead: the next one has it, or nobody has what comes again. */
	bool is_left = previous && previous->flags & DATA_SERVER_DEAD && can_ask;
	if ((moves && !is_left) || (owner && owner->flags & DATA_SERVER_DEAD && is_adopted_packet(tcb, &p->frame)))
		return drop(p, COUNTER_CS_AGAIN_LATER);
	if (!can_ask)
		return follow(p, tcb);
	count(p->counters, COUNTER_CS_AGAIN);
	return ask_owner(p, owner, BEGINS_AGAIN);
}

/* A packet of a known connection, noted in its entry. */
static __noinline int follow(struct packet *p, struct tcb *tcb)
{
	const struct data_server *owner = data_server(tcb->owner);

	if (!owner || !(owner->flags & DATA_SERVER_PRESENT)) {
		settle(tcb, tcb->last_ack);
		bpf_map_delete_elem(&tcbs, &p->flow);
		return reset(p, COUNTER_CS_OWNER_GONE);
	}
	if (tcb->state & TCB_RESUMING)
		return resume(p, tcb, owner);
	if (owner->flags & DATA_SERVER_DEAD)
		return orphaned(p, tcb);
	if (owner->flags & DATA_SERVER_DEAF)
		return follow_deaf(p, tcb, owner);
	if (is_adopted_packet(tcb, &p->frame) && !came_without_request(p, tcb))
		return adopt_again(p, tcb, owner);
	if (must_be_asked_about(p, tcb))
		return ask_owner(p, owner, BEGINS_UNSURE);
	note_far_into_request(tcb, p);
	if (must_queue(tcb, p))
		return queue(p, tcb->previous, owner, is_strict(tcb));
	if (is_told(p, tcb))
		return forward_inside(p, tcb, owner, COUNTER_CS_TOLD);
	if (is_behind_adopt(tcb, p))
		return forward_inside(p, 0, owner, COUNTER_CS_BEHIND_ADOPT);
	return forward(p, owner);
}

#endif
