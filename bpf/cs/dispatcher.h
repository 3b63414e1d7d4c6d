/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The dispatcher: decides which data server. The daemon computes the choices, this picks one. */
#ifndef BATON_CS_DISPATCHER_H
#define BATON_CS_DISPATCHER_H

#include "packet.h"

/* MurmurHash3's finalizer: every input bit reaches every output bit. */
static __always_inline u32 mix(u32 h)
{
	h ^= h >> 16;
	h *= 0x85ebca6b;
	h ^= h >> 13;
	h *= 0xc2b2ae35;
	return h ^ h >> 16;
}

static __always_inline u32 hash_client(const u8 *client, u32 seed)
{
	const u32 *words = (const u32 *)client;

	return mix(mix(mix(mix(seed ^ words[0]) ^ words[1]) ^ words[2]) ^ words[3]);
}

static __always_inline u32 next_turn(const struct service *service)
{
	u32 id = service->id;
	u64 *turn = bpf_map_lookup_elem(&turns, &id);

	return turn ? __sync_fetch_and_add(turn, 1) : 0;
}

static __always_inline void count_adoption(u32 owner)
{
	u64 *adopted = bpf_map_lookup_elem(&adoptions, &owner);

	if (adopted)
		(*adopted)++;
}

/* NO_DATA_SERVER if there is none. `attempt` leads past a choice that was refused. */
static __always_inline u16 choose(const struct service *service, const struct tcb_key *flow, u32 attempt)
{
	u32 choices_set = service->choices;

	if (!choices_set)
		return NO_DATA_SERVER;
	u32 turn = service->policy == POLICY_TURN ? next_turn(service)
						  : hash_client(flow->client, service->hash_seed + attempt);
	u32 index = service->first_choice + turn % choices_set;
	u16 *choice = bpf_map_lookup_elem(&choices, &index);
	return choice ? *choice : NO_DATA_SERVER;
}

#endif
