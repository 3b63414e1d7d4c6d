/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Idle connections of data servers that drain, looked for by the daemon every second: they would stay until
 * their next request, which may never come. Nothing is in flight on them as far as this node knows; the owner,
 * who knows for sure, has the last word (see ds/release.h).
 */
#ifndef BATON_CS_IDLE_H
#define BATON_CS_IDLE_H

#include "tcb.h"

struct bpf_map;

struct idle_search {
	u32 now;
	struct idle_walk walk;
};

static __always_inline bool drains(const struct idle_walk *walk, u16 server)
{
	return server < MAX_DATA_SERVERS && walk->draining[server / 64 & 3] >> (server & 63) & 1;
}

/*
 * Between two requests: of the last one all is sent and some of the answer acknowledged, and no packet has come
 * for so long that the answer is taken for whole.
 */
static __always_inline bool is_idle(const struct tcb *tcb)
{
	return !(tcb->state & ~TCB_RELEASED) && !(tcb->options & LCCP_TCB_PIPELINED) &&
	       tcb->last_seq == tcb->next_request;
}

/* Its last owner has been asked once, and packets go by it. */
static __always_inline bool is_being_released(const struct tcb *tcb)
{
	return tcb->state == (TCB_ADOPTING | TCB_RELEASED);
}

static long look_for_idle(struct bpf_map *map, struct tcb_key *flow, struct tcb *tcb, struct idle_search *s)
{
	struct idle_flow found = { .seq = tcb->last_seq, .ack = tcb->last_ack };
	u32 age = s->now - tcb->seen;

	/* Another processor may have noted a packet after `now` was read. */
	if ((int)age < 0)
		age = 0;
	found.flow = *flow;
	if (is_being_released(tcb) && drains(&s->walk, tcb->previous)) {
		bpf_map_push_elem(&idle_flows, &found, BPF_ANY);
		return 0;
	}
	if (!drains(&s->walk, tcb->owner) || tcb->state & (TCB_FIN | TCB_RST))
		return 0;
	if (tcb->state & TCB_PINNED) {
		s->walk.pinned++;
		return 0;
	}
	if (!is_idle(tcb) || age < s->walk.quiet_ticks) {
		s->walk.busy++;
		return 0;
	}
	if (!bpf_map_push_elem(&idle_flows, &found, BPF_ANY))
		s->walk.idle++;
	return 0;
}

SEC("syscall")
int baton_idle(struct idle_walk *walk)
{
	struct idle_search s = { .now = bpf_ktime_get_ns() >> TICK_SHIFT, .walk = *walk };

	bpf_for_each_map_elem(&tcbs, look_for_idle, &s, 0);
	walk->idle = s.walk.idle;
	walk->pinned = s.walk.pinned;
	walk->busy = s.walk.busy;
	return 0;
}

#endif
