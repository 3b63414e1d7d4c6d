/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Size classes: paths whose content is large, as the data servers' daemons say, have a pool of their own. */
#ifndef BATON_CS_SIZES_H
#define BATON_CS_SIZES_H

#include "packet.h"
#include "request.h"

/*
 * The pool of large content, if the path in the text that begins at `target` is of it; else NO_POOL.
 * PathHash of crates/wire is the same hash. A path whose end is not seen is not looked up.
 */
__noinline u32 find_large(u32 service, u32 pool, u32 target)
{
	struct text *text = text_of_this_cpu();
	struct large_key key = { .service = service };
	u64 hash = 0, ends = 0;

	if (!text)
		return NO_POOL;
	const u8 *path = target_in(text, target);
	for (int i = 0; i < PATH_BYTES / WORD && !ends; i++) {
		u64 word = *(const u64 *)(path + i * WORD);

		ends = path_ends(word);
		hash = hash_word(hash, word, ends);
	}
	if (!ends)
		return NO_POOL;
	key.path = hash;
	return bpf_map_lookup_elem(&large, &key) ? pool : NO_POOL;
}

#endif
