/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The program at tc egress looks at what leaves a data server. It is attached where a service of this node has
 * handovers or `resume`. The kernel has not cut large sends into segments there yet, so in most of a download one look
 * is enough for many packets.
 */
#ifndef BATON_DATA_SERVER_EGRESS_H
#define BATON_DATA_SERVER_EGRESS_H

#include "data_server/door/acknowledged.h"
#include "data_server/fence.h"
#include "data_server/packet.h"
#include "data_server/response/response.h"

SEC("tcx/egress")
int baton_head(struct __sk_buff *skb)
{
	/* The kernel's own TCP keeps all headers in the linear part. */
	void *data = (void *)(long)skb->data, *data_end = (void *)(long)skb->data_end;
	struct ethhdr *eth = data;
	struct iphdr *ip = data + sizeof(*eth);
	struct tcphdr *tcp = (void *)(ip + 1);

	if (skb->vlan_present)
		return TCX_GO_ON;
	if ((void *)(tcp + 1) > data_end || eth->h_proto != bpf_htons(ETH_P_IP) || ip->version != 4 ||
	    ip->ihl != sizeof(*ip) / 4 || ip->protocol != IPPROTO_TCP)
		return TCX_GO_ON;
	u32 at = sizeof(*eth) + sizeof(*ip) + tcp->doff * 4, seq = bpf_ntohl(tcp->seq);
	bool has_data = skb->len > at;
	if (!has_data && !tcp->fin && !tcp->rst)
		return TCX_GO_ON;
	struct bpf_sock *sk = skb->sk ? bpf_sk_fullsock(skb->sk) : 0;
	if (!sk)
		return TCX_GO_ON;
	if (has_data) {
		struct leaving l = { .skb = skb, .at = at, .bytes = skb->len - at, .response = response_on(sk, ip, tcp) };

		if (l.response && l.response->state != RESPONSE_UNKNOWN)
			follow_response(&l, seq);
		if (l.response && l.response->acknowledged)
			acknowledge_all(skb, l.response);
	}
	if (may_speak(sk))
		return TCX_GO_ON;
	struct bpf_tcp_sock *connection = bpf_tcp_sock(sk);
	return connection ? ask_client(skb, connection->snd_una, !connection->packets_out) : TCX_DISCARD;
}

#endif
