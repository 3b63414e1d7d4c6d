/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Packets of connections that are here already. All others end in silence. */
#ifndef BATON_DS_DELIVER_H
#define BATON_DS_DELIVER_H

#include "packet.h"

/*
 * A data server never sends a RST for a connection it does not own, and its kernel would: so what
 * finds no socket, or only a listener, goes no further.
 */
static __always_inline int deliver(struct arrival *a, const struct iphdr *ip, const struct tcphdr *tcp)
{
	struct bpf_sock *sk = lookup(a->skb, ip->saddr, ip->daddr, tcp->source, tcp->dest);

	if (!sk)
		return discard(a, COUNTER_DS_NO_SOCKET);
	u32 state = sk->state;
	bpf_sk_release(sk);
	if (state == STATE_LISTEN)
		return discard(a, COUNTER_DS_NO_SOCKET);
	count(a->counters, COUNTER_DS_DELIVERED);
	return TCX_GO_ON;
}

#endif
