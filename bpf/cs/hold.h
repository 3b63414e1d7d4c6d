/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Another connection server takes over. Just before, what begins a request waits: user space keeps it until
 * the other one has all entries. So no entry changes after it has been copied for the last time but in what
 * the next packet says anyway, and the other one knows where each next request begins. What begins no request
 * goes on as ever: acknowledgements of downloads, bodies, pinned connections.
 *
 * Then all that clients send is passed on to it, as by the switch; what has waited, too, which user space
 * runs through this program again. That lasts until well after the LAN has learned where the cluster address
 * is now: who of two connection servers saw only some of the requests would have to pin their connections.
 */
#ifndef BATON_CS_HOLD_H
#define BATON_CS_HOLD_H

#include "copy.h"
#include "inside.h"
#include "packet.h"
#include "tcb.h"
#include "verdict.h"

/* The daemon says until when, so that a daemon that has died holds nobody up for long. */
static __always_inline bool is_on_hold(void)
{
	return hold.until && bpf_ktime_get_coarse_ns() < hold.until;
}

/* Whether a packet of a connection with an entry has data of its next request, which may have to wait. */
static __always_inline bool is_of_next_request(const struct packet *p, const struct tcb *tcb)
{
	u32 end = bpf_ntohl(p->frame.tcp->seq) + p->frame.payload;

	return (int)(end - tcb->last_seq) > 0 && (int)(end - tcb->next_request) > 0;
}

/* Whether this goes on to the one that takes over: everything for a service does, also what begins anew. */
static __always_inline bool passes_on(struct packet *p)
{
	return hold.passes_on && is_on_hold() && service_at(p->frame.ip->daddr, p->frame.tcp->dest);
}

static __noinline int pass_on_to_next(struct packet *p)
{
	const struct data_server *to = (const struct data_server *)&hold.to;

	count(p->counters, COUNTER_CS_PASSED_ON);
	if (!fits_in_frame(p))
		address_frame(p->frame.eth, to);
	else if (!put_inside(p, to))
		return drop(p, COUNTER_CS_NO_ROOM);
	return send(p->ctx, to);
}

/* A copy waits: what is dropped here has not been seen. */
static __noinline int hold_back(struct packet *p)
{
	u32 bytes = sizeof(struct ethhdr) + p->frame.ip_bytes;
	struct punted as = { .bytes = bytes };

	return drop(p, !was_carried(p) && bytes <= PUNT_JUMBO_BYTES && copy_frame(p->ctx, RING_HELD, &as) ? COUNTER_CS_HELD
										       : COUNTER_CS_HELD_LOST);
}

#endif
