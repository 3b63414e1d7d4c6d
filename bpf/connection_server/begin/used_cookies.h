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

/* Tags of cookies with which connections have begun: see cookie_tag(). 0 stands for no cookie. */
struct used_cookies {
	struct bpf_spin_lock lock; /* of whoever looks for a tag and adds it */
	u32 next;                  /* where the next tag goes, modulo USED_COOKIES_PER_SET */
	u32 tags[USED_COOKIES_PER_SET];
};

MAP(used_cookies, ARRAY, 1 << USED_COOKIE_SET_BITS, u32, struct used_cookies);

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
 * Whether the tag is in the set. There is no branch for each tag: the verifier would follow both outcomes of each of the
 * sixteen comparisons.
 */
static __always_inline bool holds_tag(const struct used_cookies *set, u32 tag)
{
	u64 found = 0;

	/* Only for equal tags is this 0 - 1, which has the highest bit set. */
	for (int i = 0; i < USED_COOKIES_PER_SET; i++)
		found |= (u64)(set->tags[i] ^ tag) - 1;
	return found >> 63;
}

/*
 * Whether a connection has begun here with this cookie, whose tag (cookie_tag()) is `tag`. The function is global, so
 * that the verifier checks it once, by itself.
 */
__noinline int is_used(u32 cookie, u32 tag)
{
	const struct used_cookies *set = set_of(cookie);

	return set && holds_tag(set, tag);
}

/*
 * Remembers that a connection begins with this cookie. False if one has begun with it already: of copies of one packet
 * on several processors, only one begins the connection.
 */
static __noinline bool use_cookie(u32 cookie, u32 tag)
{
	struct used_cookies *set = set_of(cookie);

	if (!set)
		return true;
	bpf_spin_lock(&set->lock);
	bool is_new = !holds_tag(set, tag);
	if (is_new)
		set->tags[WRAPPED(set->next++, USED_COOKIES_PER_SET)] = tag;
	bpf_spin_unlock(&set->lock);
	return is_new;
}

#endif
