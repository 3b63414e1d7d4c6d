/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which connection and which service a packet belongs to. */
#ifndef BATON_INCLUDE_FLOW_H
#define BATON_INCLUDE_FLOW_H

#include "include/frame.h"
#include "include/maps.h"

static __always_inline struct service *service_at(__be32 address, __be16 port)
{
	struct service_key key = service_key(address, port);

	return bpf_map_lookup_elem(&services, &key);
}

/* Whether clients of this service speak TLS. This is no part of its callers, whose stacks have no room for the key. */
static __noinline bool is_tls(__be32 address, __be16 port)
{
	const struct service *service = service_at(address, port);

	return service && service->flags & SERVICE_TLS;
}

static __always_inline void name_flow(struct tcb_key *flow, __be32 client, __be16 client_port,
				      __be32 cluster, __be16 cluster_port)
{
	map_address(flow->client, client);
	flow->cluster = cluster;
	flow->be_client_port = client_port;
	flow->be_cluster_port = cluster_port;
}

/*
 * A secret that nobody outside knows. A forger who knew it could choose sources that share the hash of a certain
 * client, and use up that client's share.
 */
static __always_inline u32 secret_of(const struct settings *s)
{
	return (u32)s->cookie_key[0][1];
}

#endif
