/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Chooses the connection server of a packet. A hash of the client's address and both ports, under a seed that is a
 * secret of the cluster, selects a place in the daemon's table. Most places have one connection server, and nothing is
 * remembered. Where a connection server took the place of another one that still works, older connections stay with
 * that other one. Connections that have begun since are remembered in `begun`, until the place changes again: a
 * connection server that leaves and comes back must not get connections that went on elsewhere in between. A wrong
 * choice costs a CLAIM and no connection, so entries of `begun` may get lost.
 */
#ifndef BATON_SWITCH_MAGLEV_SLOT_H
#define BATON_SWITCH_MAGLEV_SLOT_H

#include "include/flow.h"
#include "include/hash.h"

/* A connection server, and the counter that says why it was chosen. */
struct direction {
	u16 server;
	enum counter why;
};

static __always_inline const struct maglev_slot *place_of(const struct packet *p)
{
	u32 ports = (u32)p->flow.be_client_port << 16 | p->flow.be_cluster_port;
	u32 at = hash_client(p->flow.client, ports ^ p->settings->hash_seed) % CHOICES_PER_POOL;

	return bpf_map_lookup_elem(&places, &at);
}

/* Where a connection begins, of which this is the SYN. */
static __always_inline struct direction where_it_begins(struct packet *p, const struct maglev_slot *place)
{
	u32 turn = place->turn;

	if (place->now != place->before)
		bpf_map_update_elem(&begun, &p->flow, &turn, BPF_ANY);
	return (struct direction){ place->now, COUNTER_SWITCH_SYN };
}

/* Where a connection is that has begun before this packet. */
static __always_inline struct direction where_it_is(struct packet *p, const struct maglev_slot *place)
{
	if (place->now == place->before)
		return (struct direction){ place->now, COUNTER_SWITCH_FORWARD };
	u32 *turn = bpf_map_lookup_elem(&begun, &p->flow);
	if (!turn || *turn != place->turn)
		return (struct direction){ place->before, COUNTER_SWITCH_KEPT };
	return (struct direction){ place->now, COUNTER_SWITCH_BEGUN };
}

#endif
