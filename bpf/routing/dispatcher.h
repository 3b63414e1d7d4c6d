/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The dispatcher: chooses a data server. The daemon computes the choices of a pool, and this code picks one of them. */
#ifndef BATON_ROUTING_DISPATCHER_H
#define BATON_ROUTING_DISPATCHER_H

#include "include/flow.h"
#include "include/hash.h"
#include "routing/route.h"

static __always_inline u32 next_turn(u32 pool)
{
	u64 *turn = bpf_map_lookup_elem(&turns, &pool);

	return turn ? __sync_fetch_and_add(turn, 1) : 0;
}

static __always_inline const struct pool *pool_at(u32 index)
{
	return bpf_map_lookup_elem(&pools, &index);
}

static __always_inline bool is_member(const struct pool *pool, u16 server)
{
	return server < MAX_DATA_SERVERS && pool->members[server / 64 & 3] >> (server & 63) & 1;
}

/*
 * Whether a connection stays with its data server for a request of this pool, if that data server is a member.
 * `before` is the pool of the connection's last request, and `generation` the pool's generation at that time. If the
 * pool has got new members since, a data server is chosen once more.
 */
static __always_inline bool stays(const struct pool *pool, u32 index, u16 before, u16 generation)
{
	bool is_settled = before != index || generation == pool->generation;

	return is_settled && !(pool->flags & POOL_PER_REQUEST) && pool->policy != POLICY_PATH;
}

/* Whether the dispatcher of this service, on another node, counts as dead for now. */
static __always_inline bool dispatcher_rests(u32 service)
{
	u64 *until = bpf_map_lookup_elem(&resting, &service);

	return until && bpf_ktime_get_coarse_ns() < *until;
}

/* A different hash of the path for each number. All are as hard to predict as `path`, the first hash. */
static __always_inline u64 hash_path_again(u64 path, u32 number)
{
	u64 hash = (path ^ number) * 0x9e3779b97f4a7c15ULL;

	return hash ^ hash >> 32;
}

/* The number that indexes the pool's choices: a turn, or a hash that is the same for the same client or path. */
static __always_inline u32 place(const struct pool *pool, u32 index, const struct tcb_key *flow,
				 const struct request *r, u32 attempt)
{
	switch (pool->policy) {
	case POLICY_CLIENT:
		return hash_client(flow->client, pool->hash_seed + attempt);
	case POLICY_PATH:
		if (r && (r->path || r->target))
			return hash_path_again(hash_request(r), pool->hash_seed + attempt);
		/* No path is known, so any data server will do. */
	default:
		return next_turn(index);
	}
}

/*
 * Chooses a data server of the pool; NO_DATA_SERVER if it has none. `r` is the request, or 0 if it is not known. A
 * higher `attempt` leads past a choice that was refused.
 */
static __always_inline u16 choose(const struct pool *pool, u32 index, const struct tcb_key *flow,
				  const struct request *r, u32 attempt)
{
	if (!pool->choices)
		return NO_DATA_SERVER;
	u32 at = pool->first_choice + place(pool, index, flow, r, attempt) % pool->choices;
	u16 *choice = bpf_map_lookup_elem(&choices, &at);
	return choice ? *choice : NO_DATA_SERVER;
}

enum {
	OTHER_TRIES = 64, /* one of two members is not chosen so often by chance */
};

struct other_choice {
	const struct tcb_key *flow;
	u32 pool;
	u32 attempt;
	u16 refuser;
	u16 found;
};

static long try_other(u32 index, struct other_choice *c)
{
	const struct pool *pool = pool_at(c->pool);

	c->found = pool ? choose(pool, c->pool, c->flow, 0, c->attempt + index) : NO_DATA_SERVER;
	return c->found != c->refuser;
}

/* Chooses a data server of the pool other than `refuser`. Returns `refuser` if the pool seems to have no other. */
static __always_inline u16 choose_other(u32 pool, const struct tcb_key *flow, u16 refuser, u32 attempt)
{
	struct other_choice c = {
		.flow = flow,
		.pool = pool,
		.attempt = attempt,
		.refuser = refuser,
		.found = NO_DATA_SERVER,
	};

	bpf_loop(OTHER_TRIES, try_other, &c, 0);
	return c.found;
}

#endif
