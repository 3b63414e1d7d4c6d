/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The SYN cookie: the connection server keeps nothing of a SYN, because all it needs later is in
 * the 32 bits of its own initial sequence number, which the client's first data acknowledges:
 *
 *     31              8 7   5 4      1    0
 *    |  MAC (SipHash)  | MSS | wscale | SACK |
 *
 * Timestamps need no bit: once negotiated they are in every segment (RFC 7323, 3.2). The MAC covers
 * addresses, ports, the client's ISN, the low byte and the period, so that a cookie is good for this
 * connection only, and for one to two periods (4.6 minutes each): longer than any server waits for
 * a first request.
 */
#ifndef BATON_INCLUDE_COOKIE_H
#define BATON_INCLUDE_COOKIE_H

#include "abi/abi.h"
#include "include/clock.h"
#include "include/kernel.h"
#include "include/siphash.h"
#include "include/tcp_options.h"

enum {
	COOKIE_PERIOD_SHIFT = 38,  /* of wall clock nanoseconds: 275 s */
	COOKIE_LOW_BITS = 0xff,
};

struct cookie_flow {
	__be32 client;
	__be32 cluster;
	__be16 client_port;
	__be16 cluster_port;
	u32 client_isn;
};

/*
 * The MSS steps of a cookie. A client's MSS is rounded down to one of them, so it never is above what the client
 * announced, except that the kernel makes no socket with less than 536.
 */
static __always_inline u16 cookie_mss(u8 index)
{
	switch (index & 7) {
	case 7: return 8960;
	case 6: return 1460;
	case 5: return 1440;
	case 4: return 1400;
	case 3: return 1360;
	case 2: return 1300;
	case 1: return 1200;
	default: return 536;
	}
}

static __always_inline u8 cookie_mss_index(u16 mss)
{
	u8 index = 0;

#pragma unroll
	for (int i = 1; i < 8; i++)
		index += mss >= cookie_mss(i);
	return index;
}

static __always_inline u64 cookie_period(const struct settings *s)
{
	return wall_clock(s) >> COOKIE_PERIOD_SHIFT;
}

/*
 * The MAC of a cookie. The upper 24 bits of the result's lower half are the MAC in the cookie; the upper half is the
 * cookie's tag, which nobody outside ever sees. The function is global so that it is verified by itself.
 */
__noinline u64 cookie_hash(const struct siphash_key *key, const struct cookie_flow *f, u64 period, u8 low)
{
	if (!key || !f)
		return 0;
	u64 words[3] = {
		(u64)f->client << 32 | f->cluster,
		(u64)f->client_isn << 32 | (u32)f->client_port << 16 | f->cluster_port,
		period << 8 | low,
	};

	return siphash(key, words, 3) & ~(u64)COOKIE_LOW_BITS;
}

static __always_inline u32 cookie_make(const struct settings *s, const struct cookie_flow *f,
				       const struct tcp_options *o)
{
	u8 low = cookie_mss_index(o->mss) << 5 | o->wscale << 1 | o->sack;

	return (u32)cookie_hash(siphash_key(s->cookie_key[0]), f, cookie_period(s), low) | low;
}

/* The tag if `cookie` was made under this key in this period, else 0. */
static __always_inline u32 cookie_tried(const u64 key[2], const struct cookie_flow *f, u64 period, u32 cookie)
{
	u64 hash = cookie_hash(siphash_key(key), f, period, cookie & COOKIE_LOW_BITS);

	return (u32)hash == (cookie & ~COOKIE_LOW_BITS) ? hash >> 32 | 1 : 0;
}

/*
 * The tag of `cookie` if it was made for this flow, under this key or the previous one, not long ago; else 0. The same
 * cookie of the same flow always has the same tag.
 */
static __always_inline u32 cookie_tag(const struct settings *s, const struct cookie_flow *f, u32 cookie)
{
	u64 period = cookie_period(s);
	u32 tag = cookie_tried(s->cookie_key[0], f, period, cookie);

	if (!tag)
		tag = cookie_tried(s->cookie_key[0], f, period - 1, cookie);
	if (tag || !(s->cookie_key[1][0] | s->cookie_key[1][1]))
		return tag;
	tag = cookie_tried(s->cookie_key[1], f, period, cookie);
	return tag ? tag : cookie_tried(s->cookie_key[1], f, period - 1, cookie);
}

/* Writes what the cookie says into an empty `tcb`. RFC 7323, 2.2: window scales are for both directions or none. */
static __always_inline void cookie_open(u32 cookie, u8 rcv_wscale, struct lccp_tcb *tcb)
{
	u8 wscale = cookie >> 1 & 15;

	tcb->be_mss = bpf_htons(cookie_mss(cookie >> 5 & 7));
	tcb->options |= cookie & 1 ? LCCP_TCB_SACK : 0;
	if (wscale != WSCALE_NONE) {
		tcb->snd_wscale = wscale;
		tcb->rcv_wscale = rcv_wscale;
		tcb->options |= LCCP_TCB_WSCALE;
	}
}

#endif
