/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What doors count: requests that are let in, connections that go to other data servers, and bytes of responses, each for the
 * route and the pool of its request, and for this data server. Connection servers count none of it (connection_server/tally.h): they are told
 * by this one's daemon.
 *
 * A request counts once it has a socket. Bytes of a response are what its client has acknowledged until the next request, as
 * far as TCP has sent so much; of a long one each time that it is a MB, and of the last one when either end closes. So a plain
 * acknowledgement costs a subtraction. A connection that ends without a packet of its client, or stays quiet, has its last
 * response's last MB not counted.
 */
#ifndef BATON_DATA_SERVER_DOOR_TALLY_H
#define BATON_DATA_SERVER_DOOR_TALLY_H

#include "data_server/door/door.h"
#include "data_server/packet.h"
#include "include/maps.h"

enum {
	SETTLE_AT_DOOR = 1 << 20, /* bytes: far from where 32 bits come round */
};

/* What there is to count besides bytes. */
enum at_door_event {
	COUNT_BYTES = 0,
	COUNT_REQUEST = 1,
	COUNT_HANDOVER = 2,
	COUNT_UNAVAILABLE = 4,     /* a request, too */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, DOOR_TALLIES);
	__type(key, u32);
	__type(value, struct door_tally);
} door_tallies SEC(".maps");

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

/* Numbers that are none count for this data server alone. Global, so that it is verified by itself and once. */
__noinline int tally_at_door(u32 route, u32 pool, u32 bytes, u32 event)
{
	if (route < TALLIED_ROUTES)
		tally_place(DOOR_TALLY_ROUTES + route, bytes, event);
	if (pool < MAX_POOLS)
		tally_place(DOOR_TALLY_POOLS + pool, bytes, event);
	tally_place(DOOR_TALLY_ALL, bytes, event);
	return 0;
}

/* What the client has acknowledged, if this packet comes to TCP. */
static __always_inline u32 acknowledged(const struct tcp_sock *tcp, const struct inner *in)
{
	u32 ack = bpf_ntohl(in->tcp.ack_seq);

	return in->tcp.ack && is_before(tcp->snd_una, ack) && !is_before(tcp->snd_nxt, ack) ? ack : tcp->snd_una;
}

/* What of it was not counted yet. Packets may come by several processors: one of them counts it. */
static __always_inline u32 take_uncounted(struct door *d, u32 ack)
{
	u32 before = d->counted, bytes = ack - before;

	if ((int)bytes <= 0 || __sync_val_compare_and_swap(&d->counted, before, ack) != before)
		return 0;
	return bytes;
}

/* Counts it for the request that was let in last. What the agent says itself counts for nobody. */
static __noinline void settle_at_door(struct door *d, const struct tcp_sock *tcp, const struct inner *in)
{
	if (!d || !tcp || d->flags & DOOR_READING)
		return;
	u32 bytes = take_uncounted(d, acknowledged(tcp, in));
	if (bytes && d->pool != NO_POOL)
		tally_at_door(d->route, d->pool, bytes, COUNT_BYTES);
}

/* Whether a packet is one to count at: enough was acknowledged, or it may be one of the last. */
static __always_inline bool is_to_settle(const struct bpf_sock *sk, const struct tcp_sock *tcp, const struct door *d,
					 const struct inner *in)
{
	return tcp->snd_una - d->counted >= SETTLE_AT_DOOR || sk->state != STATE_ESTABLISHED || in->tcp.fin || in->tcp.rst;
}

/* A further request takes this route to this pool. */
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
