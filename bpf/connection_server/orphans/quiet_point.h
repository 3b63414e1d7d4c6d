/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections at rest. Where a service has doors, only owners know when a response is complete; a client that is
 * silent may also be in the middle of one. So when a connection has come to rest, its owner tells the numbers of that
 * point: MOVED, which names the owner itself, with an empty ACK in the client's name (data_server/handover/leave.h).
 * If that data server dies, the next request, which begins exactly there, goes to another one.
 *
 * These numbers stay valid for as long as the connection lives, so they are never withdrawn: once the client has any
 * byte of another response, it acknowledges another number. They are needed only for connections of dead data servers,
 * so no packet of a living one pays for them.
 */
#ifndef BATON_CONNECTION_SERVER_ORPHANS_QUIET_POINT_H
#define BATON_CONNECTION_SERVER_ORPHANS_QUIET_POINT_H

#include "connection_server/tcb.h"
#include "routing/dispatcher.h"
#include "xdp/packet.h"

/*
 * Notes where the connection is at rest: at the numbers of the carried packet, which the entry's owner has made in the
 * client's name.
 */
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

/*
 * Whether the connection is at rest: the numbers in its entry are those that its owner has told. Silence alone proves
 * nothing, because a silent client may wait for a response.
 */
static __noinline bool is_entry_at_rest(const struct tcb_key *flow, const struct tcb *tcb)
{
	const struct quiet_point *at = flow ? bpf_map_lookup_elem(&quiet_points, flow) : 0;

	return at && tcb && at->owner == tcb->owner && at->seq == tcb->last_seq && at->ack == tcb->last_ack;
}

/* Whether this packet begins exactly where the connection was at rest. The entry has noted the packet already. */
static __always_inline bool is_at_quiet_point(const struct packet *p, const struct tcb *tcb)
{
	const struct tcphdr *tcp = p->frame.tcp;
	const struct quiet_point *at = bpf_map_lookup_elem(&quiet_points, &p->flow);

	return at && at->owner == tcb->owner && tcp->ack && bpf_ntohl(tcp->seq) == at->seq &&
	       bpf_ntohl(tcp->ack_seq) == at->ack && tcb->last_ack == at->ack;
}

/*
 * Whether this packet leaves a connection at rest whose owner is dead: it begins no request. If the connection was at
 * rest and the packet has data, its next request begins here. The entry then names that request as the current one, of
 * which nothing was answered. The entry's pool is that of an earlier request and may have had only the dead server, so
 * the service's own pool takes its place; the data server that gets the request finds the right one.
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
