/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Routes: which pool a request is for, by its host and its path. */
#ifndef BATON_ROUTING_ROUTE_H
#define BATON_ROUTING_ROUTE_H

#include "include/flow.h"
#include "include/siphash.h"
#include "routing/request.h"

enum {
	HOST_BITS = 8 * (sizeof(struct host_key) - sizeof(u32)),
	NAME_MAX = 255,            /* a name of so many letters is left to user space */
	HOST_UNCLEAR = ~0U,        /* no host's number: only user space can read the name */
	ROUTE_BITS = 8 * (sizeof(struct route_key) - sizeof(u32)),
	PLAIN_WORDS = 64,          /* at most so many 8-byte words of a path are checked */
	DEL = 0x7f,
	VERSION_LETTERS = 7,       /* of "HTTP/1.", which stands behind a target and a blank */
};

/*
 * find_route() returns this for a request that some server may read in another way than this program: its route is not
 * known.
 */
#define ROUTE_UNCLEAR (ROUTE_UNDECIDED | NO_POOL)

/* A host name in the text, and its length as far as it was read. */
struct host_walk {
	struct text *text;
	u32 begin;
	u32 length;
};

static __always_inline u8 host_letter(const struct host_walk *w, u32 index)
{
	return *text_at(w->text, w->begin + index);
}

/* Counts one letter of the name, which ends at the port, a blank, or the end of the line or segment; returns 1 there. */
static long measure_host(u32 index, struct host_walk *w)
{
	u8 c = host_letter(w, index);

	if (c == ':' || c <= ' ')
		return 1;
	w->length++;
	return 0;
}

/* Copies one letter of the name to the key, in lower case and from the name's end on. */
static long copy_letter(u32 index, struct host_walk *w)
{
	u8 c = host_letter(w, w->length - 1 - index);
	u8 is_capital = (u8)(c - 'A') < 26;

	w->text->host.name[WRAPPED(index, HOST_BYTES)] = c | is_capital << 5;
	return 0;
}

/* The number of the host with this name; 0 if no route names it. HOST_UNCLEAR if the name is empty or ends with a dot. */
static __always_inline u32 number_of_host(struct host_walk *walk)
{
	struct host_key *key = &walk->text->host;

	if (walk->length < 1 || host_letter(walk, walk->length - 1) == '.')
		return HOST_UNCLEAR;
	__builtin_memset(key, 0, sizeof(*key));
	key->prefix_bits = HOST_BITS;
	bpf_loop(walk->length < HOST_BYTES ? walk->length : HOST_BYTES, copy_letter, walk, 0);
	u32 *host = bpf_map_lookup_elem(&hosts, key);
	return host ? *host : 0;
}

/*
 * The number of the host that the Host header at `begin` names; 0 if no route names it. If the name is longer than
 * those of all routes, its end is enough. HOST_UNCLEAR if there is no name, if it is not all here, or if it ends with
 * a dot, which servers ignore.
 */
static __always_inline u32 find_host(struct text *text, u32 begin)
{
	for (int i = 0; i < 4 && *text_at(text, begin) == ' '; i++)
		begin++;
	struct host_walk walk = { .text = text, .begin = begin };
	bpf_loop(NAME_MAX, measure_host, &walk, 0);
	if (walk.length >= NAME_MAX || !host_letter(&walk, walk.length))
		return HOST_UNCLEAR;
	return number_of_host(&walk);
}

/* As find_host(), for a name of `length` bytes at `begin`. HOST_UNCLEAR also if it has bytes that no name has. */
static __always_inline u32 find_host_of_length(struct text *text, u32 begin, u32 length)
{
	struct host_walk walk = { .text = text, .begin = begin };

	bpf_loop(length < NAME_MAX ? length : NAME_MAX, measure_host, &walk, 0);
	return walk.length == length ? number_of_host(&walk) : HOST_UNCLEAR;
}

/*
 * Whether the target of the request is a path that every server reads as it stands, up to its query or the version of
 * HTTP: it begins with a slash, and has neither an escape, nor a fragment, nor two slashes in a row, nor a dot behind
 * a slash. crates/wire/src/path.rs leaves such a path as it is. The walk takes eight bytes at a time. It stops at the
 * first byte below '&' (the blank, '#', '%', control characters and some that are rare), at the first DEL, at the
 * first '?', and at the first slash with a slash or a dot behind it. Of each mask only the lowest set bit can
 * be trusted.
 */
static __always_inline bool is_plain(const struct text *text, const struct request *r)
{
	const u8 *at = target_in(text, r->target);
	u64 stops = 0, ends = 0;
	u32 i = 0;

	if (*at != '/')
		return false;
	for (; i < PLAIN_WORDS; i++) {
		u64 word = *(const u64 *)(at + i * WORD);
		u64 next = *(const u64 *)(at + i * WORD + 1);
		u64 pairs = zero_bytes(word ^ EVERY_BYTE('/')) & zero_bytes((next | EVERY_BYTE(1)) ^ EVERY_BYTE('/'));
		u64 low = low_bytes(word, '&') | zero_bytes(word ^ EVERY_BYTE(DEL));

		ends = zero_bytes(word ^ EVERY_BYTE('?'));
		stops = low | ends | pairs;
		if (stops) {
			ends |= zero_bytes(word ^ EVERY_BYTE(' '));
			break;
		}
	}
	u64 first = stops & -stops;
	if (!(first & ends))
		return false;
	/* Counts the bytes up to the first stop: the multiplication sums a one for each of them in the highest byte. */
	u32 end = i * WORD + (((first - 1) & EVERY_BYTE(1)) * EVERY_BYTE(1) >> 56) - 1;
	at += WRAPPED(end, PLAIN_WORDS * WORD);
	if (*at == '?')
		return true;
	/* The line must end behind the version, if its end is in this segment. */
	return (*(const u64 *)(at + 1) & FIRST(VERSION_LETTERS)) == LETTERS('H', 'T', 'T', 'P', '/', '1', '.', 0) &&
	       (!r->line || r->line == r->target + end + 1 + LINE_TAIL);
}

/*
 * The route of the request in the text, as the map has it; NO_POOL if none takes it, ROUTE_UNCLEAR if only user
 * space can say that.
 */
__noinline u32 find_route(u32 service, u32 flags, const struct request *r)
{
	struct text *text = text_of_this_cpu();

	if (!r || !text)
		return ROUTE_UNCLEAR;
	if (!r->target || r->begin || r->loose || !is_plain(text, r))
		return ROUTE_UNCLEAR;
	if (!(flags & SERVICE_PATHS))
		return NO_POOL;
	struct route_key *key = &text->route;
	key->prefix_bits = ROUTE_BITS;
	key->service = service;
	key->host = 0;
	if (flags & SERVICE_HOSTS) {
		u32 host = 0;

		/* If the head's end is not in this segment, a Host header may still follow. */
		if (r->hosts == 1)
			host = find_host(text, r->host);
		else if (r->hosts || !r->end)
			host = HOST_UNCLEAR;
		if (host == HOST_UNCLEAR)
			return ROUTE_UNCLEAR;
		key->host = host;
	}
	__builtin_memcpy(key->path, target_in(text, r->target), PATH_BYTES);
	u32 *route = bpf_map_lookup_elem(&routes, key);
	return route ? *route : NO_POOL;
}

/*
 * The key of the hashes below. A hash stands for a path where answers are remembered and where large files are known.
 * Clients choose paths: without a key they could choose one that has another path's hash. The key is looked up here,
 * because the verifier checks each hash function by itself, and their callers know the key under several names.
 */
static __always_inline const struct siphash_key *hash_key(void)
{
	u32 zero = 0;
	const struct settings *s = bpf_map_lookup_elem(&settings, &zero);

	return s ? siphash_key(s->hash_key) : 0;
}

/* A hash of what the line in the text has from `at` on, up to HOST_BYTES bytes of it. */
__noinline u64 hash_host(u32 at)
{
	const struct siphash_key *key = hash_key();
	struct text *text = text_of_this_cpu();
	u64 count = 0;

	if (!key || !text)
		return 0;
	struct siphash_state s = siphash_begin(key);
	while (count < HOST_BYTES / WORD) {
		u64 word = text_word(text, at + count * WORD);
		u64 ends = zero_bytes(word ^ EVERY_BYTE('\r'));

		siphash_word(&s, SIPHASH_WORD(before_end(word, ends)));
		count++;
		if (ends)
			break;
	}
	return siphash_end(&s, count);
}

/*
 * A hash of the path in the text, which begins at `target`: up to its query, and at most PATH_BYTES bytes. PathHash in
 * crates/wire makes the same hash.
 */
__noinline u64 hash_path(u32 target)
{
	const struct siphash_key *key = hash_key();
	struct text *text = text_of_this_cpu();
	u64 count = 0;

	if (!key || !text)
		return 0;
	const u8 *path = target_in(text, target);
	struct siphash_state s = siphash_begin(key);
	while (count < PATH_BYTES / WORD) {
		u64 word = *(const u64 *)(path + count * WORD);
		u64 ends = path_ends(word);

		siphash_word(&s, SIPHASH_WORD(before_end(word, ends)));
		count++;
		if (ends)
			break;
	}
	return siphash_end(&s, count);
}

/*
 * A hash of a host's hash and of a path's hash together. `host` is where the host begins in the text, or 0 for none;
 * `path` is a hash as hash_path() makes it.
 */
__noinline u64 hash_host_and_path(u32 host, u64 path)
{
	const struct siphash_key *key = hash_key();
	u64 words[2] = { host ? hash_host(host) : 0, path };

	return key ? siphash(key, words, 2) : 0;
}

/*
 * The hash of a request's path: as user space has read it, if it has, else as hash_path() reads it. The request must
 * have a target.
 */
static __always_inline u64 hash_request(const struct request *r)
{
	return r->path ? r->path : hash_path(r->target);
}

#endif
