/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A copy of a frame for user space, in a ring. */
#ifndef BATON_CS_COPY_H
#define BATON_CS_COPY_H

#include "packet.h"
#include "../bounds.h"

/* Room in a ring is asked for in one of two sizes, `room`, a constant, as the verifier wants it. */
static __always_inline struct punted *copy_into(struct xdp_md *ctx, u32 bytes, void *ring, const u32 room)
{
	struct punted *record;

	if (bytes < sizeof(struct ethhdr) || bytes > room)
		return 0;
	record = bpf_ringbuf_reserve(ring, sizeof(*record) + room, 0);
	if (!record)
		return 0;
	if (bpf_xdp_load_bytes(ctx, 0, record + 1, BOUNDED(bytes, 1, room))) {
		bpf_ringbuf_discard(record, 0);
		return 0;
	}
	return record;
}

static __noinline struct punted *copy_short_frame(struct xdp_md *ctx, u32 bytes, void *ring)
{
	return copy_into(ctx, bytes, ring, PUNT_FRAME_BYTES);
}

static __noinline struct punted *copy_long_frame(struct xdp_md *ctx, u32 bytes, void *ring)
{
	return copy_into(ctx, bytes, ring, PUNT_JUMBO_BYTES);
}

/* `bytes` of it, which the caller has seen to be no more than PUNT_JUMBO_BYTES. 0: the ring is full. */
static __always_inline struct punted *copy_frame(struct packet *p, u32 bytes, void *ring)
{
	struct punted *record = bytes <= PUNT_FRAME_BYTES ? copy_short_frame(p->ctx, bytes, ring)
							  : copy_long_frame(p->ctx, bytes, ring);

	if (!record)
		return 0;
	record->time = bpf_ktime_get_coarse_ns();
	record->interface = client_interface(p, p->frame.eth->h_dest);
	record->bytes = bytes;
	return record;
}

#endif
