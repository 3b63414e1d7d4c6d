/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tallies: the work of each route, pool and data server. They are counted where a request is routed, where an entry
 * ends, and after each SETTLE_BYTES of a long response; never for each packet that is just forwarded. Responses do not
 * pass the connection server, so their bytes are those that clients have acknowledged.
 *
 * Where owners judge the requests (data_server/door/door.h), they count them themselves (data_server/door/tally.h). The
 * connection server then counts only the requests that no owner will ever see, and the connections that each data
 * server is given.
 */
#ifndef BATON_CONNECTION_SERVER_TALLY_H
#define BATON_CONNECTION_SERVER_TALLY_H

#include "include/bounds.h"
#include "include/kernel.h"
#include "include/maps.h"

enum {
	/*
	 * A long response is counted in steps of this many bytes, far below the 2^31 from which on a difference of
	 * sequence numbers is negative.
	 */
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

/* Counts one in a tally. The map has all places, but the verifier demands the check. */
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

/* Counts a request for which no data server was available. */
static __always_inline void tally_unavailable(u16 route, u16 pool)
{
	TALLY(route_tally(route), unavailable);
	TALLY(pool_tally(pool), unavailable);
}

static __always_inline bool is_at_door(const struct tcb *tcb)
{
	return tcb->state & TCB_AT_DOOR;
}

/*
 * Counts a connection that a data server is given, and the request on it. With `at_door` the data server counts the
 * request itself.
 */
static __always_inline void tally_connection(u16 server, bool at_door)
{
	struct tally *t = server_tally(server);

	if (t) {
		t->requests += !at_door;
		t->connections++;
	}
}

/*
 * The bytes that the client has acknowledged since bytes were counted last, which are counted by this call. 0 if the
 * owner counts them.
 */
static __always_inline u32 uncounted(struct tcb *tcb, u32 ack)
{
	int bytes = ack - tcb->counted;

	if (bytes <= 0 || is_at_door(tcb))
		return 0;
	tcb->counted = ack;
	return bytes;
}

/*
 * Counts the bytes acknowledged up to `ack` for the entry's route, pool and owner. To be called when the entry ends or
 * is replaced, with FIN and RST, and each SETTLE_BYTES.
 */
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
