/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which connection server. A hash of the client's address and both ports, under a seed that is a secret of the
 * cluster, is a place in the daemon's table. At most places there is one connection server, and nothing has to be
 * remembered. Where one took the place of another that still works, the connections of that one stay with it, and those
 * that have begun since are remembered, for as long as the place does not change again: who leaves and comes back must
 * not find what went on elsewhere meanwhile. To be wrong costs a CLAIM, no connection: so entries may get lost.
 */
#ifndef BATON_SWITCH_PLACE_H
#define BATON_SWITCH_PLACE_H

#include "include/flow.h"
#include "include/hash.h"

/* A connection server, and why it. */
struct direction {
	u16 server;
	enum counter why;
};

static __always_inline const struct place *place_of(const struct packet *p)
{
	u32 ports = (u32)p->flow.be_client_port << 16 | p->flow.be_cluster_port;
	u32 at = hash_client(p->flow.client, ports ^ p->settings->hash_seed) % CHOICES_PER_POOL;

	return bpf_map_lookup_elem(&places, &at);
}

static __always_inline struct direction where_it_begins(struct packet *p, const struct place *place)
{
	u32 turn = place->turn;

	if (place->now != place->before)
		bpf_map_update_elem(&begun, &p->flow, &turn, BPF_ANY);
	return (struct direction){ place->now, COUNTER_SWITCH_SYN };
}

static __always_inline struct direction where_it_is(struct packet *p, const struct place *place)
{
	if (place->now == place->before)
		return (struct direction){ place->now, COUNTER_SWITCH_FORWARD };
	u32 *turn = bpf_map_lookup_elem(&begun, &p->flow);
	if (!turn || *turn != place->turn)
		return (struct direction){ place->before, COUNTER_SWITCH_KEPT };
	return (struct direction){ place->now, COUNTER_SWITCH_BEGUN };
}

#endif
