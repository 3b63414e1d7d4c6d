/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A copy of a frame for user space, in a ring. */
#ifndef BATON_CS_COPY_H
#define BATON_CS_COPY_H

#include "packet.h"
#include "../bounds.h"

/* `bytes` of it, which the caller has seen to be some and no more than there is room for. 0: the ring is full. */
static __always_inline struct punted *copy_frame(struct packet *p, u32 bytes, void *ring)
{
	struct punted *record = bpf_ringbuf_reserve(ring, sizeof(*record), 0);

	if (!record)
		return 0;
	if (bpf_xdp_load_bytes(p->ctx, 0, record->frame, BOUNDED(bytes, 1, sizeof(record->frame)))) {
		bpf_ringbuf_discard(record, 0);
		return 0;
	}
	record->time = bpf_ktime_get_coarse_ns();
	record->interface = client_interface(p, p->frame.eth->h_dest);
	record->bytes = bytes;
	return record;
}

#endif
