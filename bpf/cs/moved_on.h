/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The entry of a connection that its owner has handed on: by a message (moved.h), or on this very node (ds/owner.h). */
#ifndef BATON_CS_MOVED_ON_H
#define BATON_CS_MOVED_ON_H

#include "tally.h"
#include "tcb.h"

/* To data server `next`, with this packet. */
static __always_inline void note_moved_on(struct tcb *tcb, u16 next, const struct tcphdr *tcp)
{
	tally_connection(next, true);
	give_to(tcb, next, NO_DATA_SERVER, 1);
	/* Until its client has something of the response, the request that comes again is adopted, should it not have been. */
	if (bpf_ntohl(tcp->ack_seq) == tcb->last_ack) {
		tcb->request_seq = bpf_ntohl(tcp->seq);
		tcb->state |= TCB_ADOPTING | TCB_WAITING;
	}
}

#endif
