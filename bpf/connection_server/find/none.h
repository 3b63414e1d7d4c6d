/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* NONE: a connection is not where the connection server believed it to be. */
#ifndef BATON_CONNECTION_SERVER_FIND_NONE_H
#define BATON_CONNECTION_SERVER_FIND_NONE_H

#include "connection_server/find/answer.h"
#include "connection_server/find/claim.h"

enum {
	TCB_NOT_SURELY_THERE = TCB_ADOPTING | TCB_RESUMING | TCB_FIN | TCB_RST,
};

/*
 * Whether the packet may have come to its owner ahead of the ADOPT, as more of the first request does if another
 * processor there has it. It is sent there once more. The owner sends no second NONE for it.
 */
static __always_inline bool came_ahead(const struct tcb *tcb)
{
	return (tcb->state & (TCB_ADOPTING | TCB_RESUMING)) == TCB_ADOPTING;
}

/*
 * Handles NONE. If it comes from the entry's owner, the connection has gone on, and CLAIM finds out where. There is no
 * CLAIM while the connection is being adopted, because its owner may be about to have it, and none after the client
 * has ended it.
 */
static __noinline int none(struct packet *p, struct lccp_header *h)
{
	struct tcb *tcb = answered_entry(p, h);

	if (h->tcb.attempt)
		return unclaimed(p);
	if (!tcb || !is_from(p, tcb->owner))
		return drop(p, COUNTER_LCCP_MISMATCH);
	const struct data_server *owner = data_server(tcb->owner);
	if (owner && came_ahead(tcb)) {
		h->tcb.attempt = 1;
		count(p->counters, COUNTER_CS_AHEAD);
		return send_on(p, h, owner, LCCP_FORWARD, 0);
	}
	count(p->counters, COUNTER_CS_NONE);
	return tcb->state & TCB_NOT_SURELY_THERE ? XDP_DROP : claim_anew(p, h);
}

#endif
