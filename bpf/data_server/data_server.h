/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The data server: a program at tc ingress, in front of the kernel's TCP. It adopts connections into
 * the ordinary server's listener and keeps everything else for the cluster address from being answered.
 */
#ifndef BATON_DATA_SERVER_H
#define BATON_DATA_SERVER_H

#include "data_server/deliver.h"
#include "data_server/direct.h"
#include "data_server/packet.h"
#include "data_server/receive_lccp.h"

static __always_inline int malformed_at_ds(struct arrival *a, __be32 address, enum counter why)
{
	return service_at(address, 0) ? discard(a, why) : TCX_GO_ON;
}

/* Whether the packet is for a cluster address, and there was no memory to pull its headers in. */
static __noinline bool is_out_of_reach(struct __sk_buff *skb)
{
	struct iphdr ip;

	return skb->protocol == bpf_htons(ETH_P_IP) && !bpf_skb_load_bytes(skb, sizeof(struct ethhdr), &ip, sizeof(ip)) &&
	       service_at(ip.daddr, 0);
}

/*
 * Runs the stages of a frame: `verdict` is what becomes of it, or the stage that is next, and a stage may lead to
 * another one.
 */
static __always_inline int next_stage(struct __sk_buff *skb, int verdict)
{
	if (verdict == STAGE_LCCP)
		verdict = verify_message(skb);
	if (verdict == STAGE_MESSAGE)
		verdict = receive_message(skb);
	if (verdict == STAGE_DIRECT)
		verdict = receive_direct(skb);
	if (verdict == STAGE_OWNED)
		verdict = receive_owned(skb);
	return verdict == STAGE_STRAY ? receive_stray(skb) : verdict;
}

/*
 * Finds out what the frame is. Returns what becomes of it, or which stage is next: that stage is not called from here,
 * so it has the whole stack.
 */
static __noinline int look_at_frame(struct __sk_buff *skb)
{
	u32 zero = 0;
	struct arrival a = {
		.skb = skb,
		.settings = bpf_map_lookup_elem(&settings, &zero),
		.counters = counters_of_this_cpu(),
	};
	const struct service *service;
	struct frame f;
	int verdict;

	if (!a.settings || !a.counters)
		return TCX_GO_ON;
	/*
	 * The frame is of another VLAN: the kernel has put the tag aside. On the VLAN's own interface the tag is gone.
	 */
	if (skb->vlan_present)
		return TCX_GO_ON;
	/* Headers beyond the linear part are pulled in, or stay unreadable: parse_frame says which. */
	if (skb->data_end - skb->data < HEADERS_MAX && skb->data_end - skb->data < skb->len)
		bpf_skb_pull_data(skb, skb->len < HEADERS_MAX ? skb->len : HEADERS_MAX);

	switch (parse_frame((void *)(long)skb->data, (void *)(long)skb->data_end, skb->len,
			    a.settings->protocol, &f)) {
	case FRAME_TCP:
		service = service_at(f.ip->daddr, f.tcp->dest);
		verdict = service ? deliver(&a, &f, service) : TCX_GO_ON;
		break;
	case FRAME_LCCP:
		verdict = receive_lccp_at_ds(&a, &f);
		break;
	case FRAME_IPIP:
		verdict = leave_to(STAGE_DIRECT, &a, 0);
		break;
	case FRAME_BAD_IP:
		return malformed_at_ds(&a, f.ip->daddr, COUNTER_BAD_IP);
	case FRAME_BAD_TCP:
		return malformed_at_ds(&a, f.ip->daddr, COUNTER_BAD_TCP);
	case FRAME_FRAGMENT:
		/*
		 * No node cuts a message in pieces. The kernel would put such pieces together, and they would reach the
		 * daemon unseen.
		 */
		if (f.ip->protocol == a.settings->protocol)
			return discard(&a, COUNTER_FRAGMENT);
		return malformed_at_ds(&a, f.ip->daddr, COUNTER_FRAGMENT);
	case FRAME_NOT_LINEAR:
		return is_out_of_reach(skb) ? discard(&a, COUNTER_NOT_LINEAR) : TCX_GO_ON;
	default:
		return TCX_GO_ON;
	}
	return verdict;
}

SEC("tcx/ingress")
int baton_ds(struct __sk_buff *skb)
{
	return next_stage(skb, look_at_frame(skb));
}

#endif
