/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Options that a program sets on its socket and that matter where its client is. They are noted and told to the agent,
 * which has the I/O server set them on the client's connection. The program's own socket has them too, so getsockopt()
 * needs no help. SO_LINGER is not among them: a close() that resets is seen as the reset that it is.
 */
#ifndef BATON_VIRTUAL_SOCKETS_OPTIONS_H
#define BATON_VIRTUAL_SOCKETS_OPTIONS_H

#include "virtual_sockets/socket.h"

/* include/uapi/asm-generic/socket.h, include/uapi/linux/tcp.h */
enum {
	LEVEL_SOCKET = 1,
	LEVEL_TCP = 6,
	NAME_SEND_BUFFER = 7,
	NAME_RECEIVE_BUFFER = 8,
	NAME_KEEPALIVE = 9,
	NAME_NODELAY = 1,
	NAME_KEEP_IDLE = 4,
	NAME_KEEP_INTERVAL = 5,
	NAME_KEEP_PROBES = 6,
	NAME_USER_TIMEOUT = 18,
};

/*
 * Tells the agent of a connection's options, and names it by its cookie rather than by its ends, which a later
 * connection may have: a program can set options of a socket whose connection has ended, and the agent hears of them a
 * moment later.
 */
static __always_inline void tell_options(const struct app_socket *s)
{
	struct app_event event = { .cookie = s->cookie, .options = s->options, .kind = APP_EVENT_OPTIONS };

	if (!tell(event))
		app_count(COUNTER_APP_OPTION_LOST);
}

/* Returns the bit of enum app_option; 0 for an option that matters only here. */
static __always_inline u32 option_named(s32 level, s32 name)
{
	if (level == LEVEL_SOCKET) {
		switch (name) {
		case NAME_SEND_BUFFER:
			return APP_OPTION_SEND_BUFFER;
		case NAME_RECEIVE_BUFFER:
			return APP_OPTION_RECEIVE_BUFFER;
		case NAME_KEEPALIVE:
			return APP_OPTION_KEEPALIVE;
		}
	} else if (level == LEVEL_TCP) {
		switch (name) {
		case NAME_NODELAY:
			return APP_OPTION_NODELAY;
		case NAME_KEEP_IDLE:
			return APP_OPTION_KEEP_IDLE;
		case NAME_KEEP_INTERVAL:
			return APP_OPTION_KEEP_INTERVAL;
		case NAME_KEEP_PROBES:
			return APP_OPTION_KEEP_PROBES;
		case NAME_USER_TIMEOUT:
			return APP_OPTION_USER_TIMEOUT;
		}
	}
	return 0;
}

static __always_inline void note_option(struct app_options *options, u32 option, u32 value)
{
	options->given |= option;
	if (option == APP_OPTION_NODELAY || option == APP_OPTION_KEEPALIVE) {
		options->on = value ? options->on | option : options->on & ~option;
		return;
	}
	for (u32 i = 0; i < APP_OPTION_NUMBERS; i++)
		if (option == (u32)APP_OPTION_KEEP_IDLE << i)
			options->number[i] = value;
}

/* Notes options with the listener, from which accepted connections inherit them. */
static __always_inline void tell_of_listener(const struct app_socket *s)
{
	u64 cookie = s->cookie;
	struct app_listener *listener = bpf_map_lookup_elem(&app_listeners, &cookie);

	if (!listener)
		return;
	listener->options = s->options;
	/* If the ring is full, the agent finds it: it looks at the map from time to time. */
	tell((struct app_event){ .cookie = cookie, .kind = APP_EVENT_LISTENERS });
}

SEC("cgroup/setsockopt")
int baton_app_option(struct bpf_sockopt *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	u32 option = option_named(ctx->level, ctx->optname);
	u32 *value = ctx->optval;
	bool whole = (void *)(value + 1) <= ctx->optval_end;

	/* The kernel has to take the program's own bytes, even if there are more than this hook is shown. */
	ctx->optlen = 0;
	if (!option || !whole || !sk || sk->type != TYPE_STREAM || sk->protocol != IPPROTO_TCP)
		return ALLOW;
	struct app_socket *s = noted(sk);
	if (!s) {
		app_count(COUNTER_APP_NO_MEMORY);
		return ALLOW;
	}
	app_count(COUNTER_APP_OPTION);
	note_option(&s->options, option, *value);
	if (sk->state == STATE_LISTEN)
		tell_of_listener(s);
	else if (s->flags & (APP_SOCKET_CALLS | APP_SOCKET_ANSWERED))
		tell_options(s);
	return ALLOW;
}

#endif
