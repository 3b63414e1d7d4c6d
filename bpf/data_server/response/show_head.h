/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shows the daemon how a response begins: if this host dies, the response of another one must begin alike. */
#ifndef BATON_DATA_SERVER_RESPONSE_SHOW_HEAD_H
#define BATON_DATA_SERVER_RESPONSE_SHOW_HEAD_H

#include "data_server/response/leaving.h"
#include "include/bounds.h"

/* Shows the head that begins with what has not been read yet. */
static __noinline void show_head(struct leaving *l)
{
	struct __sk_buff *skb = l->skb;
	struct iphdr ip;
	struct tcphdr tcp;
	u64 bytes = l->bytes;

	if (bpf_skb_load_bytes(skb, sizeof(struct ethhdr), &ip, sizeof(ip)) ||
	    bpf_skb_load_bytes(skb, sizeof(struct ethhdr) + sizeof(ip), &tcp, sizeof(tcp)))
		return;
	const struct service *service = service_at(ip.saddr, tcp.source);
	if (!service || !(service->flags & SERVICE_RESUME))
		return;
	struct counters *counters = counters_of_this_cpu();
	if (!counters)
		return;
	struct seen_head *head = bpf_ringbuf_reserve(&seen_heads, sizeof(*head), 0);
	if (!head) {
		count(counters, COUNTER_DS_HEAD_FULL);
		return;
	}
	if (bytes > HEAD_BYTES)
		bytes = HEAD_BYTES;
	if (bpf_skb_load_bytes(skb, l->at, head->text, BOUNDED(bytes, 1, HEAD_BYTES))) {
		bpf_ringbuf_discard(head, 0);
		return;
	}
	name_flow(&head->flow, ip.daddr, tcp.dest, ip.saddr, tcp.source);
	head->response_start = l->response->next - l->bytes;
	head->bytes = bytes;
	head->number = (u8)(l->response->responses + 1);
	bpf_ringbuf_submit(head, 0);
	count(counters, COUNTER_DS_HEAD);
}

#endif
