/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Packets of connections that are here already. All others go back, or end in silence. */
#ifndef BATON_DS_DELIVER_H
#define BATON_DS_DELIVER_H

#include "asked.h"
#include "handover.h"
#include "none.h"
#include "own_cs.h"
#include "owned.h"
#include "packet.h"
#include "send.h"
#include "told_end.h"
#include "yielding.h"

/* FORWARD: the packet is a connection's that is here, or with the data server that the message names. */
static __always_inline int deliver_forwarded(struct arrival *a, struct lccp_header *h, struct inner *in)
{
	if (is_owners(in->ip.daddr, in->tcp.dest))
		return leave_to(STAGE_OWNED, a, h->tcb.attempt ? 0 : a->sender);
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
	__be32 next_address = h->flags & LCCP_FLAG_KEPT ? 0 : h->be_data;
	if (!next_address)
		return send_none(a, h, in);
	struct passage passage = { peer(next_address), next_address, COUNTER_DS_PASSED_ON };
	h->be_data = 0;
	h->flags = 0;
	h->tcb.attempt = 1;
	return send_message(a, h, in, &passage);
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
static __always_inline int deliver(struct arrival *a, const struct frame *f, const struct service *service)
{
	if (is_for_another(a->skb))
		return TCX_GO_ON;
	if (service->flags & SERVICE_OWNER) {
		if (!plain_packet(f))
			return TCX_DISCARD;
		take_mark(a);
		a->sent_in = sent_in_as(a->skb);
		a->sender = sender_of(f->eth);
		if (any_yields())
			note_straight(f->ip, f->tcp);
		return leave_to(STAGE_OWNED, a, a->sender);
	}
	struct bpf_sock *sk = lookup(a->skb, f->ip->saddr, f->ip->daddr, f->tcp->source, f->tcp->dest);
	bool here = is_connection(sk);
	bool kept = here && keep_for(a, sk);

	if (kept && f->payload)
		note_asked(a->skb, sk, sizeof(struct ethhdr) + f->ip_header + f->tcp_header,
			   bpf_ntohl(f->tcp->seq), f->payload);
	if (sk)
		bpf_sk_release(sk);
	if (!here) {
		if (!plain_packet(f))
			return TCX_DISCARD;
		a->sender = sender_of(f->eth);
		return leave_to(STAGE_STRAY, a, 0);
	}
	if (!kept)
		return discard(a, COUNTER_DS_NO_SOCKET);
	if (any_yields())
		note_straight(f->ip, f->tcp);
	count(a->counters, COUNTER_DS_DELIVERED);
	return TCX_GO_ON;
}

#endif
