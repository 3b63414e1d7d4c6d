/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One packet at the data server. */
#ifndef BATON_DS_PACKET_H
#define BATON_DS_PACKET_H

#include "../count.h"
#include "../frame.h"

enum {
	HEADERS_MAX = sizeof(struct ethhdr) + 60 + 60, /* Ethernet, longest IPv4, longest TCP */
	OUTER_BYTES = LCCP_OVERHEAD_BYTES,
	INNER_AT = sizeof(struct ethhdr) + OUTER_BYTES,
	LCCP_AT = sizeof(struct ethhdr) + sizeof(struct iphdr),
};

/* Set before loading where this node is a connection server: only there are its maps, and is this code. */
const volatile u32 is_also_cs = 0;

struct arrival {
	struct __sk_buff *skb;
	const struct settings *settings;
	struct counters *counters;
	bool requeued; /* this packet was here before, see end.h */
	bool again;    /* and so was this message; since then its connection may have moved on */
	__be32 sender; /* short address of who sent this message */
	const struct peer_keys *shared; /* with the sender; of a verified message */
};

static __always_inline int discard(struct arrival *a, enum counter why)
{
	count(a->counters, why);
	return TCX_DISCARD;
}

/* The client's packet inside a message: where its TCP header is, and what says whose it is. */
struct inner {
	struct iphdr ip;
	struct tcphdr tcp;
	u32 tcp_at; /* from the start of the frame */
};

/* Whatever holds these ports here: connection, TIME_WAIT or listener. To be released. */
static __always_inline struct bpf_sock *lookup(struct __sk_buff *skb, __be32 client, __be32 cluster,
					       __be16 client_port, __be16 cluster_port)
{
	struct bpf_sock_tuple tuple = {
		.ipv4.saddr = client,
		.ipv4.daddr = cluster,
		.ipv4.sport = client_port,
		.ipv4.dport = cluster_port,
	};

	return bpf_skc_lookup_tcp(skb, &tuple, sizeof(tuple.ipv4), BPF_F_CURRENT_NETNS, 0);
}

/* Which connection a message is about. */
static __always_inline struct tcb_key flow_of(const struct lccp_header *h)
{
	struct tcb_key flow = {
		.cluster = unmap_address(h->flow.cluster),
		.be_client_port = h->flow.be_client_port,
		.be_cluster_port = h->flow.be_cluster_port,
	};

	__builtin_memcpy(flow.client, h->flow.client, 16);
	return flow;
}

/* Takes the outer IP and LCCP headers off. */
static __always_inline bool strip(struct __sk_buff *skb)
{
	return bpf_skb_adjust_room(skb, -OUTER_BYTES, BPF_ADJ_ROOM_MAC, BPF_F_ADJ_ROOM_FIXED_GSO) == 0;
}

#endif
