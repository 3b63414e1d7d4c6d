/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Packets of connections that are here already. All others go back, or end in silence. */
#ifndef BATON_DS_DELIVER_H
#define BATON_DS_DELIVER_H

#include "asked.h"
#include "handover.h"
#include "none.h"
#include "own_cs.h"
#include "packet.h"
#include "send.h"
#include "told_end.h"
#include "yielding.h"

/*
 * To this socket and no other. The kernel takes packets in batches: this program has seen all of a batch
 * before TCP sees the first. If that is the RST of a handover, the socket will be gone when TCP comes to
 * this packet, and would be asked for in vain: a RST would go to the client. Binding a packet to its
 * socket costs a route look-up, so it is done only where connections are handed over. False if the
 * socket is gone already: the kernel refuses one that has left its tables, which on another processor it
 * does shortly before its state says so.
 */
static __always_inline bool keep_for(struct arrival *a, struct bpf_sock *sk)
{
	if (sk->state == STATE_TIME_WAIT || !handed_over_lately())
		return true;
	/* In a test run, where packets come in nowhere, no socket can be assigned. */
	return bpf_sk_assign(a->skb, sk, 0) == 0 || !a->skb->ingress_ifindex;
}

/* FORWARD: the packet is a connection's that is here, or with the data server that the message names. */
static __always_inline int deliver_forwarded(struct arrival *a, struct lccp_header *h, const struct inner *in)
{
	struct bpf_sock *sk = lookup(a->skb, in->ip.saddr, in->ip.daddr, in->tcp.source, in->tcp.dest);
	bool here = is_connection(sk);
	/* It has let go, and the socket is about to end. */
	bool has_let_go = here && h->flags & LCCP_FLAG_BEHIND && was_handed_over(h, in);
	bool kept = here && !has_let_go && !(h->flags & LCCP_FLAG_BEHIND) && keep_for(a, sk);

	if (kept) {
		note_asked_inside(a, sk, in);
		note_end(h, in);
	}
	if (sk)
		bpf_sk_release(sk);
	if (here && !has_let_go) {
		if (h->flags & LCCP_FLAG_BEHIND)
			return discard(a, COUNTER_DS_BEHIND);
		if (!kept)
			return discard(a, COUNTER_DS_NO_SOCKET);
		if (!strip(a->skb))
			return TCX_DISCARD;
		count(a->counters, COUNTER_DS_FORWARDED);
		return TCX_GO_ON;
	}
	__be32 next_address = h->be_data;
	if (!next_address)
		return send_none(a, h, in);
	struct passage passage = { peer(next_address), next_address, COUNTER_DS_PASSED_ON };
	h->be_data = 0;
	h->flags = 0;
	h->tcb.attempt = 1;
	return send_message(a, h, in, &passage);
}

/* The connection server on this LAN that sent the frame; 0 if it was somebody else. */
static __always_inline __be32 sender_of(const struct ethhdr *eth)
{
	struct sender_key key = {};

	__builtin_memcpy(key.mac, eth->h_source, ETH_ALEN);
	__be32 *short_address = bpf_map_lookup_elem(&senders, &key);
	return short_address ? *short_address : 0;
}

/* The same for a packet without a message around it. Strangers get no answer. */
static __always_inline int bounce(struct arrival *a, const struct frame *f)
{
	struct lccp_header h = {
		.receptor = LCCP_RECEPTOR_CS,
		.command = LCCP_NONE,
		.be_data = bpf_htonl(LCCP_NONE_PLAIN),
		.flow.be_client_port = f->tcp->source,
		.flow.be_cluster_port = f->tcp->dest,
	};
	u32 inner_bytes = f->ip_bytes;

	/* A RST needs no owner, and what GRO has merged does not fit. */
	if (f->tcp->rst || f->tcp->syn || a->skb->gso_segs > 1)
		return discard(a, COUNTER_DS_NO_SOCKET);
	a->sender = sender_of(f->eth);
	const struct data_server *asker = peer(a->sender);
	if (!asker)
		return discard(a, COUNTER_DS_NO_SOCKET);
	map_address(h.flow.client, f->ip->saddr);
	map_address(h.flow.cluster, f->ip->daddr);
	if (bpf_skb_adjust_room(a->skb, OUTER_BYTES, BPF_ADJ_ROOM_MAC, BPF_F_ADJ_ROOM_FIXED_GSO))
		return discard(a, COUNTER_DS_NO_SOCKET);
	if (is_own_cs(asker))
		return none_here(a, &h, inner_bytes);
	seal_at_ds(a, asker->key, &h, between(own_address(a), a->sender), inner_bytes);
	if (!write_outer_at_ds(a, asker, a->sender, &h, inner_bytes))
		return discard(a, COUNTER_DS_NO_SOCKET);
	count(a->counters, COUNTER_DS_NONE);
	return bpf_redirect(asker->ifindex, 0);
}

enum {
	OTHER_HOST = 3, /* PACKET_OTHERHOST, include/uapi/linux/if_packet.h */
};

/*
 * A switch that has forgotten where a connection server is sends what is for it to all. The kernel takes no such frame,
 * so nothing has come by it. In a test run, where packets come in nowhere, all would seem so.
 */
static __always_inline bool is_for_another(const struct __sk_buff *skb)
{
	return skb->pkt_type == OTHER_HOST && skb->ingress_ifindex;
}

/*
 * A data server never sends a RST for a connection it does not own, and its kernel would: so what
 * finds no socket, or only a listener, goes no further.
 */
static __always_inline int deliver(struct arrival *a, const struct frame *f)
{
	if (is_for_another(a->skb))
		return TCX_GO_ON;
	struct bpf_sock *sk = lookup(a->skb, f->ip->saddr, f->ip->daddr, f->tcp->source, f->tcp->dest);
	bool here = is_connection(sk);
	bool kept = here && keep_for(a, sk);

	if (kept && f->payload)
		note_asked(a->skb, sk, sizeof(struct ethhdr) + f->ip_header + f->tcp_header,
			   bpf_ntohl(f->tcp->seq), f->payload);
	if (sk)
		bpf_sk_release(sk);
	if (!here)
		return bounce(a, f);
	if (!kept)
		return discard(a, COUNTER_DS_NO_SOCKET);
	if (any_yields())
		note_straight(f->ip, f->tcp);
	count(a->counters, COUNTER_DS_DELIVERED);
	return TCX_GO_ON;
}

#endif
