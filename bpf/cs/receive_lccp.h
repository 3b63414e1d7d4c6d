/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* LCCP at the connection server: verified, then done as commanded; the daemon's is passed up. */
#ifndef BATON_CS_RECEIVE_LCCP_H
#define BATON_CS_RECEIVE_LCCP_H

#include "moved.h"
#include "packet.h"
#include "refused.h"
#include "returned.h"
#include "../lccp.h"

static __noinline int receive_lccp(struct packet *p)
{
	struct frame *f = &p->frame;
	struct lccp_header h;

	if (f->ip_header != sizeof(struct iphdr) || f->ip_bytes < LCCP_OVERHEAD_BYTES ||
	    bpf_xdp_load_bytes(p->ctx, sizeof(struct ethhdr) + sizeof(struct iphdr), &h, sizeof(h)))
		return drop(p, COUNTER_LCCP_SHORT);
	if (h.receptor == LCCP_RECEPTOR_DAEMON) {
		count(p->counters, COUNTER_LCCP_TO_DAEMON);
		return XDP_PASS;
	}
	/* Verified once, where it is consumed: on this node that is the DS program. */
	if (h.receptor == LCCP_RECEPTOR_DS && p->settings->roles & ROLE_DS)
		return XDP_PASS;
	if (!lccp_verify(p->settings, p->counters, &h, f->ip->saddr))
		return XDP_DROP;
	if (h.receptor != LCCP_RECEPTOR_CS)
		return drop(p, COUNTER_LCCP_UNKNOWN);
	switch (h.command) {
	case LCCP_REFUSED:
		return refused(p, &h);
	case LCCP_KEEP:
		return kept(p, &h);
	case LCCP_NONE:
		return none(p, &h);
	case LCCP_MOVED:
		return moved(p, &h);
	default:
		return drop(p, COUNTER_LCCP_UNKNOWN);
	}
}

#endif
