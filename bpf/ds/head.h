/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How responses begin, seen as they leave: should this host die, another one's must begin alike. Attached only
 * where a service of this node has `resume`, at tc egress, where the kernel has not cut large sends into
 * segments yet: so most of a download is one look for many packets. A packet that does not begin with
 * "HTTP/1." ends here without a lookup. A body may as well: such a head is at a place where no response
 * begins, which the connection server knows.
 */
#ifndef BATON_DS_HEAD_H
#define BATON_DS_HEAD_H

#include "packet.h"
#include "../bounds.h"
#include "../cs/packet.h"
#include "../cs/request.h"

static __always_inline void show_head(struct __sk_buff *skb, const struct iphdr *ip, const struct tcphdr *tcp,
				      u32 at)
{
	struct counters *counters = counters_of_this_cpu();
	struct seen_head *head = bpf_ringbuf_reserve(&seen_heads, sizeof(*head), 0);
	u64 bytes = skb->len - at;

	if (!counters || !head) {
		if (head)
			bpf_ringbuf_discard(head, 0);
		if (counters)
			count(counters, COUNTER_DS_HEAD_FULL);
		return;
	}
	if (bytes > HEAD_BYTES)
		bytes = HEAD_BYTES;
	if (bpf_skb_load_bytes(skb, at, head->text, BOUNDED(bytes, 1, HEAD_BYTES))) {
		bpf_ringbuf_discard(head, 0);
		return;
	}
	name_flow(&head->flow, ip->daddr, tcp->dest, ip->saddr, tcp->source);
	head->response_start = bpf_ntohl(tcp->seq);
	head->bytes = bytes;
	bpf_ringbuf_submit(head, 0);
	count(counters, COUNTER_DS_HEAD);
}

SEC("tcx/egress")
int baton_head(struct __sk_buff *skb)
{
	/* The kernel's own TCP keeps all headers in the linear part. */
	void *data = (void *)(long)skb->data, *data_end = (void *)(long)skb->data_end;
	struct ethhdr *eth = data;
	struct iphdr *ip = data + sizeof(*eth);
	struct tcphdr *tcp = (void *)(ip + 1);
	u64 first;

	if (skb->vlan_present)
		return TCX_GO_ON;
	if ((void *)(tcp + 1) > data_end || eth->h_proto != bpf_htons(ETH_P_IP) || ip->version != 4 ||
	    ip->ihl != sizeof(*ip) / 4 || ip->protocol != IPPROTO_TCP)
		return TCX_GO_ON;
	u32 at = sizeof(*eth) + sizeof(*ip) + tcp->doff * 4;
	if (skb->len < at + sizeof(first) || bpf_skb_load_bytes(skb, at, &first, sizeof(first)) ||
	    (first & FIRST(7)) != LETTERS('H', 'T', 'T', 'P', '/', '1', '.', 0))
		return TCX_GO_ON;
	const struct service *service = service_at(ip->saddr, tcp->source);
	if (service && service->flags & SERVICE_RESUME)
		show_head(skb, ip, tcp, at);
	return TCX_GO_ON;
}

#endif
