/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A connect() to the outside goes to the agent's port on loopback, and the address that the program wanted is noted.
 * The SYN does not arrive there (hold.h); it only tells the agent.
 */
#ifndef BATON_VIRTUAL_SOCKETS_CONNECT_H
#define BATON_VIRTUAL_SOCKETS_CONNECT_H

#include "virtual_sockets/socket.h"

static __always_inline bool is_direct(const struct words *wanted)
{
	struct app_direct_key key = { .bits = 128 };

	__builtin_memcpy(key.ip, wanted->w, sizeof(key.ip));
	return is_any(wanted) || is_loopback(wanted) || bpf_map_lookup_elem(&app_direct, &key);
}

/*
 * Whether the far end must have an IPv4 loopback address. A bound socket can only reach its own family:
 * ::ffff:127.0.0.1 cannot reach ::1.
 */
static __always_inline bool meets_over_v4(const struct app_socket *s, const struct words *wanted)
{
	if (!(s->flags & APP_SOCKET_BOUND))
		return is_mapped(wanted);
	struct words local = words_of(&s->local);
	return is_mapped(&local) || (is_any(&local) && !(s->flags & APP_SOCKET_ONLY_IPV6));
}

/* Returns ALLOW, and sets `*through` if the connection is to go to the agent. */
static __always_inline int call(struct bpf_sock_addr *ctx, const struct words *wanted, struct words *through)
{
	const struct app_settings *settings = app_settings_now();

	if (!has_agent(settings)) {
		app_count(COUNTER_APP_CONNECT_NO_AGENT);
		return refuse(E_NET_UNREACHABLE);
	}
	struct app_socket *s = noted(ctx->sk);
	if (!s) {
		app_count(COUNTER_APP_NO_MEMORY);
		return refuse(E_NO_MEMORY);
	}
	s->peer = address_of(wanted, ctx->user_port);
	s->cookie = bpf_get_socket_cookie(ctx);
	s->flags = (s->flags & ~APP_SOCKET_ANSWERED) | APP_SOCKET_CALLS;
	*through = meets_over_v4(s, wanted) ? mapped(LOOPBACK_V4)
					    : (struct words){ .w = { 0, 0, 0, bpf_htonl(1) } };
	ctx->user_port = settings->be_agent_port;
	app_count(COUNTER_APP_CONNECT);
	return ALLOW;
}

/*
 * Leaves a connect() alone. The socket may have tried to connect before, in vain, so what was noted then no longer
 * holds.
 */
static __always_inline int left_alone(struct bpf_sock_addr *ctx)
{
	struct app_socket *s = known(ctx->sk);

	if (s)
		s->flags &= ~(APP_SOCKET_CALLS | APP_SOCKET_ANSWERED);
	app_count(COUNTER_APP_CONNECT_DIRECT);
	return ALLOW;
}

/* `is_v4` is known at compile time: a hook may write only addresses of its own family. */
static __always_inline int connect_to(struct bpf_sock_addr *ctx, const struct words *wanted, bool is_v4)
{
	struct words through = {};

	if (!is_tcp(ctx) || !ctx->sk)
		return ALLOW;
	if (is_direct(wanted))
		return left_alone(ctx);
	if (call(ctx, wanted, &through) == REFUSE)
		return REFUSE;
	if (is_v4)
		ctx->user_ip4 = LOOPBACK_V4;
	else
		give_v6(ctx, &through);
	return ALLOW;
}

SEC("cgroup/connect4")
int baton_app_connect4(struct bpf_sock_addr *ctx)
{
	struct words wanted = given_v4(ctx);

	return connect_to(ctx, &wanted, true);
}

SEC("cgroup/connect6")
int baton_app_connect6(struct bpf_sock_addr *ctx)
{
	struct words wanted = given_v6(ctx);

	return connect_to(ctx, &wanted, false);
}

/*
 * Refuses MPTCP sockets: they would be made of parts that these hooks do not see. Programs that ask for one fall back
 * to TCP.
 */
SEC("cgroup/sock_create")
int baton_app_create(struct bpf_sock *sk)
{
	if (sk->protocol != PROTOCOL_MPTCP)
		return ALLOW;
	app_count(COUNTER_APP_NO_MPTCP);
	return refuse(E_NO_PROTOCOL);
}

#endif
