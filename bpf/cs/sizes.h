/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Size classes: paths whose content is large, as the data servers' daemons say, have a pool of their own. */
#ifndef BATON_CS_SIZES_H
#define BATON_CS_SIZES_H

#include "packet.h"
#include "request.h"

/*
 * The pool of large content, if the path with this hash is of it; else NO_POOL. No path that is longer than what is
 * hashed is of it.
 */
__noinline u32 find_large(u32 service, u32 pool, u64 path)
{
	struct large_key key = { .service = service, .path = path };

	return bpf_map_lookup_elem(&large, &key) ? pool : NO_POOL;
}

#endif
