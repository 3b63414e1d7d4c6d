/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connections that are about to go to another data server in the middle of a response: see yield.h. */
#ifndef BATON_DATA_SERVER_HANDOVER_YIELDING_H
#define BATON_DATA_SERVER_HANDOVER_YIELDING_H

#include "data_server/packet.h"

enum {
	YIELD_LASTS_NS = 1000000000, /* how long a connection yields without another YIELD */
	/*
	 * What the client sent before may still be on its way through the kernel, and would open the window. It is not
	 * on its way for so long.
	 */
	YIELD_LEAST_NS = 10000000,
};

static __always_inline bool any_yields(void)
{
	u32 zero = 0;
	u64 *until = bpf_map_lookup_elem(&yielding_until, &zero);

	return until && *until && bpf_ktime_get_coarse_ns() < *until;
}

static __always_inline struct yielding *find_yielding(const struct tcb_key *flow)
{
	if (!any_yields())
		return 0;
	struct yielding *y = bpf_map_lookup_elem(&yields, flow);
	return y && bpf_ktime_get_ns() < y->until ? y : 0;
}

/*
 * Notes that a packet of a connection that yields has come plain: its connection server sent it before it knew. It is
 * delivered with its own window, so the least time (YIELD_LEAST_NS) begins again.
 */
static __noinline void note_straight(const struct iphdr *ip, const struct tcphdr *tcp)
{
	struct tcb_key flow = {};

	name_flow(&flow, ip->saddr, tcp->source, ip->daddr, tcp->dest);
	struct yielding *y = bpf_map_lookup_elem(&yields, &flow);
	if (y)
		y->since = bpf_ktime_get_ns();
}

#endif
