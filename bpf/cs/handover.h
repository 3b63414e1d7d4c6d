/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Handover: a further request on a connection may be another data server's. The connection server
 * believes that the owner will agree, and has the connection at its new owner from now on; should the
 * owner refuse (KEEP), or that message be lost and the new one not have it (NONE), it goes back.
 */
#ifndef BATON_CS_HANDOVER_H
#define BATON_CS_HANDOVER_H

#include "dispatcher.h"
#include "distributor.h"
#include "keep.h"
#include "packet.h"
#include "punt.h"
#include "strict.h"
#include "tcb.h"
#include "turn.h"

/* A dead owner need not be asked. One that takes no messages cannot be, and serves the request itself. */
static __always_inline bool lets_go(u16 owner)
{
	const struct data_server *found = data_server(owner);

	return found && found->flags & DATA_SERVER_PRESENT &&
	       (found->flags & (DATA_SERVER_DEAD | DATA_SERVER_DEAF)) != DATA_SERVER_DEAF;
}

/*
 * Whether a request begins with this packet, of which the entry knows nothing yet. More of a body does not.
 * Data out of its order, or more data before any of the response is acknowledged (a client that pipelines, a
 * header of several segments): from then on nobody here knows where requests begin.
 */
static __always_inline bool begins_request(struct packet *p, struct tcb *tcb, struct request *r)
{
	struct tcphdr *tcp = p->frame.tcp;
	u32 seq = bpf_ntohl(tcp->seq), end = seq + p->frame.payload;
	int acknowledged = bpf_ntohl(tcp->ack_seq) - tcb->last_ack;

	if ((int)(end - tcb->last_seq) <= 0 || (int)(end - tcb->next_request) <= 0)
		return false;
	bool waits = tcb->state & TCB_WAITING ? acknowledged <= 0 : acknowledged < 0;
	if (waits || seq != tcb->next_request || seq != tcb->last_seq || tcp->fin || tcp->rst || tcp->urg) {
		pin(p, tcb);
		return false;
	}
	p->service = service_at(p->frame.ip->daddr, p->frame.tcp->dest);
	if (read_request_of(p, r) && !r->careful)
		return true;
	/* Where the next one begins is not known from here on. Who answers this one is, once user space has read it. */
	r->odd = 1;
	if (p->service && is_unclear(p, r))
		return true;
	pin(p, tcb);
	return false;
}

/* The owner stays if it can answer, being in the pool with this index. */
static __always_inline struct choice choose_next(struct packet *p, const struct tcb *tcb, struct request *r,
						 u32 index, u16 route)
{
	struct choice next = { .owner = tcb->owner, .pool = tcb->pool, .generation = tcb->generation,
			       .route = route };
	const struct pool *pool = pool_at(index);

	if (!pool)
		return next;
	next.pool = index;
	next.generation = pool->generation;
	if (!stays(pool, index, tcb->pool, tcb->generation) || !is_member(pool, tcb->owner))
		next.owner = pick(p, pool, index, r);
	return next;
}

/*
 * What the entry says of the request before, now of this one. The first one after a RELEASE is adopted, should
 * the connection not have come to its owner, and goes the same way as that.
 *
 * Another processor may look at the entry meanwhile. Until it sees all of this it takes a copy of the request for the next
 * one, which is not its turn; or it knows of no head, which a part of it could be.
 */
static __always_inline void note_request(struct tcb *tcb, struct packet *p, const struct request *r, u16 owner)
{
	/* What is missing in front of a request that was withheld still is. */
	if (tcb->request_seq != bpf_ntohl(p->frame.tcp->seq))
		tcb->missing = 0;
	tcb->head = 0;
	IN_THIS_ORDER();
	tcb->doubted = 0;
	tcb->form = form_of(r);
	/* User space lets a packet go that may be older than what has come behind it. */
	if ((int)(bpf_ntohl(p->frame.tcp->ack_seq) - tcb->last_ack) > 0)
		tcb->last_ack = bpf_ntohl(p->frame.tcp->ack_seq);
	u8 state = tcb->state;
	if (is_moving(tcb))
		state |= TCB_RELEASED; /* its response was whole before it could go */
	if (!(state & TCB_RELEASED)) {
		state &= ~TCB_ADOPTING;
		tcb->previous = NO_DATA_SERVER;
	}
	state = (state & ~(TCB_RESUMING | TCB_PUNTED)) | TCB_WAITING;
	if (r->goes_on && !(state & TCB_PINNED)) {
		keep_upload(p);
		tcb->options |= LCCP_TCB_CHUNKED;
	}
	if (owner == tcb->owner) {
		tcb->state = state;
		tcb->requests++;
	} else {
		/* Who sees the new owner must see that it has nothing yet. */
		tcb->state = state | TCB_ADOPTING;
		IN_THIS_ORDER();
		give_to(tcb, owner, tcb->owner, 1);
		tcb->options &= ~LCCP_TCB_PIPELINED;
	}
	IN_THIS_ORDER();
	tcb->request_seq = bpf_ntohl(p->frame.tcp->seq);
	IN_THIS_ORDER();
	tcb->next_request = bpf_ntohl(p->frame.tcp->seq) + r->end + r->body;
	IN_THIS_ORDER();
	tcb->head = head_of(r, p->frame.payload);
	end_turn(tcb);
}

enum {
	QUIET_TICKS = 3,           /* longer than it takes the daemon to see to who was not quiet when its data server died */
};

/*
 * Whether the client may be in the middle of the response before this request, and nobody says so: its data server is
 * dead. The daemon finds out, for as long as which the request waits. It ends the connection, or has the response go on
 * elsewhere; or the response was whole, and it says so of the request that was kept for it.
 */
static __always_inline bool may_be_under_way(const struct packet *p, const struct tcb *tcb)
{
	const struct data_server *owner = data_server(tcb->owner);

	if (tcb->state & TCB_RESUMING && !is_moving(tcb))
		return true;
	if (!owner || !(owner->flags & DATA_SERVER_DEAD))
		return false;
	return tcb->options & LCCP_TCB_PIPELINED || is_unanswered_request(tcb, p->frame.tcp) || is_kept_open(&p->flow, tcb) ||
	       tick_now() - tcb->seen < QUIET_TICKS;
}

/* A request for another pool than the one before, which only that may answer, is to go with its connection. */
static __always_inline enum course go_elsewhere(struct packet *p, struct tcb *tcb, const struct choice *choice, bool goes)
{
	if (!goes)
		return close_at(p, choice->route, choice->pool, CLOSED_UNMOVED);
	if (is_unanswered_request(tcb, p->frame.tcp))
		return withhold(p, COUNTER_CS_WITHHELD);
	return COURSE_HAND_OVER;
}

/* `next` is whom the connection is handed to with the request `r`. */
static __noinline enum course set_course(struct packet *p, struct tcb *tcb, struct request *r, u16 *next)
{
	u32 glance = glance_at(tcb);
	bool strict = is_strict(tcb);

	if (strict) {
		enum course course = find_beginning(p, tcb, r, glance);
		if (course != COURSE_BEGINS)
			return course;
		if (r->incomplete && asks_what_has_come(p))
			return COURSE_COME;
	} else if (!begins_request(p, tcb, r) || !p->service) {
		return COURSE_FOLLOW;
	}
	u16 route;
	u32 pool = find_pool(p, r, &route);
	if (pool == POOL_UNKNOWN)
		return COURSE_PUNTED;
	if (r->again && pool != POOL_PUNTED)
		return is_same_request(tcb, r, pool) ? COURSE_FOLLOW : COURSE_AGAIN;
	if (strict && (pool == POOL_REFUSED || pool == POOL_TOO_BIG || r->cut))
		return close_for(p, tcb, CLOSED_UNREAD);
	if (pool == POOL_REFUSED || pool == POOL_TOO_BIG) {
		settle(tcb, bpf_ntohl(p->frame.tcp->ack_seq));
		tally_undecided(p, pool);
		return pool == POOL_REFUSED ? COURSE_REFUSED : COURSE_UNAVAILABLE;
	}
	struct choice choice = { .owner = SERVER_PUNTED };
	if (pool != POOL_PUNTED)
		choice = choose_next(p, tcb, r, pool, route);
	if (choice.owner == SERVER_PUNTED) {
		tcb->state |= TCB_PUNTED;
		return COURSE_PUNTED;
	}
	count(p->counters, COUNTER_CS_REQUEST);
	u32 ack = bpf_ntohl(p->frame.tcp->ack_seq);
	bool others = choice.owner != tcb->owner;
	bool goes = p->service->flags & SERVICE_HANDOVER && lets_go(tcb->owner) && is_present(choice.owner) &&
		    fits_in_lccp(p);
	bool moves = others && may_move(r) && goes;
	bool lost = choice.owner == NO_DATA_SERVER;

	if (others && goes && may_be_under_way(p, tcb))
		return withhold(p, COUNTER_CS_ORPHAN_WAITS);
	bool elsewhere = strict && others && !lost && choice.pool != tcb->pool;
	if (elsewhere) {
		enum course course = go_elsewhere(p, tcb, &choice, goes);
		if (course != COURSE_HAND_OVER)
			return course;
		moves = true;
	}
	/* Nothing of the entry is changed before this, so that a copy changes nothing. */
	if (!lost && !take_turn(tcb, glance))
		return withhold(p, COUNTER_CS_NOTED_MEANWHILE);
	tcb->options &= ~LCCP_TCB_ELSEWHERE;
	if (strict && is_unanswered_request(tcb, p->frame.tcp))
		tcb->options |= LCCP_TCB_PIPELINED;
	if (elsewhere)
		tcb->options |= LCCP_TCB_ELSEWHERE;
	if (strict && r->odd) {
		pin(p, tcb);
	} else if (r->odd) {
		pin(p, tcb);
		/* Of one that goes on elsewhere nobody can say whose it is: its owner answers it. */
		if (others && !lost && !r->cut) {
			settle(tcb, ack);
			count(p->counters, COUNTER_CS_TARGET_UNMOVED);
			return COURSE_UNAVAILABLE;
		}
	}

	if (moves || lost || choice.route != tcb->route || choice.pool != tcb->pool)
		settle(tcb, ack);
	tcb->pool = choice.pool;
	tcb->generation = choice.generation;
	tcb->route = choice.route;
	*next = choice.owner;
	if (lost) {
		tally_request(tcb->route, tcb->pool);
		tally_unavailable(tcb->route, tcb->pool);
		return COURSE_UNAVAILABLE;
	}
	if (moves)
		return COURSE_HAND_OVER;
	if (others)
		count(p->counters, COUNTER_CS_UNMOVED);
	tally_further(tcb, ack);
	note_request(tcb, p, r, tcb->owner);
	/* Else it is not known where its response begins. */
	if (!(tcb->options & LCCP_TCB_PIPELINED))
		keep_request(p, r);
	return COURSE_FOLLOW;
}

/* Both are present, and the packet fits. */
static __always_inline int hand_over(struct packet *p, struct tcb *tcb, const struct request *r, u16 next)
{
	const struct data_server *owner = data_server(tcb->owner);
	const struct data_server *to = data_server(next);
	struct lccp_tcb part = travelling_part(tcb);

	if (!owner || !to) {
		end_turn(tcb);
		return XDP_ABORTED;
	}
	note_request(tcb, p, r, next);
	note_packet(tcb, p);
	keep_request(p, r);
	tell_end_of(&part, p, tcb);
	if (owner->flags & DATA_SERVER_DEAD) {
		/* It cannot let go any more, and need not. */
		tcb->previous = NO_DATA_SERVER;
		tally_connection(next, false);
		count(p->counters, COUNTER_CS_ORPHAN_ADOPT);
		return distribute(p, to, LCCP_ADOPT, unmap_address(p->settings->address), &part);
	}
	tally_handover(tcb, tcb->previous, next);
	count(p->counters, COUNTER_CS_HANDOVER);
	if (is_strict(tcb))
		part.attempt = tcb->requests_before;
	return distribute(p, owner, handover_command(tcb), unmap_address(to->address), &part);
}

#endif
