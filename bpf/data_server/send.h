/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Messages that a data server sends: each is the frame that is here, with another header and another receiver. */
#ifndef BATON_DATA_SERVER_SEND_H
#define BATON_DATA_SERVER_SEND_H

#include "data_server/packet.h"
#include "include/checksum.h"
#include "lccp/seal.h"
#include "lccp/send_buffer.h"

static __always_inline const struct data_server *peer(__be32 short_address)
{
	const struct data_server *found = bpf_map_lookup_elem(&peers, &short_address);

	return found && found->flags & DATA_SERVER_PRESENT ? found : 0;
}

/* Writes the headers of a message from here to `to` in front of `inner_bytes` of a client's packet. */
static __noinline bool write_outer_at_ds(struct arrival *a, const struct data_server *to, __be32 daddr,
					 const struct lccp_header *h, u32 inner_bytes)
{
	struct {
		struct ethhdr eth;
		struct iphdr ip;
	} __attribute__((packed)) outer = {
		.eth.h_proto = bpf_htons(ETH_P_IP),
	};
	struct iphdr ip = {
		.version = 4,
		.ihl = sizeof(struct iphdr) / 4,
		.tot_len = bpf_htons(OUTER_BYTES + inner_bytes),
		.frag_off = bpf_htons(0x4000),
		.ttl = 64,
		.protocol = a->settings->protocol,
		.saddr = unmap_address(a->settings->address),
		.daddr = daddr,
	};

	ip.check = checksum_fold(checksum_words((u32 *)&ip, 5));
	__builtin_memcpy(outer.eth.h_dest, to->mac, ETH_ALEN);
	__builtin_memcpy(outer.eth.h_source, to->source_mac, ETH_ALEN);
	outer.ip = ip;
	/* The packet may stay here, without these headers: the sum that a card made of the frame must match them. */
	return !bpf_skb_store_bytes(a->skb, 0, &outer, sizeof(outer), BPF_F_RECOMPUTE_CSUM) &&
	       !bpf_skb_store_bytes(a->skb, LCCP_AT, h, sizeof(*h), BPF_F_RECOMPUTE_CSUM);
}

/*
 * Seals the header of a message under the key that is shared with the receiver. The packet of `inner_bytes` bytes is in
 * the frame already, behind the room for the message's headers, and is read from there, because some of it may have
 * been changed here.
 */
static __noinline void seal_at_ds(struct arrival *a, const u64 key[2], struct lccp_header *h, u64 nodes,
				  u32 inner_bytes)
{
	struct lccp_carried carried;

	read_carried_words(&carried, a->skb, false, inner_bytes);
	lccp_seal(a->settings, key, h, nodes, &carried.ip, &carried.tcp);
}

static __always_inline __be32 own_address(const struct arrival *a)
{
	return unmap_address(a->settings->address);
}

static __always_inline void keep_copy_at_ds(struct arrival *a, struct sent_message *copy)
{
	u64 bytes = a->skb->len;

	if (!copy)
		return;
	copy->bytes = 0;
	if (fits_in_send_buffer(bytes) &&
	    !bpf_skb_load_bytes(a->skb, 0, copy->frame, BOUNDED(bytes, 1, SENT_FRAME_BYTES)))
		copy->bytes = bytes;
	else
		count(a->counters, COUNTER_LCCP_NOT_KEPT);
}

/*
 * Makes the frame a message with this header around `in`, to `to`. ADOPT, and FORWARD, which may be on its way behind
 * an ADOPT, are numbered and kept to be sent again.
 */
static __always_inline bool make_message(struct arrival *a, struct lccp_header *h, const struct inner *in,
					 const struct data_server *to, __be32 to_address)
{
	bool once = h->command == LCCP_ADOPT || h->command == LCCP_FORWARD;
	struct channel *channel = once ? number(to, h) : 0;

	seal_at_ds(a, to->key, h, between(own_address(a), to_address), bpf_ntohs(in->ip.tot_len));
	if (!write_outer_at_ds(a, to, to_address, h, bpf_ntohs(in->ip.tot_len)))
		return false;
	keep_copy_at_ds(a, place_of_copy(channel, to, h));
	return true;
}

/* Sends a copy of the frame to another node, as a message with this header. The frame stays here, with that header. */
static __always_inline bool send_copy(struct arrival *a, struct lccp_header *h, const struct inner *in,
				      const struct data_server *to, __be32 to_address)
{
	return make_message(a, h, in, to, to_address) && bpf_clone_redirect(a->skb, to->ifindex, 0) == 0;
}

/* Where a message goes, and as what it counts. */
struct passage {
	const struct data_server *way; /* 0: no way is known */
	__be32 address;
	enum counter how;
};

static __always_inline int send_message(struct arrival *a, struct lccp_header *h, const struct inner *in,
					const struct passage *passage)
{
	if (!passage->way)
		return discard(a, COUNTER_DS_NO_WAY);
	if (!make_message(a, h, in, passage->way, passage->address))
		return TCX_DISCARD;
	count(a->counters, passage->how);
	return bpf_redirect(passage->way->ifindex, 0);
}

static __always_inline bool is_connection(const struct bpf_sock *sk)
{
	return sk && sk->state != STATE_LISTEN;
}

#endif
