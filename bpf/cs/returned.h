/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* KEEP and NONE: a connection is not where the connection server believed it to be. */
#ifndef BATON_CS_RETURNED_H
#define BATON_CS_RETURNED_H

#include "answer.h"
#include "claim.h"

static __always_inline void swap_owners(struct tcb *tcb)
{
	u16 owner = tcb->owner;

	tcb->owner = tcb->previous;
	tcb->previous = owner;
}

/*
 * The owner refused a handover and has delivered the request itself, or a RELEASE, which was about none: it
 * stays the owner. Late, when the connection has moved on, this is wrong, and the next packet's NONE takes it
 * back.
 */
static __noinline int kept(struct packet *p, struct lccp_header *h)
{
	struct tcb *tcb = answered_entry(p, h);

	if (!tcb || !is_from(p, tcb->previous))
		return drop(p, COUNTER_LCCP_MISMATCH);
	swap_owners(tcb);
	if (h->be_data != bpf_htonl(LCCP_KEEP_BUSY))
		tally_kept(tcb, bpf_ntohl(h->be_data));
	tcb->state &= ~(TCB_ADOPTING | TCB_RELEASED);
	return drop(p, COUNTER_CS_KEPT);
}

/*
 * The owner does not have the connection. If there was a handover, one of its messages was lost: the one
 * before is the owner, and gets the packet. A packet that comes back a second time ends here, and the
 * client's next one tries again. Where nobody had it before, another connection server has moved it
 * on: CLAIM finds it. Not while it is being adopted, because then its owner may be about to have it;
 * and not when the client has ended it.
 */
static __noinline int none(struct packet *p, struct lccp_header *h)
{
	struct tcb *tcb = answered_entry(p, h);

	if (!tcb && h->tcb.attempt)
		return unclaimed(p);
	if (!tcb || !is_from(p, tcb->owner))
		return drop(p, COUNTER_LCCP_MISMATCH);
	count(p->counters, COUNTER_CS_NONE);
	const struct data_server *to = data_server(tcb->previous);
	if (!to || !(to->flags & DATA_SERVER_PRESENT))
		return tcb->state & (TCB_ADOPTING | TCB_RESUMING | TCB_FIN | TCB_RST) ? XDP_DROP : claim_anew(p, h);
	swap_owners(tcb);
	bool again = h->tcb.attempt++;
	if (again)
		tally_moved(tcb->previous, tcb->owner);
	else
		tally_none(tcb);
	/* Somebody has answered the request: should it be neither of the two, they are not asked in turns. */
	if (!(tcb->state & TCB_ADOPTING))
		tcb->previous = NO_DATA_SERVER;
	return again ? XDP_DROP : send_on(p, h, to, LCCP_FORWARD, 0);
}

#endif
