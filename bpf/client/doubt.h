/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * When a data server does not seem to hear: the connection goes by the connection server again, which finds it
 * by CLAIM, and stays there. What this client sends has timeouts, of which its kernel tells. Its acknowledgements
 * have none; but if they are lost, what has come already comes again, and nothing new.
 */
#ifndef BATON_CLIENT_DOUBT_H
#define BATON_CLIENT_DOUBT_H

#include "maps.h"

enum {
	COMES_AGAIN = 3,               /* segments */
	UNHEARD_NS = 1000000000,       /* for so long */
};

static __always_inline void back_to_connection_server(struct client_socket *socket)
{
	socket->server = 0;
	count_client(CLIENT_RETURNED);
}

/* As this client sends. A hole that stays for so long is as good a reason as any. */
static __always_inline bool is_unheard(struct bpf_sock *sk, struct client_socket *socket)
{
	struct bpf_tcp_sock *tcp = bpf_tcp_sock(sk);
	u64 now = bpf_ktime_get_ns();

	if (!tcp)
		return false;
	if (tcp->rcv_nxt != socket->expected || !socket->since) {
		socket->expected = tcp->rcv_nxt;
		socket->segments = tcp->data_segs_in;
		socket->since = now;
		return false;
	}
	return tcp->data_segs_in - socket->segments >= COMES_AGAIN && now - socket->since > UNHEARD_NS;
}

#endif
