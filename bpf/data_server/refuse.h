/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* REFUSED: the client's packet goes back to the connection server, which tries another data server. */
#ifndef BATON_DATA_SERVER_REFUSE_H
#define BATON_DATA_SERVER_REFUSE_H

#include "data_server/door/doors.h"
#include "data_server/local_connection_server.h"
#include "data_server/packet.h"
#include "data_server/send.h"
#include "lccp/seal.h"

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

/*
 * Sends REFUSED to the connection server that the ADOPT names, which need not be its sender. If this node knows no way
 * to it, REFUSED goes back to where the ADOPT came from: on one LAN that is the same node, unless the ADOPT is a
 * handover's.
 */
static __always_inline int refuse(struct arrival *a, struct lccp_header *h, const struct inner *in,
				  enum lccp_refusal why)
{
	__be32 asker_address = h->be_data;
	const struct data_server *asker = peer(asker_address);

	count(a->counters, COUNTER_DS_REFUSED);
	forget_beginning(h);
	/* The node that keeps the packet's data hears of it from the data server that takes the connection. */
	if (h->flags & LCCP_FLAG_KEPT) {
		h->flags = 0;
		h->tcb.be_resume = 0;
	}
	if (is_own_cs(asker))
		return refused_here(a, h, in, asker, why);
	h->receptor = LCCP_RECEPTOR_CS;
	h->command = LCCP_REFUSED;
	h->be_data = bpf_htonl(why);
	if (asker) {
		if (!make_message(a, h, in, asker, asker_address))
			return TCX_DISCARD;
		return bpf_redirect(asker->ifindex, 0);
	}
	const struct peer_keys *shared = bpf_map_lookup_elem(&peer_keys, &a->sender);
	if (!shared || (asker_address && asker_address != a->sender))
		return discard(a, COUNTER_DS_NO_WAY);
	seal_at_ds(a, shared->key[0], h, between(own_address(a), a->sender), bpf_ntohs(in->ip.tot_len));
	if (!turn_around(a->skb) || bpf_skb_store_bytes(a->skb, LCCP_AT, h, sizeof(*h), 0))
		return TCX_DISCARD;
	return bpf_redirect(a->skb->ifindex, 0);
}

#endif
