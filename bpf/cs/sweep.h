/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Expiry of TCB entries, run by the daemon every few seconds: a walk in the kernel, no copies. */
#ifndef BATON_CS_SWEEP_H
#define BATON_CS_SWEEP_H

#include "tcb.h"

struct walk {
	u32 now;
	struct sweep sweep;
};

struct bpf_map;

static long sweep_entry(struct bpf_map *map, struct tcb_key *flow, struct tcb *tcb, struct walk *walk)
{
	u32 age = walk->now - tcb->seen;
	u32 limit = tcb->state & (TCB_FIN | TCB_RST) ? walk->sweep.closing_ticks : walk->sweep.idle_ticks;

	/* Another processor may have noted a packet after `now` was read: that is not an old entry. */
	if ((int)age > 0 && age > limit) {
		bpf_map_delete_elem(map, flow);
		walk->sweep.expired++;
		return 0;
	}
	u32 owner = tcb->owner;
	u32 *live = bpf_map_lookup_elem(&flows, &owner);
	if (live)
		(*live)++;
	walk->sweep.live++;
	return 0;
}

/* `flows` is the daemon's to zero before. */
SEC("syscall")
int baton_sweep(struct sweep *sweep)
{
	/* The same clock as tick_now(), which this program type may not read coarsely. */
	struct walk walk = { .now = bpf_ktime_get_ns() >> TICK_SHIFT, .sweep = *sweep };

	bpf_for_each_map_elem(&tcbs, sweep_entry, &walk, 0);
	sweep->live = walk.sweep.live;
	sweep->expired = walk.sweep.expired;
	return 0;
}

#endif
