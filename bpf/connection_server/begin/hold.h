/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Another connection server takes over. Just before, what begins a connection waits: user space keeps it until the other one has
 * all entries, so that none is made after the last was copied. What goes on with a connection goes on as ever.
 *
 * Then all that clients send is passed on to it, as by the switch; what has waited, too, which user space
 * runs through this program again. That lasts until well after the LAN has learned where the cluster address
 * is now.
 */
#ifndef BATON_CONNECTION_SERVER_BEGIN_HOLD_H
#define BATON_CONNECTION_SERVER_BEGIN_HOLD_H

#include "connection_server/begin/punt_copy.h"
#include "connection_server/carried.h"
#include "connection_server/tcb.h"
#include "xdp/add_switch_header.h"
#include "xdp/packet.h"

/* The daemon says until when, so that a daemon that has died holds nobody up for long. */
static __always_inline bool is_on_hold(void)
{
	return hold.until && bpf_ktime_get_coarse_ns() < hold.until;
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
	bool is_kept = !was_carried(p->ctx) && bytes <= HELD_JUMBO_BYTES && copy_frame(p->ctx, bytes);

	return drop(p, is_kept ? COUNTER_CS_HELD : COUNTER_CS_HELD_LOST);
}

#endif
