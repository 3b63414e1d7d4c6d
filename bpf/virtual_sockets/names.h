/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * getsockname(), getpeername() and the address that accept() returns, which the kernel asks for in the same way: the
 * program gets the address that it meant, not the one that the kernel uses.
 */
#ifndef BATON_VIRTUAL_SOCKETS_NAMES_H
#define BATON_VIRTUAL_SOCKETS_NAMES_H

#include "virtual_sockets/socket.h"

/* Whether the socket has another local name than the kernel's, and which. */
static __always_inline bool local_name(struct bpf_sock_addr *ctx, struct app_address *name)
{
	struct app_socket *s = ctx->sk ? known(ctx->sk) : NULL;

	/* A socket without a port is not bound: bind() has failed. */
	if (!s || !(s->flags & (APP_SOCKET_BOUND | APP_SOCKET_ANSWERED)) || !ctx->user_port)
		return false;
	*name = s->local;
	if (!name->be_port)
		name->be_port = ctx->user_port;
	return true;
}

static __always_inline bool peer_name(struct bpf_sock_addr *ctx, struct app_address *name)
{
	struct app_socket *s = ctx->sk ? known(ctx->sk) : NULL;

	if (!s || !(s->flags & (APP_SOCKET_CALLS | APP_SOCKET_ANSWERED)))
		return false;
	*name = s->peer;
	return true;
}

/* `is_v4` is known at compile time: a hook may write only addresses of its own family. */
static __always_inline int give_name(struct bpf_sock_addr *ctx, const struct app_address *name, bool is_v4)
{
	struct words words = words_of(name);

	if (is_v4)
		give_v4(ctx, &words);
	else
		give_v6(ctx, &words);
	ctx->user_port = name->be_port;
	return ALLOW;
}

SEC("cgroup/getsockname4")
int baton_app_sockname4(struct bpf_sock_addr *ctx)
{
	struct app_address name;

	return local_name(ctx, &name) ? give_name(ctx, &name, true) : ALLOW;
}

SEC("cgroup/getsockname6")
int baton_app_sockname6(struct bpf_sock_addr *ctx)
{
	struct app_address name;

	return local_name(ctx, &name) ? give_name(ctx, &name, false) : ALLOW;
}

SEC("cgroup/getpeername4")
int baton_app_peername4(struct bpf_sock_addr *ctx)
{
	struct app_address name;

	return peer_name(ctx, &name) ? give_name(ctx, &name, true) : ALLOW;
}

SEC("cgroup/getpeername6")
int baton_app_peername6(struct bpf_sock_addr *ctx)
{
	struct app_address name;

	return peer_name(ctx, &name) ? give_name(ctx, &name, false) : ALLOW;
}

#endif
