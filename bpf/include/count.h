/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counters: one lookup a packet, then plain adds. */
#ifndef BATON_INCLUDE_COUNT_H
#define BATON_INCLUDE_COUNT_H

#include "include/maps.h"

static __always_inline struct counters *counters_of_this_cpu(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&counters, &zero);
}

static __always_inline void count(struct counters *c, enum counter what)
{
	c->value[what]++;
}

static __always_inline void count_bytes(struct counters *c, enum counter what, u32 bytes)
{
	c->value[what] += bytes;
}

#endif
