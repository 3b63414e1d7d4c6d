/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Judges which data server is to answer a request, by this data server's own tables and by host and path, as the
 * packet that begins the request shows them or the agent has read them. It also says how far the request is known.
 */
#ifndef BATON_DATA_SERVER_DOOR_JUDGE_H
#define BATON_DATA_SERVER_DOOR_JUDGE_H

#include "data_server/door/body.h"
#include "data_server/door/dispatcher.h"
#include "data_server/packet.h"
#include "routing/client_hello.h"
#include "routing/dispatcher.h"
#include "routing/request.h"
#include "routing/route.h"
#include "routing/sizes.h"

enum judgement {
	JUDGED_HERE,
	JUDGED_ELSEWHERE,
	JUDGED_NOBODY,             /* nobody answers for its pool */
	JUDGED_UNREADABLE,         /* this packet does not decide */
	JUDGED_ASKS,               /* a dispatcher on another node is to be asked */
};

#define ENDLESS (1ULL << 62) /* more bytes than any connection has */

struct judged {
	const struct have_read *known; /* what the agent has read of the request; 0: nothing */
	bool may_ask;              /* the service's dispatcher is asked, if it has one */
	struct span span;          /* how far the request goes */
	u16 pool;
	u16 generation;            /* generation of the pool, when the request is judged */
	u16 owner;                 /* with JUDGED_ELSEWHERE: the data server, by slot */
	u16 route;                 /* number of the route that leads to the pool; the service's id if there is none */
	bool resumes;              /* another data server may go on with its response */
};

/* Copies the packet's payload to this processor's text, as far as that has room. Returns how many bytes; 0: none. */
static __always_inline u32 load_text(struct __sk_buff *skb, const struct inner *in)
{
	struct text *text = text_of_this_cpu();
	u32 bytes = payload_of(in), seen = seen_of(bytes);

	if (!text || bytes < 1 ||
	    bpf_skb_load_bytes(skb, payload_at(in), text->at, BOUNDED(seen, 1, TEXT_BYTES - WORD)))
		return 0;
	return seen;
}

/*
 * Reads the request that begins with the packet. False if the packet does not show the whole head, or the head does not
 * say for certain how its body ends.
 */
static __noinline bool read_request_inside(struct __sk_buff *skb, const struct inner *in, struct request *r)
{
	u32 seen = load_text(skb, in);

	if (!r || !seen)
		return false;
	read_text(payload_of(in), seen, r);
	return r->target && r->end && !r->odd;
}

/* Writes to `s` how far the request goes, as far as this packet shows that. */
static __noinline void measure_request(struct __sk_buff *skb, const struct inner *in, const struct request *r, struct span *s)
{
	if (!r || !s)
		return;
	s->head_end = bpf_ntohl(in->tcp.seq) + r->end;
	s->next = s->head_end + r->body;
	s->body = NOT_FOLLOWED;
	if (r->chunked)
		s->body.state = RESPONSE_CHUNK_SIZE;
	else if (r->large)
		s->body = (struct followed_body){ .state = RESPONSE_BODY, .left = r->large };
	if (s->body.state != RESPONSE_COMPLETE && r->end <= payload_of(in))
		follow_body(skb, in, r->end, s);
}

/* Returns the pool to which `route` leads, and notes in `j` what the route says. NO_POOL if it is not decided. */
static __always_inline u32 pool_of_route(const struct service *service, const struct request *r, u32 route, struct judged *j)
{
	if (route & ROUTE_UNDECIDED)
		return NO_POOL;
	u32 pool = route & ROUTE_POOL;
	j->resumes = pool == NO_POOL ? service->flags & SERVICE_RESUME_REST : route & ROUTE_RESUME;
	if (pool == NO_POOL)
		return pool_without_route(service, r);
	j->route = route >> ROUTE_NUMBER_SHIFT & ROUTE_NUMBER;
	return pool;
}

/* Returns the pool that the request is for. NO_POOL if its host and path do not show the pool plainly. */
static __always_inline u32 pool_of_request(const struct service *service, const struct request *r, struct judged *j)
{
	u32 route = NO_POOL;

	if (service->flags & (SERVICE_PATHS | SERVICE_TARGETS))
		route = find_route(service->id, service->flags, r);
	return pool_of_route(service, r, route, j);
}

/*
 * Returns the pool of a TLS connection that begins with this packet. All of the packet counts as the head of a request
 * whose body does not end. NO_POOL if the packet does not show the pool plainly.
 */
static __noinline u32 pool_of_hello(struct __sk_buff *skb, const struct inner *in, const struct service *service,
				    struct request *r, struct judged *j)
{
	u32 seen = load_text(skb, in);

	if (!seen || !service || !r || !j)
		return NO_POOL;
	r->end = payload_of(in);
	r->large = ENDLESS;
	return pool_of_route(service, r, find_tls_route(service->id, service->flags, seen), j);
}

/*
 * Chooses a data server of pool `index`; NO_DATA_SERVER if there is none. This is a function of its own because the
 * stack has no room for the flow beside what reads a request.
 */
static __noinline u16 choose_owner(const struct lccp_header *h, u32 index, const struct request *r)
{
	struct tcb_key flow = flow_of(h);
	const struct pool *pool = pool_at(index);

	return pool ? choose(pool, index, &flow, r, 0) : NO_DATA_SERVER;
}

/* Chooses another data server of the pool than this one, because no server listens here; this one if there is none. */
static __noinline u16 choose_instead(struct arrival *a, const struct lccp_header *h, u32 index)
{
	struct tcb_key flow = flow_of(h);
	u16 own = a->settings->slot, other = choose_other(index, &flow, own, h->tcb.attempt + 1);

	if (other == NO_DATA_SERVER)
		return own;
	if (other != own)
		count(a->counters, COUNTER_DS_DOOR_DESERTED);
	return other;
}

/*
 * Judges the request that begins with the packet. `d` is the door of the connection that is here. If `d` is 0, the
 * connection comes with this request, or the request comes again: then this data server answers if it is a member of
 * the pool, unless a dispatcher is to be asked. A part of a head is enough to find that another data server is to
 * answer, but not to let the request in or to ask a dispatcher.
 */
static __noinline enum judgement judge_request(struct arrival *a, const struct lccp_header *h, const struct inner *in,
					       const struct door *d, struct judged *j)
{
	const struct have_read *known = j->known;
	const struct service *service = service_at(in->ip.daddr, in->tcp.dest);
	struct request *r = blank_request();
	u16 own = a->settings->slot;
	u32 index;

	j->route = TALLIED_ROUTES;
	j->pool = NO_POOL;
	if (!service || !r)
		return JUDGED_UNREADABLE;
	bool is_tls = service->flags & SERVICE_TLS;
	bool is_read = is_tls || read_request_inside(a->skb, in, r);
	j->route = service->id;
	if (known) {
		is_read = true;
		if (known->pool != NO_POOL)
			j->route = known->route;
		r->path = (u64)known->path[1] << 32 | known->path[0];
		index = known->pool == NO_POOL ? pool_without_route(service, r) : known->pool;
		r->end = known->head;
		r->body = known->body;
		r->chunked = known->flags & READ_CHUNKED;
		r->large = (u64)known->large[1] << 32 | known->large[0];
	} else if (is_tls) {
		index = pool_of_hello(a->skb, in, service, r, j);
	} else {
		index = r->target && !r->odd ? pool_of_request(service, r, j) : NO_POOL;
	}
	if (index == NO_POOL)
		return JUDGED_UNREADABLE;
	enum judgement here = is_read ? JUDGED_HERE : JUDGED_UNREADABLE;
	j->pool = index;
	const struct pool *pool = pool_at(index);
	if (!pool || pool->flags & POOL_NOBODY)
		return JUDGED_NOBODY;
	if (is_read)
		measure_request(a->skb, in, r, &j->span);
	j->generation = pool->generation;
	bool asks = j->may_ask && service->flags & SERVICE_ASKS;
	/*
	 * The connection server did not see whose a ClientHello is that the agent has read, and has chosen by the policy
	 * of the service's own pool.
	 */
	bool was_meant = !(service->flags & SERVICE_TLS) || !j->known || !j->may_ask || index == service->pool;
	/* A door has NO_POOL if no request was judged here yet: the connection came idle, or with the rest of a response. */
	bool is_settled = d ? d->pool == NO_POOL || stays(pool, index, d->pool, d->generation) : !asks && was_meant;
	if (!a->deserted && is_member(pool, own) && is_settled)
		return here;
	if (d && d->pool == index && service->flags & SERVICE_STAYS)
		return here;
	u32 word = WORD_NONE;
	if (asks) {
		if (!is_read)
			return JUDGED_UNREADABLE;
		word = word_of_dispatcher(a, h, service->id, index, r);
	}
	if (word == WORD_AWAITED)
		return JUDGED_ASKS;
	j->owner = word == WORD_NONE ? choose_owner(h, index, r) : word;
	if (a->deserted && j->owner == own)
		j->owner = choose_instead(a, h, index);
	if (j->owner == NO_DATA_SERVER)
		return JUDGED_NOBODY;
	return j->owner == own ? here : JUDGED_ELSEWHERE;
}

#endif
