/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The distributor: sends a client's packet to a data server inside a message. ADOPT (DM1) moves the connection there;
 * FORWARD and CLAIM are sent in the same way.
 */
#ifndef BATON_CONNECTION_SERVER_DISTRIBUTOR_H
#define BATON_CONNECTION_SERVER_DISTRIBUTOR_H

#include "connection_server/reply.h"
#include "connection_server/tcb.h"
#include "lccp/seal.h"
#include "lccp/send_buffer.h"
#include "routing/request.h"
#include "xdp/packet.h"

enum {
	IP_FIRST_WORD = 0x4500,    /* version 4, five words, DSCP and ECN 0 */
	IP_DONT_FRAGMENT = 0x4000, /* and 0 as identification */
};

struct outer {
	struct ethhdr eth;
	struct iphdr ip;
	struct lccp_header lccp;
} __attribute__((packed));

/*
 * Writes Ethernet, IP and LCCP headers at the frame's start, where the caller has made room for them. The client's
 * packet of `inner_bytes` bytes is behind them. False if the frame is too short.
 */
static __always_inline bool write_outer(struct xdp_md *ctx, const struct settings *s,
					const struct data_server *to, const struct lccp_header *h,
					u32 inner_bytes)
{
	struct outer *outer = (void *)(long)ctx->data;

	if ((void *)(outer + 1) > (void *)(long)ctx->data_end)
		return false;
	address_frame(&outer->eth, to);
	outer->eth.h_proto = bpf_htons(ETH_P_IP);
	/*
	 * The IP header is written in place, word by word: a chain of calls has a stack of 512 bytes, with no room for
	 * a copy.
	 */
	__be32 *ip = (void *)&outer->ip;
	ip[0] = bpf_htonl(IP_FIRST_WORD << 16 | (LCCP_OVERHEAD_BYTES + inner_bytes));
	ip[1] = bpf_htonl(IP_DONT_FRAGMENT);
	ip[2] = bpf_htonl(TTL << 24 | s->protocol << 16);
	ip[3] = unmap_address(s->address);
	ip[4] = unmap_address(to->address);
	outer->ip.check = checksum_fold(checksum_words((u32 *)ip, 5));
	__builtin_memcpy(&outer->lccp, h, sizeof(*h));
	return true;
}

/* Whether the packet fits inside a message. A client that keeps to the MSS we announced never sends a larger one. */
static __always_inline bool fits_in_lccp(const struct packet *p)
{
	return p->frame.ip_bytes <= p->settings->mss + sizeof(struct iphdr) + sizeof(struct tcphdr);
}

/*
 * Copies the frame of a message that leaves into `copy`, without padding behind the packet, so that it can be sent
 * again.
 */
static __always_inline void keep_copy(struct packet *p, struct sent_message *copy)
{
	u64 bytes = sizeof(struct ethhdr) + LCCP_OVERHEAD_BYTES + p->frame.ip_bytes;

	if (!copy)
		return;
	copy->bytes = 0;
	if (fits_in_send_buffer(bytes) &&
	    !bpf_xdp_load_bytes(p->ctx, 0, copy->frame, BOUNDED(bytes, 1, SENT_FRAME_BYTES)))
		copy->bytes = bytes;
	else
		count(p->counters, COUNTER_LCCP_NOT_KEPT);
}

enum {
	/* ADOPT with LCCP_FLAG_RESUME, as distribute() takes a command with flags. */
	ADOPT_RESUMED = LCCP_ADOPT | LCCP_FLAG_RESUME << 8,
};

/*
 * Sends the client's packet, which must fit, inside a message. `command` has the command in its lower 8 bits and its
 * flags above them; `be_data` is the command's data. The function is global, so that the verifier checks it by itself.
 */
__noinline int distribute_frame(struct xdp_md *ctx, const struct data_server *to, u32 command, __be32 be_data,
				const struct lccp_tcb *tcb)
{
	struct text *scratch = text_of_this_cpu();
	struct packet packet, *p = &packet;

	/* The message is made in `scratch`, because the stack has no room for it. */
	if (!scratch || !to || !tcb || !look_at_tcp(p, ctx))
		return XDP_ABORTED;
	struct lccp_header *h = &scratch->message;
	*h = (struct lccp_header){
		.receptor = LCCP_RECEPTOR_DS,
		.command = (u8)command,
		.flags = command >> 8,
		.flow.be_client_port = p->flow.be_client_port,
		.flow.be_cluster_port = p->frame.tcp->dest,
		.be_data = be_data,
		.tcb = *tcb,
	};
	u32 inner_bytes = p->frame.ip_bytes;
	/*
	 * ADOPT and CLAIM are numbered, so that a lost one is sent again and a repeated one is recognised. So is FORWARD by
	 * way of an owner that lets go (orphans/move.h).
	 */
	bool is_numbered = (u8)command != LCCP_FORWARD || be_data;
	struct channel *channel = is_numbered ? number(to, h) : 0;

	__builtin_memcpy(h->flow.client, p->flow.client, 16);
	map_address(h->flow.cluster, p->frame.ip->daddr);
	lccp_seal(p->settings, to->key, h, between(unmap_address(p->settings->address), unmap_address(to->address)),
		  p->frame.ip, behind_ports(p->frame.tcp));
	if (bpf_xdp_adjust_head(p->ctx, -LCCP_OVERHEAD_BYTES))
		return drop(p, COUNTER_CS_NO_ROOM);
	if (!write_outer(p->ctx, p->settings, to, h, inner_bytes))
		return drop(p, COUNTER_CS_NO_ROOM);
	keep_copy(p, place_of_copy(channel, to, h));
	return send(p->ctx, to);
}

static __always_inline int distribute(struct packet *p, const struct data_server *to, u32 command, __be32 be_data,
				      const struct lccp_tcb *tcb)
{
	return distribute_frame(p->ctx, to, command, be_data, tcb);
}

#endif
