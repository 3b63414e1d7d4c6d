/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bind() to the any address or to a cluster address means the cluster: the socket is bound to loopback, where only the
 * agent finds it. A dual-stack socket, which takes both families, is bound to ::ffff:127.0.0.1: IPv6 clients also come
 * from the agent, and only their names are IPv6.
 */
#ifndef BATON_VIRTUAL_SOCKETS_BIND_H
#define BATON_VIRTUAL_SOCKETS_BIND_H

#include "virtual_sockets/socket.h"

/* include/net/sock.h; the struct has a suffix because kernel.h lists other fields of the same struct. */
struct sock_common___bind {
	unsigned char skc_ipv6only : 1;
} __inner;

static __always_inline bool is_only_ipv6(struct bpf_sock *sk)
{
	struct sock_common___bind *common = (void *)bpf_skc_to_tcp_sock(sk);

	return common && BPF_CORE_READ_BITFIELD_PROBED(common, skc_ipv6only);
}

/* Whether the wanted address is one of the cluster. */
static __always_inline bool is_for_cluster(const struct words *wanted)
{
	struct app_address key = address_of(wanted, 0);

	return is_any(wanted) || bpf_map_lookup_elem(&app_cluster, &key);
}

/* The families whose port a cluster address needs: a socket that takes both families needs the port in both. */
static __always_inline u32 families(const struct words *wanted, u32 flags)
{
	if (!(flags & APP_SOCKET_IPV6) || is_mapped(wanted))
		return APP_FAMILY_V4;
	return flags & APP_SOCKET_ONLY_IPV6 || !is_any(wanted) ? APP_FAMILY_V6 : APP_FAMILY_V4 | APP_FAMILY_V6;
}

/*
 * Whether the port is taken at the I/O server, which says so beforehand: listen() could not be refused, because at that
 * time nobody can be asked.
 */
static __always_inline bool is_taken(const struct words *wanted, u32 be_port, u32 flags)
{
	const u32 *taken = bpf_map_lookup_elem(&app_taken, &be_port);

	if (!taken || !be_port || !(*taken & families(wanted, flags)))
		return false;
	app_count(COUNTER_APP_BIND_TAKEN);
	tell((struct app_event){ .at = address_of(wanted, be_port), .kind = APP_EVENT_BIND_TAKEN });
	return true;
}

static __always_inline int bound(struct bpf_sock *sk, const struct words *wanted, u32 be_port, u32 flags)
{
	if (is_taken(wanted, be_port, flags))
		return refuse(E_ADDRESS_IN_USE);
	struct app_socket *s = noted(sk);
	if (!s) {
		app_count(COUNTER_APP_NO_MEMORY);
		return refuse(E_NO_MEMORY);
	}
	s->local = address_of(wanted, be_port);
	s->flags = APP_SOCKET_BOUND | flags;
	app_count(COUNTER_APP_BIND);
	return ALLOW;
}

SEC("cgroup/bind4")
int baton_app_bind4(struct bpf_sock_addr *ctx)
{
	struct words wanted = given_v4(ctx);

	if (!is_tcp(ctx) || !ctx->sk)
		return ALLOW;
	if (!is_for_cluster(&wanted)) {
		app_count(COUNTER_APP_BIND_DIRECT);
		return ALLOW;
	}
	ctx->user_ip4 = LOOPBACK_V4;
	return bound(ctx->sk, &wanted, ctx->user_port, 0);
}

SEC("cgroup/bind6")
int baton_app_bind6(struct bpf_sock_addr *ctx)
{
	struct words wanted = given_v6(ctx), loopback = { .w = { 0, 0, 0, bpf_htonl(1) } };
	u32 flags = APP_SOCKET_IPV6;

	if (!is_tcp(ctx) || !ctx->sk)
		return ALLOW;
	if (!is_for_cluster(&wanted)) {
		app_count(COUNTER_APP_BIND_DIRECT);
		return ALLOW;
	}
	if (is_only_ipv6(ctx->sk))
		flags |= APP_SOCKET_ONLY_IPV6;
	else if (is_any(&wanted) || is_mapped(&wanted))
		loopback = mapped(LOOPBACK_V4);
	give_v6(ctx, &loopback);
	return bound(ctx->sk, &wanted, ctx->user_port, flags);
}

#endif
