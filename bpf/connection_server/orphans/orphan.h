/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections whose data server is dead, or does not hear. A request that nobody has answered goes to another one. In the
 * middle of a response the daemon finds who has the rest (TCB_RESUMING), or nobody does, and the client is
 * told at once. Included by forwarder.h, which has what it needs of the living.
 */
#ifndef BATON_CONNECTION_SERVER_ORPHANS_ORPHAN_H
#define BATON_CONNECTION_SERVER_ORPHANS_ORPHAN_H

#include "connection_server/find/refused.h"
#include "connection_server/orphans/keep.h"
#include "connection_server/orphans/move.h"
#include "connection_server/orphans/quiet_point.h"
#include "connection_server/read_request.h"
#include "routing/dispatcher.h"

/* Whether the agent's socket, which has nothing of what is behind the request, would begin in front of that. */
static __always_inline bool begins_behind_request(struct packet *p, const struct tcb *tcb)
{
	return bpf_ntohl(p->frame.tcp->seq) == tcb->last_seq && is_kept(&p->flow, tcb);
}

/*
 * The next owner has the rest of the response. An acknowledgement says where the client is, exactly, and
 * that is where the agent's socket begins; anything else of the client would make it begin elsewhere. So
 * the rest waits for the socket: without one it comes back (NONE), ends here, and the client sends it again.
 */
static __always_inline int resume(struct packet *p, struct tcb *tcb, const struct data_server *owner)
{
	struct tcphdr *tcp = p->frame.tcp;
	struct lccp_tcb part = travelling_part(tcb);

	if (is_moving(tcb) && is_living(tcb->previous))
		return follow_move(p, tcb, owner);
	if (owner->flags & DATA_SERVER_DEAD)
		return drop(p, COUNTER_CS_ORPHAN_WAITS);
	if (p->frame.payload || tcp->fin || tcp->rst || !tcp->ack || !fits_in_lccp(p) || !begins_behind_request(p, tcb))
		return forward(p, owner);
	count(p->counters, COUNTER_CS_RESUME);
	return distribute(p, owner, ADOPT_RESUMED, unmap_address(p->settings->address), &part);
}

/* The current request again, of which the client has no answer at all, to another data server. */
static __noinline int adopt_orphan(struct packet *p, struct tcb *tcb)
{
	struct lccp_tcb part = travelling_part(tcb);
	u16 other = choose_other(tcb->pool, &p->flow, tcb->owner, 0);
	const struct data_server *to = data_server(other);

	if (!to || !hears(to))
		return drop(p, COUNTER_CS_ORPHAN_WAITS);
	tally_connection(other, is_at_door(tcb));
	give_to(tcb, other, NO_DATA_SERVER);
	count(p->counters, COUNTER_CS_ORPHAN_ADOPT);
	return distribute(p, to, LCCP_ADOPT, unmap_address(p->settings->address), &part);
}

/* Any packet of a connection whose owner is dead, and whose response nobody else has yet. */
static __always_inline int orphaned(struct packet *p, struct tcb *tcb)
{
	struct tcphdr *tcp = p->frame.tcp;
	struct request *r = blank_request();

	const struct data_server *owner = data_server(tcb->owner);

	/* It may have handed the connection on, and its word be lost. */
	if (tcp->rst || (owner && owner->flags & DATA_SERVER_ASKED_FOR))
		return drop(p, COUNTER_CS_ORPHAN_WAITS);
	if (rests_on(p, tcb))
		return drop(p, COUNTER_CS_ORPHAN_WAITS);
	if (r && is_adopted_packet(tcb, &p->frame) && fits_in_lccp(p) && read_request_of(p, r) && may_move(r))
		return adopt_orphan(p, tcb);
	/* A keep-alive probe asks only whether anybody is there: the next request finds somebody. */
	bool probes = !tcp->fin && bpf_ntohl(tcp->seq) == tcb->last_seq - 1;
	if (probes || is_kept(&p->flow, tcb))
		return drop(p, COUNTER_CS_ORPHAN_WAITS);
	settle(tcb, tcb->last_ack);
	bpf_map_delete_elem(&tcbs, &p->flow);
	return reset(p, COUNTER_CS_ORPHAN_RESET);
}

/*
 * Any packet of a connection whose owner takes no messages. Packets of clients it takes, so what it has
 * goes on; a request that comes again has not come to it.
 */
static __always_inline int follow_deaf(struct packet *p, struct tcb *tcb, const struct data_server *owner)
{
	struct request *r = blank_request();

	if (!r || !is_adopted_packet(tcb, &p->frame) || !fits_in_lccp(p) || !read_request_of(p, r) || !may_move(r))
		return forward(p, owner);
	count(p->counters, COUNTER_CS_DEAF);
	return adopt_orphan(p, tcb);
}

#endif
