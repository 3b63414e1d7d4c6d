/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Punts: a request that some rule looks deeper into than this program does goes to user space, and the
 * same frame comes back through this program with a verdict. Nothing is changed before it does, so that
 * it then takes the ordinary way, once. While user space cannot be asked, because the ring is full or its reader
 * dead, the request waits where the route says so, and goes where host and path lead where it does not.
 *
 * A request whose target or host this program does not surely read as servers do goes the same way, and there
 * host and path are what is not known. If user space cannot be asked it waits, as long as the service has routes:
 * what they keep apart must not be had by another spelling.
 */
#ifndef BATON_CS_PUNT_H
#define BATON_CS_PUNT_H

#include "copy.h"
#include "dispatcher.h"
#include "packet.h"
#include "punt_budget.h"
#include "request.h"
#include "route.h"
#include "sizes.h"
#include "tally.h"
#include "upload.h"
#include "verdict.h"
#include "../clock.h"

enum {
	POOL_PUNTED = ROUTE_POOL + 1, /* no pool yet: user space has the packet */
	SERVER_PUNTED = NO_DATA_SERVER - 1, /* the same of a data server */
	POOL_UNKNOWN = ROUTE_POOL + 2, /* nobody can say the pool now */
	POOL_REFUSED = ROUTE_POOL + 3, /* none, because servers refuse the request */
	POOL_TOO_BIG = ROUTE_POOL + 4, /* nobody can ever say the pool */
};

#define PUNT_WAIT_NS 10000000000ULL /* so long a new connection may wait for its first request */

/* Whether something of its connection was in user space before a packet. */
enum behind {
	BEHIND_NOTHING = 0,
	BEHIND = 1,
	BEHIND_AGAIN = 2, /* and user space has sent the packet, of a head that it has read (VERDICT_READ) */
};

/* Global, so that it is verified by itself. */
__noinline int is_judge_alive(void)
{
	u32 zero = 0;
	u64 *until = bpf_map_lookup_elem(&judge, &zero);

	return until && bpf_ktime_get_coarse_ns() < *until;
}

/*
 * Whether user space may be shown this packet. It is shown none twice, with two exceptions, of which neither can go on for ever:
 * - A packet that waited behind another one (VERDICT_BEHIND) has not been judged yet. It is shown once more, to be judged or
 *   divided, and never to wait again.
 * - A packet of a head that was judged (VERDICT_READ) takes the place of one that its client does not send again: the head is
 *   judged anew. User space sends it for a packet of a client, or after a time, but never for one that it has sent so itself
 *   (BEHIND_AGAIN). It is not divided: the parts would have no verdict, and would count as packets of the client.
 */
static __always_inline bool may_be_shown(struct xdp_md *ctx, u32 cut, enum behind behind)
{
	u32 verdict = flags_of_verdict(ctx);

	if (!(verdict & VERDICT_IS_THERE))
		return true;
	if (verdict & VERDICT_READ)
		return !cut;
	return verdict & VERDICT_BEHIND && behind == BEHIND_NOTHING;
}

/*
 * Hands a copy of the frame to user space, and what is asked of it. False if that cannot be, and counted if it is for now.
 * Global, so that it is verified by itself.
 */
__noinline int punt_frame(struct xdp_md *ctx, const struct answer_key *key, u32 service, u32 cut, u32 behind)
{
	u32 zero = 0;
	const struct settings *s = bpf_map_lookup_elem(&settings, &zero);
	struct counters *counters = counters_of_this_cpu();
	struct text *text = text_of_this_cpu();
	struct iphdr *ip = (void *)(long)ctx->data + sizeof(struct ethhdr);

	if (!key || !s || !counters || !text || (void *)(ip + 1) > (void *)(long)ctx->data_end || !may_be_shown(ctx, cut, behind))
		return false;
	if (!is_judge_alive()) {
		count(counters, COUNTER_CS_PUNT_STALE);
		return false;
	}
	u32 bytes = sizeof(struct ethhdr) + length_of(ip, bpf_xdp_get_buff_len(ctx));
	if (bytes < sizeof(struct ethhdr) || bytes > PUNT_JUMBO_BYTES) {
		count(counters, COUNTER_CS_PUNT_TOO_BIG);
		return false;
	}
	if (!has_room_for(s, ip->saddr, bytes <= PUNT_FRAME_BYTES ? PUNT_FRAME_BYTES : PUNT_JUMBO_BYTES)) {
		count(counters, COUNTER_CS_PUNT_SHARE);
		return false;
	}
	/* The stack has no room for it. */
	text->punted = (struct punted){
		.key = *key,
		.service = service,
		.bytes = bytes,
		.cut = cut,
		.behind = behind,
		.carried = !!(flags_of_verdict(ctx) & VERDICT_CARRIED),
	};
	if (!copy_frame(ctx, RING_PUNTS, &text->punted)) {
		count(counters, COUNTER_CS_PUNT_FULL);
		return false;
	}
	return true;
}

static __always_inline bool punt_with(struct packet *p, const struct answer_key *key, u32 cut, enum behind behind)
{
	return punt_frame(p->ctx, key, p->service->id, cut, behind);
}

static __always_inline bool punt(struct packet *p, const struct answer_key *key)
{
	return punt_with(p, key, 0, BEHIND_NOTHING);
}

/* What begins so many bytes into the payload is another request: user space lets both go, one behind the other. */
static __noinline bool divide(struct packet *p, u32 at)
{
	struct answer_key key = {};

	/* User space has judged it in one piece. */
	if (!may_be_shown(p->ctx, at, BEHIND_NOTHING)) {
		count(p->counters, COUNTER_CS_UNDIVIDED);
		return true;
	}
	if (!punt_with(p, &key, at, BEHIND_NOTHING))
		return false;
	count(p->counters, COUNTER_CS_DIVIDED);
	return true;
}

/* What requests that this one is like have in common. A request that is only made to look so must not have it. */
static __noinline void name_request(struct packet *p, const struct request *r, u32 pool,
				    struct answer_key *key)
{
	key->hash = r->target ? hash_host_and_path(r->host, hash_path(r->target)) | 1 : 0;
	key->client = hash_client(p->flow.client, p->settings->hash_seed);
	key->pool = pool;
	key->reserved = 0;
}

/* Whether find_route() could not read the request, rather than found a route with conditions. */
static __always_inline bool is_unread(u32 route)
{
	return (route & (ROUTE_WAITS | ROUTE_PUNTS)) == ROUTE_WAITS;
}

/* Of a request that nobody but user space may decide, and that cannot be punted. */
static __always_inline u32 undecided_pool(struct packet *p, u32 route)
{
	if (sizeof(struct ethhdr) + p->frame.ip_bytes > PUNT_JUMBO_BYTES) {
		count(p->counters, is_unread(route) ? COUNTER_CS_TARGET_TOO_BIG : COUNTER_CS_PUNT_UNREAD);
		return POOL_TOO_BIG;
	}
	count(p->counters, is_unread(route) ? COUNTER_CS_TARGET_WAITS : COUNTER_CS_PUNT_WAITS);
	return POOL_UNKNOWN;
}

/* Whether only user space can read where the request leads. */
static __always_inline bool is_unclear(const struct packet *p, const struct request *r)
{
	return p->service->flags & (SERVICE_PATHS | SERVICE_TARGETS) &&
	       is_unread(find_route(p->service->id, p->service->flags, r));
}

static __always_inline u64 body_of(const struct verdict *verdict)
{
	return (u64)verdict->body[1] << 32 | verdict->body[0];
}

/* User space has seen all of its head. */
static __always_inline void note_length(struct packet *p, struct request *r, const struct verdict *verdict)
{
	u64 body = body_of(verdict);

	r->large = body < LARGE_BODY ? 0 : body;
	r->end = verdict->head + (r->large ? 0 : (u32)body);
	r->head = verdict->head;
	r->body = 0;
	r->goes_on = r->large || verdict->flags & (VERDICT_CHUNKED | VERDICT_ENDLESS);
	r->odd = r->goes_on && !expect_upload(p, verdict->head, r->large, verdict->flags & VERDICT_ENDLESS);
}

/* Of a request that is answered with 400 or 503, because no pool was found for it. */
static __always_inline void tally_undecided(const struct packet *p, u32 pool)
{
	tally_closed(p->service->id, p->service->pool, pool == POOL_TOO_BIG ? CLOSED_TOO_LONG : CLOSED_REFUSED);
}

/*
 * The pool of a request, or one of the above, and the number of the route that leads there; if none was read, or
 * no route takes it, the service's own. Notes with the request whether its response is one to be resumed.
 */
static __noinline u32 find_pool(struct packet *p, struct request *r, u16 *number)
{
	struct verdict verdict;
	u32 route = NO_POOL;

	/* The end of a connection without a request asks for nothing. */
	if (p->service->flags & (SERVICE_PATHS | SERVICE_TARGETS) && (p->frame.payload || !(p->service->flags & SERVICE_STRICT)))
		route = find_route(p->service->id, p->service->flags, r);
	/* Its head goes on in the next packet, and where that ends must be known. */
	if (r->incomplete)
		route = ROUTE_UNCLEAR;
	/* Its owner sees to whose it is: here it is led as far as this packet says it. */
	if (p->service->flags & SERVICE_OWNER && route & (ROUTE_PUNTS | ROUTE_WAITS))
		route = NO_POOL;
	if (route & (ROUTE_PUNTS | ROUTE_WAITS)) {
		if (read_lead(p->ctx, &verdict)) {
			if (verdict.flags & VERDICT_REFUSED)
				return POOL_REFUSED;
			count(p->counters, COUNTER_CS_PUNT_DECIDED);
			r->cut = verdict.flags & VERDICT_CUT;
			r->path = (u64)verdict.path[1] << 32 | verdict.path[0];
			if (r->incomplete && verdict.head + body_of(&verdict) >= p->frame.payload)
				note_length(p, r, &verdict);
			else if (r->incomplete)
				r->cut = 1;
			route = (u32)verdict.route << ROUTE_NUMBER_SHIFT | verdict.pool;
		} else {
			struct answer_key key = {};

			if (p->service->flags & SERVICE_ASKS)
				name_request(p, r, NO_POOL, &key);
			if (punt(p, &key)) {
				count(p->counters, COUNTER_CS_PUNTED);
				if (is_unread(route))
					count(p->counters, COUNTER_CS_TARGET);
				return POOL_PUNTED;
			}
			if (route & ROUTE_WAITS && p->service->flags & SERVICE_PATHS)
				return undecided_pool(p, route);
		}
	}
	u32 pool = route & ROUTE_POOL;
	r->resumes = pool == NO_POOL ? p->service->flags & SERVICE_RESUME_REST : route & ROUTE_RESUME;
	*number = pool == NO_POOL ? p->service->id : route >> ROUTE_NUMBER_SHIFT & ROUTE_NUMBER;
	return pool == NO_POOL ? pool_without_route(p->service, r) : pool;
}

/* What a dispatcher on another node said lately, if it still holds. */
static __always_inline u16 find_answer(const struct pool *pool, const struct answer_key *key)
{
	struct answer *answer = bpf_map_lookup_elem(&answers, key);

	if (!answer || bpf_ktime_get_coarse_ns() >= answer->until || !is_member(pool, answer->owner))
		return NO_DATA_SERVER;
	return answer->owner;
}

/*
 * A data server of the pool for a request, by whoever dispatches for its service: NO_DATA_SERVER if there
 * is none, SERVER_PUNTED if user space is to ask.
 */
static __noinline u16 pick(struct packet *p, const struct pool *pool, u32 index, const struct request *r)
{
	struct verdict verdict;
	struct answer_key key;

	/* Where owners see to requests, the door asks that this one comes to. */
	if ((p->service->flags & (SERVICE_ASKS | SERVICE_OWNER)) != SERVICE_ASKS || !r->target || !pool->choices)
		return choose(pool, index, &p->flow, r, 0);
	if (read_lead(p->ctx, &verdict)) {
		if (is_member(pool, verdict.owner))
			return verdict.owner;
		return choose(pool, index, &p->flow, r, 0);
	}
	name_request(p, r, index, &key);
	if (pool->policy != POLICY_CLIENT)
		key.client = 0;
	u16 owner = find_answer(pool, &key);
	if (owner != NO_DATA_SERVER) {
		count(p->counters, COUNTER_CS_ANSWERED);
		return owner;
	}
	if (dispatcher_rests(p->service->id)) {
		count(p->counters, COUNTER_CS_ASK_DEAD);
	} else if (punt(p, &key)) {
		count(p->counters, COUNTER_CS_PUNTED);
		return SERVER_PUNTED;
	}
	return choose(pool, index, &p->flow, r, 0);
}

/* The first request of a new connection went to user space, or waits until it can. */
static __always_inline void note_punted_flow(struct packet *p)
{
	struct punted_flow punted = { .since = bpf_ktime_get_coarse_ns(), .be_ack = p->frame.tcp->ack_seq };

	bpf_map_update_elem(&punted_flows, &p->flow, &punted, BPF_ANY);
}

/* Behind what user space has of this connection. Nobody has looked at it yet. */
static __always_inline bool goes_behind(struct packet *p)
{
	struct answer_key key = {};

	if (!punt_with(p, &key, 0, was_read(p) ? BEHIND_AGAIN : BEHIND))
		return false;
	count(p->counters, COUNTER_CS_PUNTED_BEHIND);
	return true;
}

/*
 * Whether this is more of a connection that has no entry yet, because user space has, or is to get, its first request. Whose
 * client acknowledges an answer had an entry, and has it no more: then another node may have it.
 *
 * `held` is an entry for these ports. It is this connection's own if the same was acknowledged there last. Else it is of an
 * earlier connection, and does not say where this packet goes.
 */
static __always_inline bool follows_punted(struct packet *p, const struct tcb *held)
{
	const struct punted_flow *punted = bpf_map_lookup_elem(&punted_flows, &p->flow);
	__be32 be_ack = p->frame.tcp->ack_seq;

	return punted && punted->be_ack == be_ack && bpf_ktime_get_coarse_ns() - punted->since < PUNT_WAIT_NS &&
	       !(held && held->last_ack == bpf_ntohl(be_ack));
}

/*
 * Such a packet goes the same way as that request. What cannot go there its client sends again. No other node has this
 * connection: to ask them would only get it reset.
 */
static __noinline bool waits_for_first(struct packet *p, const struct tcb *held)
{
	if (!(p->service->flags & SERVICE_PUNTS) || !follows_punted(p, held))
		return false;
	goes_behind(p);
	return true;
}

/* More of a known connection, whose next request user space has: the same way, until one is back. */
static __noinline bool waits_for_next(struct packet *p, struct tcb *tcb)
{
	p->service = service_at(p->frame.ip->daddr, p->frame.tcp->dest);
	if (p->service && goes_behind(p))
		return true;
	tcb->state &= ~TCB_PUNTED;
	return false;
}

#endif
