/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SipHash-2-4 (Aumasson, Bernstein 2012) of whole 64-bit words. */
#ifndef BATON_INCLUDE_SIPHASH_H
#define BATON_INCLUDE_SIPHASH_H

#include "include/kernel.h"

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define SIPHASH_WORD(x) (x)
#else
#define SIPHASH_WORD(x) __builtin_bswap64(x)
#endif

#define SIPHASH_ROTATE(x, b) (((x) << (b)) | ((x) >> (64 - (b))))

struct siphash_key {
	u64 word[2];
};

struct siphash_state {
	u64 v0, v1, v2, v3;
};

static __always_inline void siphash_round(struct siphash_state *s)
{
	s->v0 += s->v1;
	s->v1 = SIPHASH_ROTATE(s->v1, 13) ^ s->v0;
	s->v0 = SIPHASH_ROTATE(s->v0, 32);
	s->v2 += s->v3;
	s->v3 = SIPHASH_ROTATE(s->v3, 16) ^ s->v2;
	s->v0 += s->v3;
	s->v3 = SIPHASH_ROTATE(s->v3, 21) ^ s->v0;
	s->v2 += s->v1;
	s->v1 = SIPHASH_ROTATE(s->v1, 17) ^ s->v2;
	s->v2 = SIPHASH_ROTATE(s->v2, 32);
}

static __always_inline void siphash_word(struct siphash_state *s, u64 word)
{
	s->v3 ^= word;
	siphash_round(s);
	siphash_round(s);
	s->v0 ^= word;
}

static __always_inline struct siphash_state siphash_begin(const struct siphash_key *key)
{
	return (struct siphash_state){
		.v0 = key->word[0] ^ 0x736f6d6570736575ULL,
		.v1 = key->word[1] ^ 0x646f72616e646f6dULL,
		.v2 = key->word[0] ^ 0x6c7967656e657261ULL,
		.v3 = key->word[1] ^ 0x7465646279746573ULL,
	};
}

/* Hashes `count` more words. `count` is a constant at every call, so the loop is unrolled. */
static __always_inline void siphash_words(struct siphash_state *s, const u64 *words, const int count)
{
#pragma unroll
	for (int i = 0; i < count; i++)
		siphash_word(s, SIPHASH_WORD(words[i]));
}

/* Returns the hash of all words so far; `count` is their number. */
static __always_inline u64 siphash_end(struct siphash_state *s, u64 count)
{
	siphash_word(s, count * 8 << 56);
	s->v2 ^= 0xff;
	siphash_round(s);
	siphash_round(s);
	siphash_round(s);
	siphash_round(s);
	return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

/* A key as the maps have it, in the type that a function of its own needs: the type tells the verifier its length. */
static __always_inline const struct siphash_key *siphash_key(const u64 key[2])
{
	return (const struct siphash_key *)key;
}

/* The hash of `count` words, a constant at every call. */
static __always_inline u64 siphash(const struct siphash_key *key, const u64 *words, const int count)
{
	struct siphash_state s = siphash_begin(key);

	siphash_words(&s, words, count);
	return siphash_end(&s, count);
}

#endif
