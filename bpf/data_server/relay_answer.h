/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The answers of a server in a container, to which the daemon relays in the clients' names. Their destination
 * is the client, so the kernel would forward them to it. A packet that one of the relay's sockets waits for is
 * marked, and a routing rule for the mark keeps it on this host. Every other packet goes its usual way.
 */
#ifndef BATON_DATA_SERVER_RELAY_ANSWER_H
#define BATON_DATA_SERVER_RELAY_ANSWER_H

#include "data_server/packet.h"

/* Returns the mark of a connection's socket, also of one in TIME_WAIT; 0 for anything else. */
static __always_inline u32 mark_of(struct bpf_sock *sk)
{
	if (sk->state == STATE_TIME_WAIT) {
		struct tcp_timewait_sock *timewait = bpf_skc_to_tcp_timewait_sock(sk);

		return timewait ? timewait->tw_sk.tw_mark : 0;
	}
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);

	return tcp ? ((struct sock *)tcp)->sk_mark : 0;
}

SEC("tcx/ingress")
int baton_relay_answer(struct __sk_buff *skb)
{
	if (skb->data_end - skb->data < HEADERS_MAX && skb->data_end - skb->data < skb->len)
		bpf_skb_pull_data(skb, skb->len < HEADERS_MAX ? skb->len : HEADERS_MAX);

	struct frame f;

	if (parse_frame((void *)(long)skb->data, (void *)(long)skb->data_end, skb->len, 0, &f) != FRAME_TCP)
		return TCX_GO_ON;
	struct bpf_sock *sk = lookup(skb, f.ip->saddr, f.ip->daddr, f.tcp->source, f.tcp->dest);
	if (!sk)
		return TCX_GO_ON;
	bool waited_for = mark_of(sk) == MARK_RELAY_SOCKET;
	bpf_sk_release(sk);
	if (!waited_for)
		return TCX_GO_ON;
	skb->mark = MARK_RELAY_LOCAL;
	struct counters *counters = counters_of_this_cpu();
	if (counters)
		count(counters, COUNTER_DS_RELAY_ANSWER);
	return TCX_GO_ON;
}

#endif
