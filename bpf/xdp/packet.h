/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One packet at a connection server or the switch, and how it leaves. */
#ifndef BATON_XDP_PACKET_H
#define BATON_XDP_PACKET_H

#include "include/count.h"
#include "include/flow.h"
#include "include/frame.h"

struct packet {
	struct xdp_md *ctx;
	const struct settings *settings;
	struct counters *counters;
	struct service *service;
	struct frame frame;
	struct tcb_key flow;
};

/* The frame as the function before has found it. */
static __always_inline enum frame_kind look_again(struct packet *p, struct xdp_md *ctx)
{
	u32 zero = 0;

	*p = (struct packet){
		.ctx = ctx,
		.settings = bpf_map_lookup_elem(&settings, &zero),
		.counters = counters_of_this_cpu(),
	};
	if (!p->settings || !p->counters)
		return FRAME_OTHER;
	return parse_frame((void *)(long)ctx->data, (void *)(long)ctx->data_end, bpf_xdp_get_buff_len(ctx),
			   p->settings->protocol, &p->frame);
}

static __always_inline bool look_at_tcp(struct packet *p, struct xdp_md *ctx)
{
	struct frame *f = &p->frame;

	if (look_again(p, ctx) != FRAME_TCP)
		return false;
	name_flow(&p->flow, f->ip->saddr, f->tcp->source, f->ip->daddr, f->tcp->dest);
	return true;
}

static __always_inline int drop(struct packet *p, enum counter why)
{
	count(p->counters, why);
	return XDP_DROP;
}

static __always_inline bool is_mac(const void *a, const void *b)
{
	const u16 *one = a, *other = b;

	return !((one[0] ^ other[0]) | (one[1] ^ other[1]) | (one[2] ^ other[2]));
}

/*
 * XDP sees whatever the LAN floods or a card lets through, also what another node gets as well. Answers leave
 * in the name of the address that the frame came to.
 */
static __always_inline bool is_for_us(const struct settings *s, void *data, void *data_end)
{
	if (data + sizeof(struct ethhdr) > data_end)
		return true;
#pragma unroll
	for (int i = 0; i < MAX_INTERFACES; i++)
		if (is_mac(data, s->macs[i]))
			return true;
	for (u32 i = 0; i < ALSO_MACS; i++)
		if (i < s->also_macs && is_mac(data, s->also_mac[i]))
			return true;
	return false;
}

/*
 * The interface that leads to the client whose frame was addressed to this MAC: the one by which it came, unless
 * another node has passed it on. Such a frame is made one to the first interface, see xdp/switch_header.h: the other node
 * got it on the LAN of that.
 */
static __always_inline u32 client_interface(struct xdp_md *ctx, const struct settings *s, const void *addressed_to)
{
	u32 came_by = ctx->ingress_ifindex;

	/* Read before anything is chosen: the verifier wants the context at offsets that it knows. */
	asm volatile("" : "+r"(came_by));
	return s->interfaces > 1 && is_mac(addressed_to, s->macs[0]) ? s->ifindexes[0] : came_by;
}

/* What cannot be for a service is the kernel's, unless a cluster address stands on it. */
static __always_inline int malformed(struct packet *p, enum counter why)
{
	if (service_at(p->frame.ip->daddr, 0))
		return drop(p, why);
	return XDP_PASS;
}

/* No node cuts a message in pieces. Put together by the kernel, they would reach the daemon unseen. */
static __always_inline int fragment(struct packet *p)
{
	if (p->frame.ip->protocol == p->settings->protocol)
		return drop(p, COUNTER_FRAGMENT);
	return malformed(p, COUNTER_FRAGMENT);
}

static __always_inline const struct data_server *data_server(u32 index)
{
	return bpf_map_lookup_elem(&data_servers, &index);
}

/*
 * To this node's own data server. The kernel drops what is not addressed to the interface that it comes by, and
 * DATA_SERVER_LOCAL knows the first interface only.
 */
static __noinline int pass_to_own(struct xdp_md *ctx)
{
	u32 zero = 0;
	const struct settings *s = bpf_map_lookup_elem(&settings, &zero);
	struct ethhdr *eth = (void *)(long)ctx->data;

	if (!s || s->interfaces < 2 || (void *)(eth + 1) > (void *)(long)ctx->data_end)
		return XDP_PASS;
#pragma unroll
	for (int i = 1; i < MAX_INTERFACES; i++)
		if (s->ifindexes[i] == ctx->ingress_ifindex)
			__builtin_memcpy(eth->h_dest, s->macs[i], ETH_ALEN);
	return XDP_PASS;
}

/* A frame whose headers are complete leaves for its data server. */
static __always_inline int send(struct xdp_md *ctx, const struct data_server *to)
{
	if (to->flags & DATA_SERVER_LOCAL)
		return pass_to_own(ctx);
	if (to->ifindex == ctx->ingress_ifindex)
		return XDP_TX;
	return bpf_redirect(to->ifindex, 0);
}

enum {
	MTU_LESS_MSS = sizeof(struct iphdr) + sizeof(struct tcphdr) + LCCP_OVERHEAD_BYTES,
};

/* No client can have sent it so: the kernel has merged segments. It can cut them again where they came from only. */
static __always_inline bool is_merged(const struct packet *p)
{
	return p->frame.ip_bytes > p->settings->mss + MTU_LESS_MSS;
}

static __always_inline void address_frame(struct ethhdr *eth, const struct data_server *to)
{
	__builtin_memcpy(eth->h_dest, to->mac, ETH_ALEN);
	__builtin_memcpy(eth->h_source, to->source_mac, ETH_ALEN);
}

#endif
