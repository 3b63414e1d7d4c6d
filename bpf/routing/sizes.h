/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Size classes: paths whose content is large, as the data servers' daemons say, have a pool of their own. */
#ifndef BATON_ROUTING_SIZES_H
#define BATON_ROUTING_SIZES_H

#include "routing/request.h"
#include "routing/route.h"

/*
 * Returns `pool`, the pool of large content, if the path with this hash belongs to large content; else NO_POOL. A path
 * that is longer than what is hashed never belongs to it.
 */
__noinline u32 find_large(u32 service, u32 pool, u64 path)
{
	struct large_key key = { .service = service, .path = path };

	return bpf_map_lookup_elem(&large, &key) ? pool : NO_POOL;
}

/* The pool of a request that no route takes. */
static __noinline u32 pool_without_route(const struct service *service, const struct request *r)
{
	u32 pool = NO_POOL;

	if (!service || !r)
		return NO_POOL;
	if (service->flags & SERVICE_SIZES && (r->path || r->target))
		pool = find_large(service->id, service->large, hash_request(r));
	return pool == NO_POOL ? service->pool : pool;
}

#endif
