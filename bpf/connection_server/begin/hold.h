/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The last steps before another connection server takes over. First, packets that begin a connection wait: user space
 * keeps them until the other connection server has all entries, so that no entry is made after the last one was
 * copied. Packets of existing connections are forwarded as ever.
 *
 * Then everything that clients send is passed on to the other connection server, in the way the switch does it. The
 * packets that have waited go the same way: user space runs them through this program again. That lasts until well
 * after the LAN has learned the new place of the cluster address.
 */
#ifndef BATON_CONNECTION_SERVER_BEGIN_HOLD_H
#define BATON_CONNECTION_SERVER_BEGIN_HOLD_H

#include "connection_server/begin/punt_copy.h"
#include "connection_server/carried.h"
#include "connection_server/tcb.h"
#include "xdp/add_switch_header.h"
#include "xdp/packet.h"

/*
 * Whether packets that begin a connection wait. The daemon sets a time limit, so a daemon that dies holds nobody up
 * for long.
 */
static __always_inline bool is_on_hold(void)
{
	return hold.until && bpf_ktime_get_coarse_ns() < hold.until;
}

/*
 * Whether this packet goes to the connection server that takes over: all packets for a service do, new connections
 * included.
 */
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

/* Drops the packet and leaves a copy of it to user space, where it waits. No entry has noted the packet. */
static __noinline int hold_back(struct packet *p)
{
	u32 bytes = sizeof(struct ethhdr) + p->frame.ip_bytes;
	bool is_kept = !was_carried(p->ctx) && bytes <= HELD_JUMBO_BYTES && copy_frame(p->ctx, bytes);

	return drop(p, is_kept ? COUNTER_CS_HELD : COUNTER_CS_HELD_LOST);
}

#endif
