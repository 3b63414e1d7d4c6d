/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Expiry of TCB entries, run by the daemon every few seconds: a walk in the kernel, no copies. */
#ifndef BATON_CONNECTION_SERVER_DAEMON_SWEEP_H
#define BATON_CONNECTION_SERVER_DAEMON_SWEEP_H

#include "connection_server/tcb.h"

struct walk {
	u32 now;
	struct sweep sweep;
};

struct bpf_map;

/*
 * Counts the last bytes of a response behind which no request has come. The connection is quiet, so no other processor
 * counts the same bytes. But a packet of another connection may be counted in the same tally between two instructions
 * here, so the additions are atomic.
 */
static __always_inline void settle_quiet(struct tcb *tcb)
{
	int bytes = tcb->last_ack - tcb->counted;
	struct tally *tallies_of[] = { route_tally(tcb->route), pool_tally(tcb->pool),
				       server_tally(tcb->owner) };

	if (bytes <= 0 || is_at_door(tcb))
		return;
	tcb->counted += bytes;
	for (int i = 0; i < 3; i++)
		if (tallies_of[i])
			__sync_fetch_and_add(&tallies_of[i]->bytes, bytes);
}

enum {
	/*
	 * How long an aware client's entry is kept. If no packet comes for so long, the client sends to its data
	 * server itself, or its packets were lost.
	 */
	AWARE_TICKS = 8,
};

static __always_inline u32 life_of(const struct tcb *tcb, const struct sweep *sweep)
{
	u32 life = tcb->state & (TCB_FIN | TCB_RST) ? sweep->closing_ticks : sweep->idle_ticks;

	return tcb->options & LCCP_TCB_AWARE && life > AWARE_TICKS ? AWARE_TICKS : life;
}

static long sweep_entry(struct bpf_map *map, struct tcb_key *flow, struct tcb *tcb, struct walk *walk)
{
	u32 age = walk->now - tcb->seen;
	u32 limit = life_of(tcb, &walk->sweep);

	if ((int)age > 1)
		settle_quiet(tcb);
	/*
	 * Another processor may have noted a packet after `now` was read. Then the age is negative, and the entry is
	 * not old.
	 */
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

/* Removes old entries, and counts the others by owner in the map `flows`, which the daemon sets to zero before. */
SEC("syscall")
int baton_sweep(struct sweep *sweep)
{
	/* The same clock as that of tick_now(). A program of this type may not read the coarse one. */
	struct walk walk = { .now = bpf_ktime_get_ns() >> TICK_SHIFT, .sweep = *sweep };

	bpf_for_each_map_elem(&tcbs, sweep_entry, &walk, 0);
	sweep->live = walk.sweep.live;
	sweep->expired = walk.sweep.expired;
	return 0;
}

#endif
