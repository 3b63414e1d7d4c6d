/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tallies: what each route, pool and data server had to do. Counted where a request is decided and where
 * an entry ends, never for a packet that is just forwarded. Responses do not come by here: their bytes
 * are what clients have acknowledged.
 *
 * What owners see to they count themselves (data_server/door/tally.h). Here only requests count then that no owner will ever see, and who
 * is given connections.
 */
#ifndef BATON_CONNECTION_SERVER_TALLY_H
#define BATON_CONNECTION_SERVER_TALLY_H

#include "include/bounds.h"
#include "include/kernel.h"
#include "include/maps.h"

enum {
	/* A download is counted by so much at a time: far from where 32 bits come round. */
	SETTLE_BYTES = 1 << 20,
};

static __always_inline struct tally *tally_at(u32 place)
{
	return bpf_map_lookup_elem(&tallies, &place);
}

static __always_inline struct tally *route_tally(u16 route)
{
	return tally_at(TALLY_ROUTES + route);
}

static __always_inline struct tally *pool_tally(u16 pool)
{
	return tally_at(TALLY_POOLS + pool);
}

static __always_inline struct tally *server_tally(u16 server)
{
	return tally_at(TALLY_DATA_SERVERS + server);
}

/* The map has all places, but the verifier wants to see it. */
#define TALLY(whose, field)                                                                            \
	do {                                                                                           \
		struct tally *_whose = (whose);                                                        \
		if (_whose)                                                                            \
			_whose->field++;                                                               \
	} while (0)

static __always_inline void tally_request(u16 route, u16 pool)
{
	TALLY(route_tally(route), requests);
	TALLY(pool_tally(pool), requests);
}

/* A request that nobody was there to answer. */
static __always_inline void tally_unavailable(u16 route, u16 pool)
{
	TALLY(route_tally(route), unavailable);
	TALLY(pool_tally(pool), unavailable);
}

static __always_inline bool is_at_door(const struct tcb *tcb)
{
	return tcb->state & TCB_AT_DOOR;
}

/* A data server is given a connection, and the request on it; `at_door`: it counts that itself. */
static __always_inline void tally_connection(u16 server, bool at_door)
{
	struct tally *t = server_tally(server);

	if (t) {
		t->requests += !at_door;
		t->connections++;
	}
}

/* What the client has acknowledged since bytes were counted last. */
static __always_inline u32 uncounted(struct tcb *tcb, u32 ack)
{
	int bytes = ack - tcb->counted;

	if (bytes <= 0 || is_at_door(tcb))
		return 0;
	tcb->counted = ack;
	return bytes;
}

/* Counts it for those that the entry names: before it names others, and at its end. */
static __noinline void settle(struct tcb *tcb, u32 ack)
{
	u32 bytes = uncounted(tcb, ack);

	if (!bytes)
		return;
	struct tally *route = route_tally(tcb->route);
	struct tally *pool = pool_tally(tcb->pool);
	struct tally *server = server_tally(tcb->owner);
	if (route)
		route->bytes += bytes;
	if (pool)
		pool->bytes += bytes;
	if (server)
		server->bytes += bytes;
}

#endif
