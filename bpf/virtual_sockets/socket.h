/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Addresses as the hooks of a control group see them, and what is noted about a socket. */
#ifndef BATON_VIRTUAL_SOCKETS_SOCKET_H
#define BATON_VIRTUAL_SOCKETS_SOCKET_H

#include "virtual_sockets/maps.h"

/* include/uapi/linux/in.h, asm-generic/errno.h: values of system calls and their errors. */
enum {
	ALLOW = 1,
	REFUSE = 0,
	TYPE_STREAM = 1,
	FAMILY_V6 = 10,
	PROTOCOL_MPTCP = 262,
	E_NO_MEMORY = 12,
	E_NO_PROTOCOL = 93,
	E_ADDRESS_IN_USE = 98,
	E_NET_UNREACHABLE = 101,
};

#define LOOPBACK_V4 bpf_htonl(0x7f000001)

/*
 * A context or a socket can be read only at fixed offsets. The compiler would merge two loads in different branches
 * into one load at a variable offset.
 */
#define FIXED(word)                             \
	({                                      \
		u32 value_ = (word);            \
		asm volatile("" : "+r"(value_)); \
		value_;                         \
	})

/* An address in words, for the verifier: the words of a hook's context can only be read and written one by one. */
struct words {
	u32 w[4];
};

static __always_inline bool is_mapped(const struct words *a)
{
	return !a->w[0] && !a->w[1] && a->w[2] == bpf_htonl(0xffff);
}

static __always_inline bool is_any(const struct words *a)
{
	return !a->w[0] && !a->w[1] && !a->w[3] && (!a->w[2] || is_mapped(a));
}

static __always_inline bool is_loopback(const struct words *a)
{
	if (is_mapped(a))
		return (a->w[3] & bpf_htonl(0xff000000)) == bpf_htonl(0x7f000000);
	return !a->w[0] && !a->w[1] && !a->w[2] && a->w[3] == bpf_htonl(1);
}

static __always_inline struct words mapped(u32 be_ipv4)
{
	return (struct words){ .w = { 0, 0, bpf_htonl(0xffff), be_ipv4 } };
}

static __always_inline struct app_address address_of(const struct words *a, u32 be_port)
{
	struct app_address address = { .be_port = be_port };

	__builtin_memcpy(address.ip, a->w, sizeof(address.ip));
	return address;
}

static __always_inline struct words words_of(const struct app_address *a)
{
	struct words words;

	__builtin_memcpy(words.w, a->ip, sizeof(words.w));
	return words;
}

/* The address that was given to a hook, as IPv6 words. */
static __always_inline struct words given_v4(struct bpf_sock_addr *ctx)
{
	return mapped(ctx->user_ip4);
}

static __always_inline struct words given_v6(struct bpf_sock_addr *ctx)
{
	return (struct words){ .w = { ctx->user_ip6[0], ctx->user_ip6[1], ctx->user_ip6[2], ctx->user_ip6[3] } };
}

static __always_inline void give_v4(struct bpf_sock_addr *ctx, const struct words *a)
{
	ctx->user_ip4 = a->w[3];
}

static __always_inline void give_v6(struct bpf_sock_addr *ctx, const struct words *a)
{
	ctx->user_ip6[0] = a->w[0];
	ctx->user_ip6[1] = a->w[1];
	ctx->user_ip6[2] = a->w[2];
	ctx->user_ip6[3] = a->w[3];
}

static __always_inline bool is_tcp(const struct bpf_sock_addr *ctx)
{
	return ctx->type == TYPE_STREAM && ctx->protocol == IPPROTO_TCP;
}

static __always_inline const struct app_settings *app_settings_now(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&app_settings, &zero);
}

/* Whether there is a living agent. */
static __always_inline bool has_agent(const struct app_settings *settings)
{
	return settings && settings->alive_until >= bpf_ktime_get_coarse_ns();
}

/* What is noted about a socket; NULL if nothing is. */
static __always_inline struct app_socket *known(void *sk)
{
	return bpf_sk_storage_get(&app_sockets, sk, 0, 0);
}

static __always_inline struct app_socket *noted(void *sk)
{
	return bpf_sk_storage_get(&app_sockets, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
}

/* Makes the system call fail with this error. */
static __always_inline int refuse(int error)
{
	bpf_set_retval(-error);
	return REFUSE;
}

#endif
