/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* REFUSED: the client's packet goes back to the connection server, which tries another data server. */
#ifndef BATON_DS_REFUSE_H
#define BATON_DS_REFUSE_H

#include "packet.h"
#include "../lccp.h"

static __always_inline bool turn_around(struct __sk_buff *skb)
{
	struct ethhdr eth;
	__be32 addresses[2];
	const u32 addresses_at = sizeof(struct ethhdr) + __builtin_offsetof(struct iphdr, saddr);

	if (bpf_skb_load_bytes(skb, 0, &eth, sizeof(eth)) ||
	    bpf_skb_load_bytes(skb, addresses_at, addresses, sizeof(addresses)))
		return false;

	u8 mac[ETH_ALEN];
	__builtin_memcpy(mac, eth.h_dest, ETH_ALEN);
	__builtin_memcpy(eth.h_dest, eth.h_source, ETH_ALEN);
	__builtin_memcpy(eth.h_source, mac, ETH_ALEN);
	/* Swapped addresses leave the header's checksum as it was. */
	__be32 swapped[2] = { addresses[1], addresses[0] };
	return !bpf_skb_store_bytes(skb, 0, &eth, sizeof(eth), 0) &&
	       !bpf_skb_store_bytes(skb, addresses_at, swapped, sizeof(swapped), 0);
}

static __always_inline int refuse(struct arrival *a, struct lccp_header *h, enum lccp_refusal why)
{
	count(a->counters, COUNTER_DS_REFUSED);
	h->receptor = LCCP_RECEPTOR_CS;
	h->command = LCCP_REFUSED;
	h->be_data = bpf_htonl(why);
	lccp_seal(a->settings, h);
	if (!turn_around(a->skb) || bpf_skb_store_bytes(a->skb, LCCP_AT, h, sizeof(*h), 0))
		return TCX_DISCARD;
	return bpf_redirect(a->skb->ifindex, 0);
}

#endif
