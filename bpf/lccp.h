/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* LCCP headers: sealed when sent, verified when received. */
#ifndef BATON_LCCP_H
#define BATON_LCCP_H

#include "kernel.h"
#include "abi.h"
#include "clock.h"
#include "count.h"
#include "siphash.h"

static __noinline u64 lccp_tag(const u64 key[2], const struct lccp_header *h)
{
	return siphash(key, (const u64 *)h, LCCP_TAGGED_BYTES / 8);
}

/* The last step before sending: nothing of the header may change after it. */
static __always_inline void lccp_seal(const struct settings *s, struct lccp_header *h)
{
	h->version = LCCP_VERSION;
	h->be_clock = bpf_cpu_to_be64(wall_clock(s));
	h->be_tag = bpf_cpu_to_be64(lccp_tag(s->lccp_key[0], h));
}

static __always_inline bool lccp_tag_good(const struct settings *s, const struct lccp_header *h)
{
	u64 tag = bpf_be64_to_cpu(h->be_tag);

	if (tag == lccp_tag(s->lccp_key[0], h))
		return true;
	if (!(s->lccp_key[1][0] | s->lccp_key[1][1]))
		return false;
	return tag == lccp_tag(s->lccp_key[1], h);
}

/* For the operator to hear whose clock is off. The header's tag is right. */
static __noinline void note_stale(const struct settings *s, const struct lccp_header *h, __be32 from)
{
	u64 now = bpf_ktime_get_coarse_ns();
	struct stale_sender sender = {
		.ahead_ns = bpf_be64_to_cpu(h->be_clock) - (now + s->clock_offset_ns),
		.seen_ns = now,
	};

	bpf_map_update_elem(&stale_senders, &from, &sender, BPF_ANY);
}

/*
 * False, and counted, if this header is not from a node of this cluster, or too old to be. A forged
 * tag costs the forger 2^63 tries on average, at the price of a counter: a plain compare is enough,
 * because no answer tells how far it got.
 */
static __always_inline bool lccp_verify(const struct settings *s, struct counters *c,
					const struct lccp_header *h, __be32 from)
{
	if (h->version != LCCP_VERSION) {
		count(c, COUNTER_LCCP_BAD_VERSION);
		return false;
	}
	if (!lccp_tag_good(s, h)) {
		count(c, COUNTER_LCCP_BAD_TAG);
		return false;
	}
	u64 age = wall_clock(s) - bpf_be64_to_cpu(h->be_clock) + s->clock_window_ns;
	if (age > 2 * s->clock_window_ns) {
		count(c, COUNTER_LCCP_STALE);
		note_stale(s, h, from);
		return false;
	}
	return true;
}

#endif
