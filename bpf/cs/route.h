/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Routes: which pool a request is for, by its host and its path. */
#ifndef BATON_CS_ROUTE_H
#define BATON_CS_ROUTE_H

#include "packet.h"
#include "request.h"
#include "sizes.h"

enum {
	HOST_BITS = 8 * (sizeof(struct host_key) - sizeof(u32)),
	NAME_MAX = 255,            /* no host name is longer */
	ROUTE_BITS = 8 * (sizeof(struct route_key) - sizeof(u32)),
};

/* A host name in the text, and how far it was read. */
struct host_walk {
	struct text *text;
	u32 begin;
	u32 length;
};

static __always_inline u8 host_letter(const struct host_walk *w, u32 index)
{
	return *text_at(w->text, w->begin + index);
}

/* The name ends at the port, a blank or the end of the line. */
static long measure_host(u32 index, struct host_walk *w)
{
	u8 c = host_letter(w, index);

	if (c == ':' || c <= ' ')
		return 1;
	w->length++;
	return 0;
}

static long copy_letter(u32 index, struct host_walk *w)
{
	u8 c = host_letter(w, w->length - 1 - index);
	u8 is_capital = (u8)(c - 'A') < 26;

	w->text->host.name[WRAPPED(index, HOST_BYTES)] = c | is_capital << 5;
	return 0;
}

/*
 * The number of the host that the Host header at `begin` names; 0 if no route names it. Of a name that
 * is longer than any of a route the end will do.
 */
static __always_inline u32 find_host(struct text *text, u32 begin)
{
	struct host_key *key = &text->host;

	for (int i = 0; i < 4 && *text_at(text, begin) == ' '; i++)
		begin++;
	struct host_walk walk = { .text = text, .begin = begin };
	__builtin_memset(key, 0, sizeof(*key));
	key->prefix_bits = HOST_BITS;
	bpf_loop(NAME_MAX, measure_host, &walk, 0);
	bpf_loop(walk.length < HOST_BYTES ? walk.length : HOST_BYTES, copy_letter, &walk, 0);
	u32 *host = bpf_map_lookup_elem(&hosts, key);
	return host ? *host : 0;
}

/* The route of the request in the text, as the map has it; NO_POOL if none takes it. */
__noinline u32 find_route(u32 service, u32 flags, const struct request *r)
{
	struct text *text = text_of_this_cpu();

	if (!r || !text || !r->target)
		return NO_POOL;
	struct route_key *key = &text->route;
	key->prefix_bits = ROUTE_BITS;
	key->service = service;
	key->host = 0;
	if (flags & SERVICE_HOSTS && r->host)
		key->host = find_host(text, r->host);
	__builtin_memcpy(key->path, target_in(text, r->target), PATH_BYTES);
	u32 *route = bpf_map_lookup_elem(&routes, key);
	return route ? *route : NO_POOL;
}

/* A hash of the beginning of the line in the text that goes on at `at`. */
__noinline u32 hash_host(u32 at)
{
	struct text *text = text_of_this_cpu();
	u64 hash = 0;

	if (!text)
		return 0;
	for (u32 i = 0; i < HOST_BYTES / WORD; i++) {
		u64 word = text_word(text, at + i * WORD);
		u64 ends = zero_bytes(word ^ EVERY_BYTE('\r'));

		hash = hash_word(hash, word, ends);
		if (ends)
			break;
	}
	return hash;
}

/* A hash of the path in the text, which begins at `target`, up to its query. */
__noinline u32 hash_path(u32 target, u32 seed)
{
	struct text *text = text_of_this_cpu();
	u64 hash = seed;

	if (!text)
		return 0;
	const u8 *path = target_in(text, target);
	for (int i = 0; i < PATH_BYTES / WORD; i++) {
		u64 word = *(const u64 *)(path + i * WORD);
		u64 ends = path_ends(word);

		hash = hash_word(hash, word, ends);
		if (ends)
			break;
	}
	return hash;
}

#endif
