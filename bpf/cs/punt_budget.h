/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether user space may be shown a frame. Whoever has one connection can have a frame shown as often as he sends it, and
 * where the ring is full nobody else's is. So once half of it is, each client's address may have a small share of it in a
 * while, and who is loud leaves room for others. Nobody has a frame shown in another's name: it takes a cookie of ours,
 * or an entry. Each processor counts for itself.
 */
#ifndef BATON_CS_PUNT_BUDGET_H
#define BATON_CS_PUNT_BUDGET_H

#include "packet.h"
#include "../hash.h"

enum {
	PUNT_SHARE = PUNT_RING_BYTES / 16, /* of one address, */
	PUNT_WHILE_SHIFT = 27,             /* in 2^27 ns, 134 ms: who reads no frame for PUNT_PATIENCE_NS is shown none */
};

static __always_inline bool has_room_for(const struct settings *settings, __be32 address, u32 bytes)
{
	u8 client[16];

	map_address(client, address);
	u32 source = hash_client(client, secret_of(settings)) & (PUNT_SOURCES - 1);
	struct punt_source *s = bpf_map_lookup_elem(&punt_sources, &source);
	u32 now = bpf_ktime_get_coarse_ns() >> PUNT_WHILE_SHIFT;

	if (!s)
		return false;
	if (s->when != now) {
		s->when = now;
		s->bytes = 0;
	}
	s->bytes += bytes;
	return s->bytes <= PUNT_SHARE || bpf_ringbuf_query(&punts, BPF_RB_AVAIL_DATA) < PUNT_RING_BYTES / 2;
}

#endif
