/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A client's packet without a message around it, as a connection server on this LAN forwards it; and how it gets a
 * message around it.
 */
#ifndef BATON_DATA_SERVER_PLAIN_H
#define BATON_DATA_SERVER_PLAIN_H

#include "data_server/local_connection_server.h"
#include "data_server/none.h"
#include "data_server/packet.h"
#include "data_server/send.h"

/* Returns the connection server on this LAN that sent the frame; 0 if it was somebody else. */
static __always_inline __be32 sender_of(const struct ethhdr *eth)
{
	struct sender_key key = {};

	__builtin_memcpy(key.mac, eth->h_source, ETH_ALEN);
	__be32 *short_address = bpf_map_lookup_elem(&senders, &key);
	return short_address ? *short_address : 0;
}

/*
 * Describes a plain packet as one inside a message is described, with a message header that says only which connection
 * the packet belongs to. 0: there is no scratch.
 */
static __always_inline struct scratch *name_plain(const struct iphdr *ip, const struct tcphdr *tcp, u32 ip_header)
{
	struct scratch *s = scratch_of_this_cpu();

	if (!s)
		return 0;
	s->packet.ip = *ip;
	s->packet.tcp = *tcp;
	s->packet.tcp_at = sizeof(struct ethhdr) + ip_header;
	__builtin_memset(&s->header, 0, sizeof(s->header));
	map_address(s->header.flow.client, ip->saddr);
	map_address(s->header.flow.cluster, ip->daddr);
	s->header.flow.be_client_port = tcp->source;
	s->header.flow.be_cluster_port = tcp->dest;
	return s;
}

static __always_inline struct scratch *plain_packet(const struct frame *f)
{
	return name_plain(f->ip, f->tcp, f->ip_header);
}

/* Whether the client's packet is inside a message. */
static __always_inline bool is_wrapped(const struct inner *in)
{
	return in->tcp_at >= INNER_AT;
}

/*
 * Whether the kernel has merged the packet from several segments. Where a header was taken off the packet, the kernel
 * forgets how many segments there are, but not how long they are.
 */
static __always_inline bool is_merged_plain(const struct arrival *a, const struct inner *in)
{
	return a->skb->gso_segs > 1 || (a->skb->gso_size && payload_of(in) > a->skb->gso_size);
}

/*
 * Makes room for a message's headers around the packet. False if the kernel has merged it: it is too large for a
 * message.
 */
static __always_inline bool make_room(struct arrival *a, struct inner *in)
{
	if (is_wrapped(in))
		return true;
	if (is_merged_plain(a, in) || bpf_skb_adjust_room(a->skb, OUTER_BYTES, BPF_ADJ_ROOM_MAC, BPF_F_ADJ_ROOM_FIXED_GSO))
		return false;
	in->tcp_at += OUTER_BYTES;
	return true;
}

/* Takes a message's headers off the packet, if it is inside a message. */
static __always_inline bool unwrap(struct arrival *a, struct inner *in)
{
	if (!is_wrapped(in))
		return true;
	in->tcp_at -= OUTER_BYTES;
	return strip(a->skb);
}

/* Answers a plain packet of a connection that is not here with NONE. Only connection servers get an answer. */
static __noinline int bounce(struct arrival *a, struct lccp_header *h, struct inner *in)
{
	const struct data_server *asker = peer(a->sender);

	/* A RST is dropped, because it needs no owner. */
	if (!asker || in->tcp.rst || in->tcp.syn || !make_room(a, in))
		return discard(a, COUNTER_DS_NO_SOCKET);
	h->receptor = LCCP_RECEPTOR_CS;
	h->command = LCCP_NONE;
	h->be_data = bpf_htonl(LCCP_NONE_PLAIN);
	if (is_own_cs(asker))
		return none_here(a, h, in);
	if (!make_message(a, h, in, asker, a->sender))
		return TCX_DISCARD;
	count(a->counters, COUNTER_DS_NONE);
	return bpf_redirect(asker->ifindex, 0);
}

/* Handles a plain packet of a connection that is not here. */
__noinline int receive_stray(struct __sk_buff *skb)
{
	struct scratch *s = scratch_of_this_cpu();
	struct arrival a;

	if (!s || !resume_arrival(&a, skb, s))
		return TCX_DISCARD;
	return bounce(&a, &s->header, &s->packet);
}

#endif
