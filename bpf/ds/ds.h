/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The data server: a program at tc ingress, in front of the kernel's TCP. It adopts connections into
 * the ordinary server's listener and keeps everything else for the cluster address from being answered.
 */
#ifndef BATON_DS_H
#define BATON_DS_H

#include "deliver.h"
#include "direct.h"
#include "packet.h"
#include "receive_lccp.h"

static __always_inline bool is_service(__be32 address, __be16 port)
{
	struct service_key key = service_key(address, port);

	return bpf_map_lookup_elem(&services, &key) != 0;
}

static __always_inline int malformed_at_ds(struct arrival *a, __be32 address, enum counter why)
{
	return is_service(address, 0) ? discard(a, why) : TCX_GO_ON;
}

/* No memory was there to pull the headers in. */
static __noinline int headers_out_of_reach_at_ds(struct arrival *a)
{
	struct iphdr ip;

	if (a->skb->protocol != bpf_htons(ETH_P_IP) ||
	    bpf_skb_load_bytes(a->skb, sizeof(struct ethhdr), &ip, sizeof(ip)))
		return TCX_GO_ON;
	return malformed_at_ds(a, ip.daddr, COUNTER_NOT_LINEAR);
}

/*
 * The frames of a chain of calls may have 512 bytes together. This one, below all others, has the message: what
 * is large besides is in functions of its own, and no address of `f` is passed on, or it were in memory.
 */
SEC("tcx/ingress")
int baton_ds(struct __sk_buff *skb)
{
	u32 zero = 0;
	struct arrival a = {
		.skb = skb,
		.settings = bpf_map_lookup_elem(&settings, &zero),
		.counters = counters_of_this_cpu(),
	};
	struct frame f;

	if (!a.settings || !a.counters)
		return TCX_GO_ON;
	/* Of another VLAN: the kernel has put the tag aside. On the VLAN's own interface it is gone. */
	if (skb->vlan_present)
		return TCX_GO_ON;
	/* Headers beyond the linear part are pulled in, or stay unreadable: parse_frame says which. */
	if (skb->data_end - skb->data < HEADERS_MAX && skb->data_end - skb->data < skb->len)
		bpf_skb_pull_data(skb, skb->len < HEADERS_MAX ? skb->len : HEADERS_MAX);

	switch (parse_frame((void *)(long)skb->data, (void *)(long)skb->data_end, skb->len,
			    a.settings->protocol, &f)) {
	case FRAME_TCP:
		if (!is_service(f.ip->daddr, f.tcp->dest))
			return TCX_GO_ON;
		return deliver(&a, &f);
	case FRAME_LCCP:
		return receive_lccp_at_ds(&a, &f);
	case FRAME_IPIP:
		return receive_direct(&a);
	case FRAME_BAD_IP:
		return malformed_at_ds(&a, f.ip->daddr, COUNTER_BAD_IP);
	case FRAME_BAD_TCP:
		return malformed_at_ds(&a, f.ip->daddr, COUNTER_BAD_TCP);
	case FRAME_FRAGMENT:
		/* No node cuts a message in pieces. Put together by the kernel, they would reach the daemon unseen. */
		if (f.ip->protocol == a.settings->protocol)
			return discard(&a, COUNTER_FRAGMENT);
		return malformed_at_ds(&a, f.ip->daddr, COUNTER_FRAGMENT);
	case FRAME_NOT_LINEAR:
		return headers_out_of_reach_at_ds(&a);
	default:
		return TCX_GO_ON;
	}
}

#endif
