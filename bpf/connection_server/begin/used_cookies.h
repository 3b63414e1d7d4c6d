/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Cookies with which a connection has begun here. Each cookie begins one connection only. Otherwise whoever has seen a
 * client's first segment could send it again while the cookie is valid, and have its request done twice. Memory is
 * bounded: a set forgets its oldest cookie when another one comes. An attacker who chooses which cookies are
 * remembered cannot choose which ones are forgotten, because the cookie finds its set, and the cookie is a MAC.
 */
#ifndef BATON_CONNECTION_SERVER_BEGIN_USED_COOKIES_H
#define BATON_CONNECTION_SERVER_BEGIN_USED_COOKIES_H

#include "include/bounds.h"
#include "include/cookie.h"
#include "xdp/packet.h"

enum {
	COOKIE_SET_SHIFT = 32 - USED_COOKIE_SET_BITS, /* the set's number: a cookie's highest bits, which are MAC */
};

/* The tag of the cookie that this packet acknowledges, if the cookie is valid for this client ISN; else 0. */
static __always_inline u32 tag_of_cookie(struct packet *p, u32 client_isn)
{
	const struct tcphdr *tcp = p->frame.tcp;
	struct cookie_flow flow = {
		.client = p->frame.ip->saddr,
		.cluster = p->frame.ip->daddr,
		.client_port = tcp->source,
		.cluster_port = tcp->dest,
		.client_isn = client_isn,
	};

	return cookie_tag(p->settings, &flow, bpf_ntohl(tcp->ack_seq) - 1);
}

static __always_inline struct used_cookies *set_of(u32 cookie)
{
	u32 set = cookie >> COOKIE_SET_SHIFT;

	return bpf_map_lookup_elem(&used_cookies, &set);
}

/*
 * Whether a connection has begun here with this cookie, whose tag is `tag`. The function is global, so that the
 * verifier checks it once, by itself. It has no branch for each tag, because the verifier would walk every outcome of
 * sixteen comparisons.
 */
__noinline int is_used(u32 cookie, u32 tag)
{
	const struct used_cookies *set = set_of(cookie);
	u64 found = 0;

	if (!set)
		return 0;
	for (int i = 0; i < USED_COOKIES_PER_SET; i++)
		found |= (u64)(set->tags[i] ^ tag) - 1;
	return found >> 63;
}

/*
 * Remembers that a connection has begun with this cookie. If two processors write to the same place, one cookie is
 * forgotten early.
 */
static __always_inline void note_used(u32 cookie, u32 tag)
{
	struct used_cookies *set = set_of(cookie);

	if (set)
		set->tags[WRAPPED(set->next++, USED_COOKIES_PER_SET)] = tag;
}

#endif
