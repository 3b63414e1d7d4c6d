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
#include "packet.h"
#include "punt.h"
#include "tcb.h"

/*
 * Whether a request begins with this packet, of which the entry knows nothing yet. Data out of its order,
 * or more data before any of the response is acknowledged (a client that pipelines, a header of several
 * segments, a body): from then on nobody here knows where requests begin.
 */
static __always_inline bool begins_request(struct packet *p, struct tcb *tcb, struct request *r)
{
	struct tcphdr *tcp = p->frame.tcp;
	u32 seq = bpf_ntohl(tcp->seq);

	if ((int)(seq + p->frame.payload - tcb->last_seq) <= 0)
		return false;
	if (seq != tcb->last_seq || tcp->ack_seq == bpf_htonl(tcb->response_start) || tcp->fin || tcp->rst ||
	    tcp->urg || !read_request_of(p, r)) {
		pin(p, tcb);
		return false;
	}
	return true;
}

/*
 * The owner stays if it can answer, being in the pool with this index; a pool that got new members has
 * everybody choose once more.
 */
static __always_inline u16 choose_next(struct packet *p, struct tcb *tcb, struct request *r, u32 index)
{
	const struct pool *pool = pool_at(index);

	if (!pool)
		return tcb->owner;
	bool settled = tcb->pool != index || tcb->generation == pool->generation;
	bool stays = settled && !(pool->flags & POOL_PER_REQUEST) && pool->policy != POLICY_PATH;
	u16 next = tcb->owner;
	if (!stays || !is_member(pool, tcb->owner))
		next = pick(p, pool, index, r);
	if (next == SERVER_PUNTED)
		return next;
	tcb->pool = index;
	tcb->generation = pool->generation;
	return next;
}

/* What the entry says of the request before, now of this one. */
static __always_inline void note_request(struct tcb *tcb, struct packet *p, u16 owner)
{
	tcb->request_seq = bpf_ntohl(p->frame.tcp->seq);
	tcb->response_start = bpf_ntohl(p->frame.tcp->ack_seq);
	tcb->previous = NO_DATA_SERVER;
	if (owner != tcb->owner) {
		tcb->previous = tcb->owner;
		tcb->owner = owner;
	}
}

/* What becomes of a packet of a known connection. */
enum course {
	COURSE_FOLLOW,             /* to the owner */
	COURSE_HAND_OVER,          /* to the owner, who is to give the connection to another */
	COURSE_UNAVAILABLE,        /* a request for a pool in which nobody is */
	COURSE_PUNTED,             /* user space has it */
};

/* `next` is whom a connection is handed to. */
static __noinline enum course set_course(struct packet *p, struct tcb *tcb, u16 *next)
{
	struct request r = {};

	if (!begins_request(p, tcb, &r))
		return COURSE_FOLLOW;
	p->service = service_at(p->frame.ip->daddr, p->frame.tcp->dest);
	if (!p->service)
		return COURSE_FOLLOW;
	u32 pool = find_pool(p, &r);
	*next = pool == POOL_PUNTED ? SERVER_PUNTED : choose_next(p, tcb, &r, pool);
	if (*next == SERVER_PUNTED) {
		tcb->state |= TCB_PUNTED;
		return COURSE_PUNTED;
	}
	count(p->counters, COUNTER_CS_REQUEST);
	if (*next == NO_DATA_SERVER)
		return COURSE_UNAVAILABLE;
	if (*next != tcb->owner && is_present(tcb->owner) && is_present(*next) && fits_in_lccp(p))
		return COURSE_HAND_OVER;
	note_request(tcb, p, tcb->owner);
	return COURSE_FOLLOW;
}

/* Both are present, and the packet fits. */
static __always_inline int hand_over(struct packet *p, struct tcb *tcb, u16 next)
{
	const struct data_server *owner = data_server(tcb->owner);
	const struct data_server *to = data_server(next);
	struct lccp_tcb part = travelling_part(tcb);

	if (!owner || !to)
		return XDP_ABORTED;
	note_request(tcb, p, next);
	note_packet(tcb, p);
	tcb->state |= TCB_ADOPTING; /* also if this packet was the first to acknowledge what was before */
	count_adoption(next);
	count(p->counters, COUNTER_CS_HANDOVER);
	return distribute(p, owner, LCCP_HANDOVER, unmap_address(to->address), &part);
}

#endif
