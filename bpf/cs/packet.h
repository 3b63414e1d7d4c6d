/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One packet at a connection server or the switch, and how it leaves. */
#ifndef BATON_CS_PACKET_H
#define BATON_CS_PACKET_H

#include "../count.h"
#include "../frame.h"

struct packet {
	struct xdp_md *ctx;
	const struct settings *settings;
	struct counters *counters;
	struct service *service;
	struct frame frame;
	struct tcb_key flow;
};

static __always_inline struct service *service_at(__be32 address, __be16 port)
{
	struct service_key key = service_key(address, port);

	return bpf_map_lookup_elem(&services, &key);
}

static __always_inline void name_flow(struct tcb_key *flow, __be32 client, __be16 client_port,
				      __be32 cluster, __be16 cluster_port)
{
	map_address(flow->client, client);
	flow->cluster = cluster;
	flow->be_client_port = client_port;
	flow->be_cluster_port = cluster_port;
}

static __always_inline int drop(struct packet *p, enum counter why)
{
	count(p->counters, why);
	return XDP_DROP;
}

/* XDP sees whatever the LAN floods or a card lets through, also what another node gets as well. */
static __always_inline bool is_for_us(const struct settings *s, void *data, void *data_end)
{
	const u16 *to = data, *own = (const u16 *)s->mac;

	return data + sizeof(struct ethhdr) > data_end ||
	       !((to[0] ^ own[0]) | (to[1] ^ own[1]) | (to[2] ^ own[2]));
}

/* What cannot be for a service is the kernel's, unless a cluster address stands on it. */
static __always_inline int malformed(struct packet *p, enum counter why)
{
	if (service_at(p->frame.ip->daddr, 0))
		return drop(p, why);
	return XDP_PASS;
}

static __always_inline const struct data_server *data_server(u32 index)
{
	return bpf_map_lookup_elem(&data_servers, &index);
}

static __always_inline bool is_present(u16 server)
{
	const struct data_server *found = data_server(server);

	return found && found->flags & DATA_SERVER_PRESENT;
}

/* A frame whose headers are complete leaves for its data server. */
static __always_inline int send(struct xdp_md *ctx, const struct data_server *to)
{
	if (to->flags & DATA_SERVER_LOCAL)
		return XDP_PASS;
	if (to->ifindex == ctx->ingress_ifindex)
		return XDP_TX;
	return bpf_redirect(to->ifindex, 0);
}

static __always_inline void address_frame(struct ethhdr *eth, const struct data_server *to)
{
	__builtin_memcpy(eth->h_dest, to->mac, ETH_ALEN);
	__builtin_memcpy(eth->h_source, to->source_mac, ETH_ALEN);
}

#endif
