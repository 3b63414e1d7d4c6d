/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A copy of a frame for user space, in a ring. */
#ifndef BATON_CS_COPY_H
#define BATON_CS_COPY_H

#include "packet.h"
#include "../bounds.h"

/* Which one. */
enum copy_ring {
	RING_PUNTS,
	RING_HELD,
};

/* Room in a ring is asked for in one of two sizes, `room`, a constant, as the verifier wants it. */
static __always_inline bool copy_into(struct xdp_md *ctx, void *ring, const u32 room, const struct punted *as)
{
	struct punted *record = bpf_ringbuf_reserve(ring, sizeof(*record) + room, 0);

	if (!record)
		return false;
	if (bpf_xdp_load_bytes(ctx, 0, record + 1, BOUNDED(as->bytes, 1, room))) {
		bpf_ringbuf_discard(record, 0);
		return false;
	}
	*record = *as;
	bpf_ringbuf_submit(record, 0);
	return true;
}

/*
 * The first `as->bytes` of the frame, which are PUNT_JUMBO_BYTES at most, go into the ring behind `as`; when and where it
 * came is filled in here. False: the ring is full. Global, so that it is verified by itself.
 */
__noinline int copy_frame(struct xdp_md *ctx, u32 ring, struct punted *as)
{
	u32 zero = 0;
	const struct settings *s = bpf_map_lookup_elem(&settings, &zero);
	struct ethhdr *eth = (void *)(long)ctx->data;

	if (!as || !s || (void *)(eth + 1) > (void *)(long)ctx->data_end)
		return false;
	as->time = bpf_ktime_get_coarse_ns();
	as->interface = client_interface(ctx, s, eth->h_dest);
	if (as->bytes > PUNT_FRAME_BYTES)
		return ring == RING_HELD ? copy_into(ctx, &held, PUNT_JUMBO_BYTES, as)
					 : copy_into(ctx, &punts, PUNT_JUMBO_BYTES, as);
	return ring == RING_HELD ? copy_into(ctx, &held, PUNT_FRAME_BYTES, as)
				 : copy_into(ctx, &punts, PUNT_FRAME_BYTES, as);
}

#endif
