/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What becomes of a packet of a known connection: it goes to the owner, or elsewhere if the owner cannot have it. */
#ifndef BATON_CONNECTION_SERVER_SEND_TO_OWNER_H
#define BATON_CONNECTION_SERVER_SEND_TO_OWNER_H

#include "connection_server/forwarder.h"
#include "connection_server/orphans/orphan.h"
#include "connection_server/reply.h"

/*
 * Sends a packet of a known connection on, by the state of its entry and of its owner. The entry has noted the packet
 * already, unless the packet's numbers are far from the entry's or it is late.
 */
static __noinline int send_to_owner(struct packet *p, struct tcb *tcb)
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
	if (repeats_request(tcb, &p->frame))
		return adopt_again(p, tcb, owner);
	if (is_behind_adopt(tcb, p))
		return forward_behind_adopt(p, owner);
	return forward(p, owner);
}

#endif
