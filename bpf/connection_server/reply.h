/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Segments that the connection server itself sends to clients: SYN-ACK (begin/syn.h), RST, and the answer to a keep-alive
 * probe (begin/probe.h).
 */
#ifndef BATON_CONNECTION_SERVER_REPLY_H
#define BATON_CONNECTION_SERVER_REPLY_H

#include "connection_server/carried.h"
#include "include/checksum.h"
#include "xdp/packet.h"

enum {
	REPLY_HEADERS = sizeof(struct iphdr) + sizeof(struct tcphdr),
	REPLY_OPTIONS = 20,
	TTL = 64,
};

struct segment {
	struct iphdr ip;
	struct tcphdr tcp;
	u8 options[REPLY_OPTIONS]; /* unused ones are zero, so that the checksum may run over all */
};

static __always_inline void swap_macs(struct ethhdr *eth)
{
	u8 mac[ETH_ALEN];

	__builtin_memcpy(mac, eth->h_dest, ETH_ALEN);
	__builtin_memcpy(eth->h_dest, eth->h_source, ETH_ALEN);
	__builtin_memcpy(eth->h_source, mac, ETH_ALEN);
}

/*
 * Returns the XDP action that sends the frame back to its client. `eth` is its Ethernet header, with the MAC addresses
 * already swapped.
 */
static __always_inline int send_back(const struct packet *p, const struct ethhdr *eth)
{
	u32 to = client_interface(p->ctx, p->settings, eth->h_source);

	return to == p->ctx->ingress_ifindex ? XDP_TX : bpf_redirect(to, 0);
}

/*
 * Makes the frame `bytes` long: cuts it at its tail, or extends it at its head. XDP guarantees room in front of a frame,
 * but there is often none behind one that veth or generic XDP has made of an skb (kernel: skb_pp_cow_data). After it was
 * extended, only the Ethernet header is in place.
 */
static __always_inline bool resize(struct xdp_md *ctx, u32 bytes)
{
	void *data = (void *)(long)ctx->data, *data_end = (void *)(long)ctx->data_end;
	long more = (long)bytes - (long)bpf_xdp_get_buff_len(ctx);
	struct ethhdr *old = data;

	if (more == 0)
		return true;
	if (more < 0)
		return bpf_xdp_adjust_tail(ctx, more) == 0;
	if ((void *)(old + 1) > data_end)
		return false;
	struct ethhdr eth = *old;
	if (bpf_xdp_adjust_head(ctx, -more))
		return false;
	struct ethhdr *new = (void *)(long)ctx->data;
	if ((void *)(new + 1) > (void *)(long)ctx->data_end)
		return false;
	*new = eth;
	return true;
}

/* Writes `segment` behind the Ethernet header, and cuts the frame behind the segment's first `bytes` bytes. */
static __always_inline bool write_segment(struct xdp_md *ctx, const struct segment *segment, u32 bytes)
{
	if (!resize(ctx, sizeof(struct ethhdr) + sizeof(*segment)))
		return false;
	void *at = (void *)(long)ctx->data + sizeof(struct ethhdr);
	if (at + sizeof(*segment) > (void *)(long)ctx->data_end)
		return false;
	__builtin_memcpy(at, segment, sizeof(*segment));
	return resize(ctx, sizeof(struct ethhdr) + bytes);
}

/*
 * Sends `segment` to the client of the packet. Its flags, numbers, window and options are set; this sets everything else.
 * `bytes` counts IP header, TCP header and options. Returns the XDP action.
 */
static __noinline int reply(struct packet *p, struct segment *segment, u32 bytes)
{
	struct frame *f = &p->frame;

	segment->ip.version = 4;
	segment->ip.ihl = sizeof(struct iphdr) / 4;
	segment->ip.tot_len = bpf_htons(bytes);
	segment->ip.frag_off = bpf_htons(0x4000);
	segment->ip.ttl = TTL;
	segment->ip.protocol = IPPROTO_TCP;
	segment->ip.saddr = f->ip->daddr;
	segment->ip.daddr = f->ip->saddr;
	segment->ip.check = checksum_fold(checksum_words((u32 *)&segment->ip, 5));

	segment->tcp.source = f->tcp->dest;
	segment->tcp.dest = f->tcp->source;
	segment->tcp.doff = (bytes - sizeof(struct iphdr)) / 4;
	u64 pseudo = (u64)segment->ip.saddr + segment->ip.daddr +
		     bpf_htonl(IPPROTO_TCP << 16 | (bytes - sizeof(struct iphdr)));
	segment->tcp.check = checksum_fold(pseudo + checksum_words((u32 *)&segment->tcp, 10));

	swap_macs(f->eth);
	int verdict = send_back(p, f->eth);
	return write_segment(p->ctx, segment, bytes) ? verdict : drop(p, COUNTER_CS_NO_ROOM);
}

/*
 * Answers with a RST (RFC 9293, 3.5.2). A RST gets none, nor does a packet that a data server has sent back: its Ethernet
 * addresses do not lead to the client.
 */
static __noinline int send_reset(struct packet *p)
{
	struct tcphdr *tcp = p->frame.tcp;
	struct segment segment = {};

	if (tcp->rst || was_carried(p->ctx))
		return XDP_DROP;
	segment.tcp.rst = 1;
	if (tcp->ack) {
		segment.tcp.seq = tcp->ack_seq;
	} else {
		segment.tcp.ack = 1;
		segment.tcp.ack_seq = bpf_htonl(bpf_ntohl(tcp->seq) + p->frame.payload + tcp->syn + tcp->fin);
	}
	return reply(p, &segment, REPLY_HEADERS);
}

/* Counts `why`, and answers with a RST if the packet can get one. */
static __always_inline int reset(struct packet *p, enum counter why)
{
	count(p->counters, why);
	return send_reset(p);
}

#endif
