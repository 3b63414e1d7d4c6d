/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Hashes that tell clients apart. */
#ifndef BATON_INCLUDE_HASH_H
#define BATON_INCLUDE_HASH_H

#include "include/kernel.h"

/* MurmurHash3's finalizer: every input bit reaches every output bit. */
static __always_inline u32 mix(u32 h)
{
	h ^= h >> 16;
	h *= 0x85ebca6b;
	h ^= h >> 13;
	h *= 0xc2b2ae35;
	return h ^ h >> 16;
}

/* Hashes four words. It is global so that it is verified by itself. */
__noinline u32 mix_words(u32 seed, u32 a, u32 b, u32 c, u32 d)
{
	return mix(mix(mix(mix(seed ^ a) ^ b) ^ c) ^ d);
}

/*
 * The hash of an address under a seed that no client knows. It is quick rather than one-way: anybody who could see
 * where very many clients are sent could find the seed by trying all.
 */
static __always_inline u32 hash_client(const u8 *client, u32 seed)
{
	const u32 *words = (const u32 *)client;

	return mix_words(seed, words[0], words[1], words[2], words[3]);
}

#endif
