/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Copies a frame that has to wait to user space. */
#ifndef BATON_CONNECTION_SERVER_BEGIN_PUNT_COPY_H
#define BATON_CONNECTION_SERVER_BEGIN_PUNT_COPY_H

#include "include/bounds.h"
#include "xdp/packet.h"

/*
 * Copies the frame into the ring of waiting frames, with the header `as`. The verifier wants a constant size, so
 * `room` is one of two constants. False if the ring is full, or the frame cannot be read.
 */
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

/*
 * Copies `bytes` bytes of the frame, HELD_JUMBO_BYTES at most, into the ring of waiting frames. False if the ring is
 * full. The function is global, so that the verifier checks it by itself.
 */
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
