/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The Internet checksum (RFC 1071) of headers built on the stack. */
#ifndef BATON_INCLUDE_CHECKSUM_H
#define BATON_INCLUDE_CHECKSUM_H

#include "include/kernel.h"

static __always_inline u16 checksum_fold(u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

/* The sum of `count` 32-bit words, a constant at every call. */
static __always_inline u64 checksum_words(const u32 *words, const int count)
{
	u64 sum = 0;

#pragma unroll
	for (int i = 0; i < count; i++)
		sum += words[i];
	return sum;
}

#endif
