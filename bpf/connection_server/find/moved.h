/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * MOVED. If the connection has no entry, this is an answer to CLAIM: a data server has the connection, or has handed it
 * over, and the connection gets an entry here. A data server that has it has delivered the client's packet, or where it
 * has a door it sends the packet back in this message.
 * If there is an entry, the owner has handed the connection to another data server, or tells that it is at rest; or a
 * connection has begun on these ports since the CLAIM.
 */
#ifndef BATON_CONNECTION_SERVER_FIND_MOVED_H
#define BATON_CONNECTION_SERVER_FIND_MOVED_H

#include "connection_server/find/answer.h"
#include "connection_server/find/claim_budget.h"
#include "connection_server/find/enter.h"
#include "connection_server/find/moved_on.h"
#include "connection_server/go_on.h"
#include "connection_server/orphans/quiet_point.h"
#include "connection_server/tcb.h"

/* Whether the entry's owner cannot say where the connection is: it is dead, and the response is not being resumed. */
static __always_inline bool is_left_alone(const struct tcb *tcb)
{
	const struct data_server *owner = data_server(tcb->owner);

	return owner && owner->flags & DATA_SERVER_DEAD && !(tcb->state & TCB_RESUMING);
}

/*
 * Handles MOVED about a connection that has an entry. The owner has handed the connection to data server `next`, with
 * the request that the message carries; or `next` is the owner itself, and the connection is at rest. Mostly only the
 * owner that the entry names is believed (note_moved_on()), and only about numbers near the entry's. A MOVED of an
 * earlier owner, or about an earlier connection on these ports, comes late and changes nothing: the client's next packet
 * reaches whoever has the connection. If the owner is dead, a data server that says that it has the connection itself is
 * believed, because the dead one's MOVED may be lost.
 */
static __always_inline int moved_on(struct packet *p, const struct lccp_header *h, struct tcb *tcb, u32 next)
{
	struct carried c;

	if (next == NO_DATA_SERVER || !read_carried(p, h, &c) || !is_of_entry(tcb, &c.tcp))
		return drop(p, COUNTER_LCCP_MISMATCH);
	if (h->be_data && next == tcb->owner && is_from(p, next)) {
		note_quiet_point(p, tcb, &c.tcp);
		return XDP_DROP;
	}
	if (h->be_data && note_moved_on(tcb, next, is_from(p, holder(tcb)), h, &c.tcp))
		return drop(p, COUNTER_CS_MOVED_ON);
	if (next == tcb->owner || !is_from(p, next) || !is_left_alone(tcb))
		return drop(p, COUNTER_LCCP_MISMATCH);
	give_to(tcb, next, NO_DATA_SERVER);
	return drop(p, COUNTER_CS_MOVED_FROM_DEAD);
}

static __noinline int moved(struct packet *p, struct lccp_header *h)
{
	struct tcb *held = answered_entry(p, h);
	struct carried c;

	u32 owner = data_server_at(h->be_data ? h->be_data : p->frame.ip->saddr);
	if (held)
		return moved_on(p, h, held, owner);
	if (owner == NO_DATA_SERVER || !read_carried(p, h, &c))
		return drop(p, COUNTER_LCCP_MISMATCH);
	const struct service *service = service_at(p->flow.cluster, p->flow.be_cluster_port);
	if (!service)
		return drop(p, COUNTER_LCCP_MISMATCH);

	if (enter(p, &c.tcp, carried_payload(&c), owner, service, &h->tcb))
		return drop(p, COUNTER_LCCP_MISMATCH);
	believe(&p->flow);
	count(p->counters, COUNTER_CS_MOVED);
	/* The sender has handed the connection on. One that names itself tells that the connection is at rest. */
	struct tcb *entered = h->be_data && !is_from(p, owner) ? bpf_map_lookup_elem(&tcbs, &p->flow) : 0;
	if (entered)
		note_moved_with(entered, h, &c.tcp);
	/*
	 * Where there is a door the packet was not delivered (data_server/claim.h), so it goes on from here. Not if
	 * its data was cut off, because then it is not what the client has sent.
	 */
	bool is_to_go = service->flags & SERVICE_OWNER && !h->be_data && !(h->flags & LCCP_FLAG_HEADERS);
	return is_to_go ? GO_ON_WITH_CARRIED : XDP_DROP;
}

#endif
