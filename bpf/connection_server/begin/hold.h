/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The last two steps of a migration to another connection server. First, packets that begin a connection wait in user
 * space, so that no connection begins after the last entry was copied. Other packets are handled as usual.
 *
 * Then every TCP packet for a service goes to the other connection server, inside another Ethernet header as at the
 * switch. User space runs the packets that have waited through this program again, and they go the same way. This lasts
 * until well after the LAN has learned the new place of the cluster address.
 */
#ifndef BATON_CONNECTION_SERVER_BEGIN_HOLD_H
#define BATON_CONNECTION_SERVER_BEGIN_HOLD_H

#include "connection_server/begin/punt_copy.h"
#include "connection_server/carried.h"
#include "connection_server/tcb.h"
#include "xdp/add_switch_header.h"
#include "xdp/packet.h"

/* Whether either step is under way. The daemon sets a time limit, so that the step ends by itself if the daemon dies. */
static __always_inline bool is_on_hold(void)
{
	return hold.until && bpf_ktime_get_coarse_ns() < hold.until;
}

/*
 * Whether this packet goes to the connection server that takes over. In the second step all TCP packets for a service do,
 * also those that begin a connection.
 */
static __always_inline bool passes_on(struct packet *p)
{
	return hold.passes_on && is_on_hold() && service_at(p->frame.ip->daddr, p->frame.tcp->dest);
}

static __noinline int pass_on_to_next(struct packet *p)
{
	const struct data_server *to = (const struct data_server *)&hold.to;

	count(p->counters, COUNTER_CS_PASSED_ON);
	/* A frame that is too large for another header goes as it is: see send_plain() in switch/switch.h. */
	if (!fits_in_frame(p))
		address_frame(p->frame.eth, to);
	else if (!put_inside(p, to))
		return drop(p, COUNTER_CS_NO_ROOM);
	return send(p->ctx, to);
}

/*
 * Drops the packet, and leaves a copy in user space, where it waits. Its entry has not changed, so the copy can begin the
 * connection later. A packet that was carried in a message gets no copy: its addresses do not lead to the client.
 */
static __noinline int hold_back(struct packet *p)
{
	u32 bytes = sizeof(struct ethhdr) + p->frame.ip_bytes;
	bool has_copy = !was_carried(p->ctx) && bytes <= HELD_JUMBO_BYTES && copy_frame(p->ctx, bytes);

	return drop(p, has_copy ? COUNTER_CS_HELD : COUNTER_CS_HELD_LOST);
}

#endif
