/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Doors count requests that are let in, connections that go to other data servers, and bytes of responses, each for the
 * route and the pool of its request, and for this data server. Connection servers count none of this
 * (connection_server/tally.h): this data server's daemon tells them.
 *
 * A request counts once it has a socket. The bytes of a response are what its client has acknowledged until the next
 * request, as far as TCP has sent so much. Those of a long response are counted each time that they are a MiB, those of
 * the last one when either end closes. So a plain acknowledgement costs one subtraction. If a connection ends without a
 * packet of its client, or stays quiet, the last MiB of its last response is not counted.
 */
#ifndef BATON_DATA_SERVER_DOOR_TALLY_H
#define BATON_DATA_SERVER_DOOR_TALLY_H

#include "data_server/door/door.h"
#include "data_server/packet.h"
#include "include/maps.h"

enum {
	SETTLE_AT_DOOR = 1 << 20, /* bytes: far below where 32 bits wrap around */
};

/* What there is to count besides bytes. */
enum at_door_event {
	COUNT_BYTES = 0,
	COUNT_REQUEST = 1,
	COUNT_HANDOVER = 2,
	COUNT_UNAVAILABLE = 4,     /* this counts as a request, too */
};

MAP(door_tallies, PERCPU_ARRAY, DOOR_TALLIES, u32, struct door_tally);

static __always_inline void tally_place(u32 place, u32 bytes, u32 event)
{
	struct door_tally *t = bpf_map_lookup_elem(&door_tallies, &place);

	if (!t)
		return;
	t->bytes += bytes;
	if (event & (COUNT_REQUEST | COUNT_UNAVAILABLE))
		t->requests++;
	if (event & COUNT_HANDOVER)
		t->handovers++;
	if (event & COUNT_UNAVAILABLE)
		t->unavailable++;
}

/*
 * Counts for a route, a pool and this data server. A number that names no route or no pool counts for this data server
 * alone. The function is global, so that it is verified by itself and once.
 */
__noinline int tally_at_door(u32 route, u32 pool, u32 bytes, u32 event)
{
	if (route < TALLIED_ROUTES)
		tally_place(DOOR_TALLY_ROUTES + route, bytes, event);
	if (pool < MAX_POOLS)
		tally_place(DOOR_TALLY_POOLS + pool, bytes, event);
	tally_place(DOOR_TALLY_ALL, bytes, event);
	return 0;
}

/* Returns the sequence number up to which the client has acknowledged, once TCP has this packet. */
static __always_inline u32 acknowledged(const struct tcp_sock *tcp, const struct inner *in)
{
	u32 ack = bpf_ntohl(in->tcp.ack_seq);

	return in->tcp.ack && is_before(tcp->snd_una, ack) && !is_before(tcp->snd_nxt, ack) ? ack : tcp->snd_una;
}

/*
 * Returns how many bytes before `ack` were not counted yet, and marks them as counted. Packets may come to several
 * processors at the same time: one of them counts the bytes.
 */
static __always_inline u32 take_uncounted(struct door *d, u32 ack)
{
	u32 before = d->counted, bytes = ack - before;

	if ((int)bytes <= 0 || __sync_val_compare_and_swap(&d->counted, before, ack) != before)
		return 0;
	return bytes;
}

/* Counts acknowledged bytes for the request that was let in last. What the agent says itself counts for nobody. */
static __noinline void settle_at_door(struct door *d, const struct tcp_sock *tcp, const struct inner *in)
{
	if (!d || !tcp || d->flags & DOOR_READING)
		return;
	u32 bytes = take_uncounted(d, acknowledged(tcp, in));
	if (bytes && d->pool != NO_POOL)
		tally_at_door(d->route, d->pool, bytes, COUNT_BYTES);
}

/*
 * Whether bytes are to be counted at this packet: enough was acknowledged, or it may be one of the connection's last.
 */
static __always_inline bool is_to_settle(const struct bpf_sock *sk, const struct tcp_sock *tcp, const struct door *d,
					 const struct inner *in)
{
	return tcp->snd_una - d->counted >= SETTLE_AT_DOOR || sk->state != STATE_ESTABLISHED || in->tcp.fin || in->tcp.rst;
}

/* Counts a further request, which takes this route to this pool, and the bytes that were acknowledged before it. */
static __noinline void tally_next(struct door *d, const struct tcp_sock *tcp, const struct inner *in, u32 route, u32 pool)
{
	if (!d || !tcp)
		return;
	u32 bytes = 0;
	if (d->route == route && d->pool == pool)
		bytes = take_uncounted(d, acknowledged(tcp, in));
	else
		settle_at_door(d, tcp, in);
	tally_at_door(route, pool, bytes, COUNT_REQUEST);
}

#endif
