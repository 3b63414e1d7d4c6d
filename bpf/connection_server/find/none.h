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
 * More of the first request has come to its owner ahead of the ADOPT: another processor there may have the one than the other. It goes
 * there once more; there is no second answer to that.
 */
static __always_inline bool came_ahead(const struct tcb *tcb)
{
	return (tcb->state & (TCB_ADOPTING | TCB_RESUMING)) == TCB_ADOPTING;
}

/*
 * The owner does not have the connection: it has gone on, and CLAIM finds out where. Not while it is being adopted, because then
 * its owner may be about to have it; and not when the client has ended it.
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
