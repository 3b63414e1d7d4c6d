/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which connection server. A hash of the client's address and both ports is a place in the daemon's
 * table. At most places there is one connection server, and nothing has to be remembered. Where one
 * took the place of another that still works, the connections of that one stay with it, and those that
 * have begun since are remembered. To be wrong costs a CLAIM, no connection: so entries may get lost.
 */
#ifndef BATON_SWITCH_PLACE_H
#define BATON_SWITCH_PLACE_H

#include "../cs/packet.h"
#include "../hash.h"

/* A connection server, and why it. */
struct direction {
	u16 server;
	enum counter why;
};

static __always_inline const struct place *place_of(const struct tcb_key *flow)
{
	u32 ports = (u32)flow->be_client_port << 16 | flow->be_cluster_port;
	u32 at = hash_client(flow->client, ports) % CHOICES_PER_POOL;

	return bpf_map_lookup_elem(&places, &at);
}

static __always_inline struct direction where_it_begins(struct packet *p, const struct place *place)
{
	u16 now = place->now;

	if (now != place->before)
		bpf_map_update_elem(&begun, &p->flow, &now, BPF_ANY);
	return (struct direction){ now, COUNTER_SWITCH_SYN };
}

static __always_inline struct direction where_it_is(struct packet *p, const struct place *place)
{
	u16 now = place->now, before = place->before;

	if (now == before)
		return (struct direction){ now, COUNTER_SWITCH_FORWARD };
	u16 *server = bpf_map_lookup_elem(&begun, &p->flow);
	if (!server)
		return (struct direction){ before, COUNTER_SWITCH_KEPT };
	/* One that does not work any more has left its connections to whoever gets them. */
	return (struct direction){ is_present(*server) ? *server : now, COUNTER_SWITCH_BEGUN };
}

#endif
