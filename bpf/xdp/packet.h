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

/* Fills `p` from the frame anew, as the function before this one has done. Returns what the frame is. */
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

/* Fills `p`, with its flow, from the frame anew. False if that is not TCP. */
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
 * Whether the frame is addressed to this node. XDP also sees frames that the LAN floods or a card lets through, and
 * that another node gets as well. Answers leave from the MAC address to which the frame came.
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
 * The interface that leads to the client whose frame was addressed to this MAC address. It is the one by which the
 * frame came, unless another node has passed the frame on. Such a frame is given the first interface's address
 * (xdp/switch_header.h), because the other node got it on the LAN of that interface.
 */
static __always_inline u32 client_interface(struct xdp_md *ctx, const struct settings *s, const void *addressed_to)
{
	u32 came_by = ctx->ingress_ifindex;

	/* The context is read before the choice, because the verifier wants it read at offsets that it knows. */
	asm volatile("" : "+r"(came_by));
	return s->interfaces > 1 && is_mac(addressed_to, s->macs[0]) ? s->ifindexes[0] : came_by;
}

/* Handles a malformed packet: drops it if it is to a cluster address, and leaves any other to the kernel. */
static __always_inline int malformed(struct packet *p, enum counter why)
{
	if (service_at(p->frame.ip->daddr, 0))
		return drop(p, why);
	return XDP_PASS;
}

/*
 * Handles a fragment. No node fragments a message, so its fragments are dropped: put together by the kernel, they
 * would reach the daemon unverified.
 */
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
 * Passes the frame up to this node's own data server. The frame is addressed to the interface by which it came,
 * because the kernel drops any other, and a data server with DATA_SERVER_LOCAL has the address of the first interface
 * only.
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

/* Sends the frame, whose headers are complete, to its data server. Returns the XDP action. */
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

/*
 * Whether the kernel has merged segments into this packet, which is longer than any that a client can send. The kernel
 * can cut it again only where it came from.
 */
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
