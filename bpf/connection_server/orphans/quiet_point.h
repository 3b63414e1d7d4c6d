/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections at rest. Where owners see to requests, only they know when a response is complete; a client that is silent may as
 * well be in the middle of one. So the owner of a connection that has come to rest tells where that is: MOVED, to itself, with an
 * empty ACK of the client's (data_server/handover/leave.h). Should that data server die, the next request, which begins exactly there, goes to
 * another one.
 *
 * What is told stays true for as long as the connection lives, so nobody need take it back: once the client has any of another
 * response, it acknowledges something else. And it is needed only for connections of the dead: no packet of a living one pays for it.
 */
#ifndef BATON_CONNECTION_SERVER_ORPHANS_QUIET_POINT_H
#define BATON_CONNECTION_SERVER_ORPHANS_QUIET_POINT_H

#include "connection_server/tcb.h"
#include "routing/dispatcher.h"
#include "xdp/packet.h"

/* The owner of this entry says that the connection is at rest where this packet, which it has made in the client's name, is. */
static __noinline void note_quiet_point(struct packet *p, const struct tcb *tcb, const struct tcphdr *tcp)
{
	struct quiet_point at = {
		.seq = bpf_ntohl(tcp->seq),
		.ack = bpf_ntohl(tcp->ack_seq),
		.owner = tcb->owner,
	};

	bpf_map_update_elem(&quiet_points, &p->flow, &at, BPF_ANY);
	count(p->counters, COUNTER_CS_REST);
}

/* Whether the connection is at rest, as far as its client's packets and its owner's word say. A silent one may wait for a response. */
static __noinline bool is_entry_at_rest(const struct tcb_key *flow, const struct tcb *tcb)
{
	const struct quiet_point *at = flow ? bpf_map_lookup_elem(&quiet_points, flow) : 0;

	return at && tcb && at->owner == tcb->owner && at->seq == tcb->last_seq && at->ack == tcb->last_ack;
}

/* Whether this packet, which its entry has noted, is where the connection was at rest. */
static __always_inline bool is_at_quiet_point(const struct packet *p, const struct tcb *tcb)
{
	const struct tcphdr *tcp = p->frame.tcp;
	const struct quiet_point *at = bpf_map_lookup_elem(&quiet_points, &p->flow);

	return at && at->owner == tcb->owner && tcp->ack && bpf_ntohl(tcp->seq) == at->seq &&
	       bpf_ntohl(tcp->ack_seq) == at->ack && tcb->last_ack == at->ack;
}

/*
 * If the connection, whose owner is dead, is at rest, the next request may begin with this packet: from now on that is the current
 * one, which nobody has answered. The entry's pool is that of an earlier one, which may have had only the server that is dead;
 * whose this one is, whoever gets it finds. True: nothing begins with it, and the connection rests on.
 */
static __noinline bool rests_on(struct packet *p, struct tcb *tcb)
{
	if (!is_at_quiet_point(p, tcb))
		return false;
	if (!p->frame.payload)
		return !p->frame.tcp->fin;
	const struct service *service = service_at(p->frame.ip->daddr, p->frame.tcp->dest);
	const struct pool *pool = service ? pool_at(service->pool) : 0;
	if (service && pool && pool->choices)
		tcb->pool = service->pool;
	tcb->request_seq = bpf_ntohl(p->frame.tcp->seq);
	tcb->state |= TCB_ADOPTING | TCB_WAITING;
	return false;
}

#endif
