/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The congestion window travels with a connection: what its path has carried does not change with the
 * server. Only a sockops program may set it, at the moment when the new socket is made; until then it is
 * in a map. Without such a program (no cgroup v2) connections begin slowly after a handover.
 */
#ifndef BATON_DATA_SERVER_ADOPT_WINDOW_H
#define BATON_DATA_SERVER_ADOPT_WINDOW_H

#include "data_server/announce_owner.h"
#include "data_server/door/asked.h"
#include "data_server/packet.h"

enum {
	AF_INET_FAMILY = 2,
	AF_INET6_FAMILY = 10,
	WORTH_GIVING = 20, /* segments: a new connection begins with 10 (RFC 6928), and doubles that at once */
};

/*
 * Returns the congestion window that goes with the connection, in network byte order; 0 if it is too small to be worth
 * giving, or stale: the kernel itself forgets the window of a connection idle for so long (RFC 5681, 4.1).
 */
static __always_inline __be16 window_to_give(const struct tcp_sock *sk)
{
	u32 idle = (u32)bpf_jiffies64() - sk->lsndtime;
	u32 window = sk->snd_cwnd;

	if (window < WORTH_GIVING || idle > sk->inet_conn.icsk_rto)
		return 0;
	return bpf_htons(window < 0xffff ? window : 0xffff);
}

static __noinline void expect(struct __sk_buff *skb, const struct lccp_header *h, const struct inner *in)
{
	struct expected with = {
		.window = bpf_ntohs(h->tcb.be_cwnd),
		.aware = h->tcb.options & LCCP_TCB_AWARE,
		.bodiless = begins_with_head(skb, in->tcp_at + in->tcp.doff * 4, payload_of(in)),
	};
	struct tcb_key flow = flow_of(h);

	/* An entry that is there belongs to a socket that was not made. */
	if (!with.window && !with.aware && !with.bodiless)
		bpf_map_delete_elem(&expected, &flow);
	else
		bpf_map_update_elem(&expected, &flow, &with, BPF_ANY);
}

static __always_inline void give_window(struct bpf_sock_ops *ops, int window)
{
	struct counters *counters = counters_of_this_cpu();

	if (window && !bpf_setsockopt(ops, IPPROTO_TCP, TCP_BPF_IW, &window, sizeof(window)) && counters)
		count(counters, COUNTER_DS_WINDOW);
}

/* Notes that the first response on this new socket has no body. Nothing of it has left yet. False: there is no memory. */
static __always_inline bool begin_bodiless(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;
	struct response *r = sk ? new_response(sk) : 0;

	if (r)
		r->bodiless = 1;
	return r;
}

/* Gives an accepted connection of this node what came with it, if it was adopted. */
static __always_inline void take_expected(struct bpf_sock_ops *ops)
{
	struct tcb_key flow = {
		.cluster = ops->local_ip4,
		.be_client_port = ops->remote_port >> 16,
		.be_cluster_port = bpf_htons(ops->local_port),
	};

	map_address(flow.client, ops->remote_ip4);
	struct expected *found = bpf_map_lookup_elem(&expected, &flow);
	if (!found)
		return;
	struct expected with = *found;
	/* What cannot be noted stays in the map, for came_with_head(). */
	if (!with.bodiless || begin_bodiless(ops))
		bpf_map_delete_elem(&expected, &flow);
	give_window(ops, with.window);
	if (with.aware)
		begin_to_tell(ops);
}

/*
 * Whether the connection is over IPv4. Many servers listen on one IPv6 socket for both. The kernel then writes a
 * client's IPv4 address as ::ffff:a.b.c.d, and has it as an IPv4 address as well.
 */
static __always_inline bool is_over_ipv4(struct bpf_sock_ops *ops)
{
	u32 a = ops->remote_ip6[0], b = ops->remote_ip6[1], c = ops->remote_ip6[2];

	return ops->family == AF_INET_FAMILY ||
	       (ops->family == AF_INET6_FAMILY && !(a | b) && c == bpf_htonl(0xffff));
}

static __always_inline bool is_of_this_node(struct bpf_sock_ops *ops)
{
	u32 zero = 0;
	const struct settings *s = bpf_map_lookup_elem(&settings, &zero);

	return is_over_ipv4(ops) && s && s->netns == bpf_get_netns_cookie(ops);
}

/* This program sees the sockets of every namespace in its control group. */
SEC("sockops")
int baton_window(struct bpf_sock_ops *ops)
{
	switch (ops->op) {
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		if (is_of_this_node(ops))
			take_expected(ops);
		break;
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
		make_room_to_tell(ops);
		break;
	case BPF_SOCK_OPS_WRITE_HDR_OPT_CB:
		tell(ops);
		break;
	}
	return 1;
}

#endif
