/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Verifies messages at XDP: that they are from a node of this cluster to this one. No other message reaches the
 * daemon's sockets, which have little room, and where messages that wait are heard late.
 */
#ifndef BATON_LCCP_FOR_DAEMON_H
#define BATON_LCCP_FOR_DAEMON_H

#include "lccp/seal.h"
#include "xdp/packet.h"

/*
 * Whether the message is addressed to this node. If not, the kernel routes or drops it: the daemon's sockets take
 * nothing that is to another address.
 */
static __always_inline bool is_to_this_node(struct packet *p)
{
	if (p->frame.ip->daddr == unmap_address(p->settings->address))
		return true;
	count(p->counters, COUNTER_LCCP_NOT_OURS);
	return false;
}

/* Reads the LCCP header. False if it is not all there, or if the packet has IP options, which no node sends. */
static __always_inline bool read_header(struct packet *p, struct lccp_header *h)
{
	return p->frame.ip_header == sizeof(struct iphdr) && p->frame.ip_bytes >= LCCP_OVERHEAD_BYTES &&
	       !bpf_xdp_load_bytes(p->ctx, LCCP_IN_FRAME, h, sizeof(*h));
}

static __noinline bool verify_at_xdp(struct packet *p, const struct lccp_header *h)
{
	struct lccp_carried carried;
	struct lccp_message m = {
		.ctx = p->ctx,
		.h = h,
		.carried = &carried,
		.bytes = p->frame.ip_bytes - LCCP_OVERHEAD_BYTES,
		.from = p->frame.ip->saddr,
	};

	read_carried_words(&carried, m.ctx, true, m.bytes);
	return lccp_verify(p->settings, p->counters, &m, true) != 0;
}

/* Passes a verified message to the daemon, unless its sender is over its budget. */
static __always_inline int pass_to_daemon(struct packet *p)
{
	if (is_over_budget(p->frame.ip->saddr))
		return drop(p, COUNTER_LCCP_OVER_BUDGET);
	count(p->counters, COUNTER_LCCP_TO_DAEMON);
	return XDP_PASS;
}

#endif
