/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A copy of a frame for user space, in a ring. */
#ifndef BATON_CS_COPY_H
#define BATON_CS_COPY_H

#include "packet.h"
#include "../bounds.h"

/* Room in a ring is asked for in one of two constant sizes, as the verifier wants it. */
struct short_record {
	struct punted head;
	u8 frame[PUNT_FRAME_BYTES];
};

struct long_record {
	struct punted head;
	u8 frame[PUNT_JUMBO_BYTES];
};

static __noinline struct punted *copy_short_frame(struct xdp_md *ctx, u32 bytes, void *ring)
{
	struct short_record *record;

	if (bytes < sizeof(struct ethhdr) || bytes > PUNT_FRAME_BYTES)
		return 0;
	record = bpf_ringbuf_reserve(ring, sizeof(*record), 0);
	if (!record)
		return 0;
	if (bpf_xdp_load_bytes(ctx, 0, record->frame, BOUNDED(bytes, 1, sizeof(record->frame)))) {
		bpf_ringbuf_discard(record, 0);
		return 0;
	}
	return &record->head;
}

static __noinline struct punted *copy_long_frame(struct xdp_md *ctx, u32 bytes, void *ring)
{
	struct long_record *record;

	if (bytes < sizeof(struct ethhdr) || bytes > PUNT_JUMBO_BYTES)
		return 0;
	record = bpf_ringbuf_reserve(ring, sizeof(*record), 0);
	if (!record)
		return 0;
	if (bpf_xdp_load_bytes(ctx, 0, record->frame, BOUNDED(bytes, 1, sizeof(record->frame)))) {
		bpf_ringbuf_discard(record, 0);
		return 0;
	}
	return &record->head;
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
