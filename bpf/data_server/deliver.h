/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Delivers packets of connections that are here already. All others go back, or are dropped silently. */
#ifndef BATON_DATA_SERVER_DELIVER_H
#define BATON_DATA_SERVER_DELIVER_H

#include "data_server/door/asked.h"
#include "data_server/door/owned.h"
#include "data_server/fence.h"
#include "data_server/handover/yielding.h"
#include "data_server/local_connection_server.h"
#include "data_server/none.h"
#include "data_server/packet.h"
#include "data_server/send.h"

/* Handles FORWARD: the packet is of a connection that is here, or has been. */
static __always_inline int deliver_forwarded(struct arrival *a, struct lccp_header *h, struct inner *in)
{
	if (is_owners(in->ip.daddr, in->tcp.dest))
		return leave_to(STAGE_OWNED, a, h->tcb.attempt ? 0 : a->sender);
	struct bpf_sock *sk = lookup(a->skb, in->ip.saddr, in->ip.daddr, in->tcp.source, in->tcp.dest);
	bool here = is_connection(sk);

	if (sk)
		bpf_sk_release(sk);
	if (!here)
		return send_none(a, h, in);
	if (!strip(a->skb))
		return TCX_DISCARD;
	count(a->counters, COUNTER_DS_FORWARDED);
	return TCX_GO_ON;
}

enum {
	OTHER_HOST = 3, /* PACKET_OTHERHOST, include/uapi/linux/if_packet.h */
};

/*
 * Whether the frame is for another host. A switch that has forgotten where a connection server is sends what is for it
 * to all hosts. The kernel takes no such frame, so it counts as nothing received. In a test run, where packets come in
 * nowhere, all would seem so.
 */
static __always_inline bool is_for_another(const struct __sk_buff *skb)
{
	return skb->pkt_type == OTHER_HOST && skb->ingress_ifindex;
}

/*
 * A data server never sends a RST for a connection that it does not own, but its kernel would. So a packet that finds
 * no socket, or only a listener, goes no further.
 */
static __always_inline int deliver(struct arrival *a, const struct frame *f, const struct service *service)
{
	if (is_for_another(a->skb))
		return TCX_GO_ON;
	if (service->flags & SERVICE_OWNER) {
		/* The packet is longer than its header can say (IPv4 BIG TCP): its door cannot say where it ends. */
		if (!f->ip->tot_len)
			return discard(a, COUNTER_BAD_IP);
		if (!plain_packet(f))
			return TCX_DISCARD;
		take_mark(a);
		a->sent_in = sent_in_as(a->skb);
		a->sender = sender_of(f->eth);
		if (a->sender)
			hear_connection_server(a->settings);
		if (any_yields())
			note_straight(f->ip, f->tcp);
		return leave_to(STAGE_OWNED, a, a->sender);
	}
	struct bpf_sock *sk = lookup(a->skb, f->ip->saddr, f->ip->daddr, f->tcp->source, f->tcp->dest);
	bool here = is_connection(sk);

	if (sk)
		bpf_sk_release(sk);
	if (!here) {
		if (!plain_packet(f))
			return TCX_DISCARD;
		a->sender = sender_of(f->eth);
		return leave_to(STAGE_STRAY, a, 0);
	}
	count(a->counters, COUNTER_DS_DELIVERED);
	return TCX_GO_ON;
}

#endif
