/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds a connection whose data server is this very node. The node looks up its own sockets and sends itself no CLAIM,
 * because a node's messages to itself do not come by its network card.
 */
#ifndef BATON_CONNECTION_SERVER_FIND_LOCAL_DATA_SERVER_H
#define BATON_CONNECTION_SERVER_FIND_LOCAL_DATA_SERVER_H

#include "connection_server/find/enter.h"
#include "include/socket_lookup.h"
#include "xdp/packet.h"

/* Whether this node has the packet's connection. Makes an entry for it, unless the packet is a RST. */
static __noinline bool found_here(struct packet *p)
{
	const struct frame *f = &p->frame;
	struct bpf_sock_tuple tuple = {
		.ipv4.saddr = f->ip->saddr,
		.ipv4.daddr = f->ip->daddr,
		.ipv4.sport = f->tcp->source,
		.ipv4.dport = f->tcp->dest,
	};
	bool found = false;

	if (!(p->settings->roles & ROLE_DS))
		return false;
	struct bpf_sock *sk =
		bpf_skc_lookup_tcp(p->ctx, &tuple, sizeof(tuple.ipv4), BPF_F_CURRENT_NETNS, 0);
	if (!sk)
		return false;
	struct tcp_sock *tcp = claimed_socket(sk, f->tcp);
	if (tcp) {
		struct lccp_tcb part = part_of(tcp);
		u32 owner = data_server_at(unmap_address(p->settings->address));
		found = owner != NO_DATA_SERVER &&
			(f->tcp->rst || !enter(p, f->tcp, f->payload, owner, p->service, &part));
	}
	bpf_sk_release(sk);
	return found;
}

#endif
