/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Time as of the last timer tick (1 to 10 ms). All times that are needed here are far coarser, and the precise clocks
 * cost as much as a map lookup.
 */
#ifndef BATON_INCLUDE_CLOCK_H
#define BATON_INCLUDE_CLOCK_H

#include "abi/abi.h"
#include "include/kernel.h"

/* Nanoseconds since 1970, the clock that all nodes share. */
static __always_inline u64 wall_clock(const struct settings *s)
{
	return bpf_ktime_get_coarse_ns() + s->clock_offset_ns;
}

static __always_inline u32 tick_now(void)
{
	return bpf_ktime_get_coarse_ns() >> TICK_SHIFT;
}

#endif
