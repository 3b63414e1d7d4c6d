/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets that an aware client sends here itself, from behind a router: inside another packet to this node's own
 * address (RFC 2003). They are protected by no key, and need none: such a packet is treated as any that comes to the
 * cluster address, and is only for a connection that is here already. What comes in one client's name from another
 * address is refused. Otherwise filters against forged addresses would be in vain.
 */
#ifndef BATON_DATA_SERVER_DIRECT_H
#define BATON_DATA_SERVER_DIRECT_H

#include "data_server/deliver.h"
#include "data_server/packet.h"
#include "data_server/plain.h"

enum {
	DIRECT_AT = sizeof(struct ethhdr) + sizeof(struct iphdr),
};

struct direct {
	struct iphdr outer;
	struct iphdr ip;
	struct tcphdr tcp;
};

/*
 * Reads the headers of the packet and of the one inside. False if it is not an aware client's, but belongs to a tunnel
 * of this host's own.
 */
static __always_inline bool open_direct(struct arrival *a, struct direct *d)
{
	if (bpf_skb_load_bytes(a->skb, sizeof(struct ethhdr), d, sizeof(d->outer) + sizeof(d->ip)))
		return false;
	if (d->outer.ihl != sizeof(struct iphdr) / 4 || d->outer.daddr != unmap_address(a->settings->address) ||
	    d->ip.version != 4 || d->ip.ihl < sizeof(struct iphdr) / 4 || d->ip.protocol != IPPROTO_TCP ||
	    bpf_skb_load_bytes(a->skb, DIRECT_AT + d->ip.ihl * 4, &d->tcp, sizeof(d->tcp)))
		return false;
	struct service_key key = service_key(d->ip.daddr, d->tcp.dest);
	return bpf_map_lookup_elem(&services, &key) != 0;
}

static __always_inline bool is_in_order(const struct direct *d)
{
	u32 bytes = bpf_ntohs(d->ip.tot_len);

	return !((d->outer.frag_off | d->ip.frag_off) & bpf_htons(0x3fff)) && d->ip.saddr == d->outer.saddr &&
	       bytes + sizeof(struct iphdr) == bpf_ntohs(d->outer.tot_len) &&
	       d->tcp.doff >= sizeof(struct tcphdr) / 4 && (d->ip.ihl + d->tcp.doff) * 4 <= bytes &&
	       !d->tcp.syn;
}

static __always_inline bool take_out_direct(struct arrival *a)
{
	return !bpf_skb_adjust_room(a->skb, -(int)sizeof(struct iphdr), BPF_ADJ_ROOM_MAC, BPF_F_ADJ_ROOM_FIXED_GSO);
}

/*
 * Takes the outer packet off. From here on this is a plain packet, and its connection's door says what becomes of it
 * (owned.h).
 */
static __always_inline int leave_to_door(struct arrival *a, const struct direct *d)
{
	if (!take_out_direct(a) || !name_plain(&d->ip, &d->tcp, d->ip.ihl * 4))
		return TCX_DISCARD;
	count(a->counters, COUNTER_DS_DIRECT);
	return leave_to(STAGE_OWNED, a, 0);
}

__noinline int receive_direct(struct __sk_buff *skb)
{
	struct scratch *s = scratch_of_this_cpu();
	struct arrival arrival, *a = &arrival;
	struct direct d;

	if (!s || !resume_arrival(a, skb, s))
		return TCX_DISCARD;
	if (!open_direct(a, &d))
		return TCX_GO_ON;
	if (!is_in_order(&d))
		return discard(a, COUNTER_DS_DIRECT_REFUSED);
	if (is_owners(d.ip.daddr, d.tcp.dest))
		return leave_to_door(a, &d);
	struct bpf_sock *sk = lookup(a->skb, d.ip.saddr, d.ip.daddr, d.tcp.source, d.tcp.dest);
	bool here = is_connection(sk);

	if (sk)
		bpf_sk_release(sk);
	/* The packet is dropped silently: the client's next retransmission goes to the connection server. */
	if (!here)
		return discard(a, COUNTER_DS_NO_SOCKET);
	if (!take_out_direct(a))
		return TCX_DISCARD;
	count(a->counters, COUNTER_DS_DIRECT);
	return TCX_GO_ON;
}

#endif
