/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A copy of a frame that waits, for user space. */
#ifndef BATON_CONNECTION_SERVER_BEGIN_PUNT_COPY_H
#define BATON_CONNECTION_SERVER_BEGIN_PUNT_COPY_H

#include "include/bounds.h"
#include "xdp/packet.h"

/* Room in the ring is asked for in one of two sizes, `room`, a constant, as the verifier wants it. */
static __always_inline bool copy_into(struct xdp_md *ctx, const u32 room, const struct held_frame *as)
{
	struct held_frame *record = bpf_ringbuf_reserve(&held, sizeof(*record) + room, 0);

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

/* So many bytes of the frame, HELD_JUMBO_BYTES at most. False: the ring is full. Global, so that it is verified by itself. */
__noinline int copy_frame(struct xdp_md *ctx, u32 bytes)
{
	u32 zero = 0;
	const struct settings *s = bpf_map_lookup_elem(&settings, &zero);
	struct ethhdr *eth = (void *)(long)ctx->data;

	if (!s || (void *)(eth + 1) > (void *)(long)ctx->data_end)
		return false;
	struct held_frame as = {
		.time = bpf_ktime_get_coarse_ns(),
		.interface = client_interface(ctx, s, eth->h_dest),
		.bytes = bytes,
	};
	return bytes > HELD_FRAME_BYTES ? copy_into(ctx, HELD_JUMBO_BYTES, &as) : copy_into(ctx, HELD_FRAME_BYTES, &as);
}

#endif
