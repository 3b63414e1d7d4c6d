/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SYN cookies that have begun a connection at this connection server. Each may begin only one. Otherwise anyone who has
 * seen a client's first segment could send it again while the cookie is valid, and the request would be done twice.
 * Memory is bounded: a full set forgets its oldest cookie. A set's number is part of the cookie's MAC, so an attacker
 * cannot choose which cookies are forgotten.
 */
#ifndef BATON_CONNECTION_SERVER_BEGIN_USED_COOKIES_H
#define BATON_CONNECTION_SERVER_BEGIN_USED_COOKIES_H

#include "include/bounds.h"
#include "include/cookie.h"
#include "xdp/packet.h"

enum {
	/* The set's number is the cookie's highest bits, which belong to its MAC. */
	COOKIE_SET_SHIFT = 32 - USED_COOKIE_SET_BITS,
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
 * Whether a connection has begun here with this cookie, whose tag (cookie_tag()) is `tag`. The function is global, so
 * that the verifier checks it once, by itself. It has no branch for each tag: the verifier would follow both outcomes of
 * each of the sixteen comparisons.
 */
__noinline int is_used(u32 cookie, u32 tag)
{
	const struct used_cookies *set = set_of(cookie);
	u64 found = 0;

	if (!set)
		return 0;
	/* Only for equal tags is this 0 - 1, which has the highest bit set. */
	for (int i = 0; i < USED_COOKIES_PER_SET; i++)
		found |= (u64)(set->tags[i] ^ tag) - 1;
	return found >> 63;
}

/*
 * Remembers that a connection has begun with this cookie. If two processors do so in one set at the same time, one of the
 * two cookies may not be remembered.
 */
static __always_inline void note_used(u32 cookie, u32 tag)
{
	struct used_cookies *set = set_of(cookie);

	if (set)
		set->tags[WRAPPED(set->next++, USED_COOKIES_PER_SET)] = tag;
}

#endif
