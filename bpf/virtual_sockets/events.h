/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Follows what happens to the programs' sockets: they listen, are accepted, connect and end, also by kill -9. */
#ifndef BATON_VIRTUAL_SOCKETS_EVENTS_H
#define BATON_VIRTUAL_SOCKETS_EVENTS_H

#include "virtual_sockets/hold.h"
#include "virtual_sockets/options.h"

static __always_inline struct words own_end(struct bpf_sock_ops *ops)
{
	if (ops->family != FAMILY_V6)
		return mapped(FIXED(ops->local_ip4));
	return (struct words){ .w = { FIXED(ops->local_ip6[0]), FIXED(ops->local_ip6[1]), FIXED(ops->local_ip6[2]),
				      FIXED(ops->local_ip6[3]) } };
}

static __always_inline struct words other_end(struct bpf_sock_ops *ops)
{
	if (ops->family != FAMILY_V6)
		return mapped(FIXED(ops->remote_ip4));
	return (struct words){ .w = { FIXED(ops->remote_ip6[0]), FIXED(ops->remote_ip6[1]),
				      FIXED(ops->remote_ip6[2]), FIXED(ops->remote_ip6[3]) } };
}

static __always_inline void follow(struct bpf_sock_ops *ops)
{
	bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_STATE_CB_FLAG);
}

static __always_inline void listens(struct bpf_sock_ops *ops, struct app_socket *s)
{
	u64 cookie = bpf_get_socket_cookie(ops);
	u32 be_port = bpf_htons(ops->local_port);
	struct words own = own_end(ops);

	if (!s || !(s->flags & APP_SOCKET_BOUND)) {
		app_count(COUNTER_APP_LISTEN_DIRECT);
		return;
	}
	struct app_listener listener = {
		.at = address_of(&own, be_port),
		.wanted = s->local,
		.flags = s->flags,
	};
	listener.wanted.be_port = be_port;
	s->cookie = cookie;
	listener.options = s->options;
	follow(ops);
	if (bpf_map_update_elem(&app_listeners, &cookie, &listener, BPF_ANY)) {
		app_count(COUNTER_APP_LISTEN_FULL);
		return;
	}
	app_count(COUNTER_APP_LISTEN);
	/* A full ring loses no listener: the agent also looks at the map from time to time. */
	tell((struct app_event){ .cookie = cookie, .kind = APP_EVENT_LISTENERS });
}

/* Runs before accept() can see the connection, whose lock is still held. */
static __always_inline void accepted(struct bpf_sock_ops *ops, struct bpf_sock *sk)
{
	struct words other = other_end(ops);
	struct app_address agent = address_of(&other, ops->remote_port >> 16);
	const struct app_arrival *arrival = bpf_map_lookup_elem(&app_arrivals, &agent);

	if (!arrival) {
		app_count(COUNTER_APP_ACCEPTED_DIRECT);
		return;
	}
	struct app_socket *s = noted(sk);
	if (s) {
		s->local = arrival->local;
		s->peer = arrival->peer;
		s->cookie = arrival->number;
		s->flags = APP_SOCKET_ANSWERED;
		app_count(COUNTER_APP_ACCEPTED);
	} else {
		app_count(COUNTER_APP_NO_MEMORY);
	}
	bpf_map_delete_elem(&app_arrivals, &agent);
}

static __always_inline void connected(struct bpf_sock_ops *ops, struct app_socket *s, u64 cookie)
{
	const struct app_address *local = bpf_map_lookup_elem(&app_answers, &cookie);

	if (local) {
		s->local = *local;
		s->flags |= APP_SOCKET_ANSWERED;
		bpf_map_delete_elem(&app_answers, &cookie);
	}
	app_count(COUNTER_APP_CONNECTED);
	/* Tells the options that were set since the agent heard of the call. */
	if (s->options.given)
		tell_options(s);
}

/* Handles a change of state, `from` one TCP state `to` another. */
static __always_inline void changed(struct bpf_sock_ops *ops, struct app_socket *s, u32 from, u32 to)
{
	u64 cookie = bpf_get_socket_cookie(ops);

	if (from == STATE_LISTEN && !bpf_map_delete_elem(&app_listeners, &cookie)) {
		app_count(COUNTER_APP_LISTEN_ENDED);
		tell((struct app_event){ .cookie = cookie, .kind = APP_EVENT_LISTENERS });
	}
	if (!s || !(s->flags & APP_SOCKET_CALLS))
		return;
	if (to == STATE_ESTABLISHED)
		connected(ops, s, cookie);
	if (from == STATE_SYN_SENT && to == STATE_CLOSE) {
		app_count(COUNTER_APP_CALL_ENDED);
		tell((struct app_event){ .cookie = cookie, .kind = APP_EVENT_CALL_ENDED });
	}
}

SEC("sockops")
int baton_app_events(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;

	if (!sk)
		return 1;
	switch (ops->op) {
	case BPF_SOCK_OPS_TCP_LISTEN_CB:
		listens(ops, known(sk));
		break;
	case BPF_SOCK_OPS_TCP_CONNECT_CB: {
		const struct app_socket *s = known(sk);
		if (s && s->flags & APP_SOCKET_CALLS)
			follow(ops);
		break;
	}
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB: {
		/* This is also reached if both ends connect at the same time. */
		const struct app_socket *s = known(sk);
		if (!s || !(s->flags & APP_SOCKET_CALLS))
			accepted(ops, sk);
		break;
	}
	case BPF_SOCK_OPS_STATE_CB:
		changed(ops, known(sk), ops->args[0], ops->args[1]);
		break;
	}
	return 1;
}

#endif
