/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A packet of a connection without a (sure) entry: the split point, if its cookie is valid. */
#ifndef BATON_CS_ADMIT_H
#define BATON_CS_ADMIT_H

#include "aware.h"
#include "claim.h"
#include "dispatcher.h"
#include "distributor.h"
#include "forwarder.h"
#include "hold.h"
#include "keep.h"
#include "packet.h"
#include "punt.h"
#include "probe.h"
#include "tcb.h"
#include "unavailable.h"
#include "used_cookies.h"
#include "../claimed.h"
#include "../cookie.h"

/* The data server for a new connection, whose first packet asks for this pool by this route. */
static __always_inline struct choice dispatch(struct packet *p, struct request *r, u32 index, u16 route)
{
	const struct pool *pool = pool_at(index);

	if (!pool)
		return (struct choice){ .owner = NO_DATA_SERVER, .pool = index, .route = route };
	return (struct choice){
		.owner = pick(p, pool, index, r),
		.pool = index,
		.generation = pool->generation,
		.route = route,
	};
}

/*
 * The split: an entry here, DM1 to the data server that the dispatcher names. `held` is an entry of an earlier connection
 * with the same ports.
 */
static __noinline int split(struct packet *p, const struct tcb *held, u32 cookie, u32 tag)
{
	struct request *r = blank_request();
	u8 state = TCB_PINNED;

	if (!r)
		return XDP_ABORTED;
	if (!fits_in_lccp(p))
		return drop(p, COUNTER_CS_TOO_BIG);
	bool strict = p->service->flags & SERVICE_STRICT;
	if (strict) {
		if (find_length(p, r) != COURSE_BEGINS)
			return XDP_DROP;
		/* An earlier connection with these ports has an entry, but not this one, as user space sees by that. */
		if (r->incomplete && asks_what_has_come(p)) {
			bpf_map_delete_elem(&tcbs, &p->flow);
			return XDP_DROP;
		}
	} else if (p->service->flags & (SERVICE_HANDOVER | SERVICE_PATHS | SERVICE_TARGETS) && read_request_of(p, r) &&
		   p->service->flags & SERVICE_HANDOVER && !r->careful && !p->frame.tcp->fin) {
		state = 0;
	}

	struct lccp_tcb part = {};
	if (p->service->flags & SERVICE_DIRECT && is_aware(p)) {
		part.options = LCCP_TCB_AWARE;
		state = TCB_PINNED;
	}

	u16 route;
	u32 pool = find_pool(p, r, &route);
	if (pool == POOL_UNKNOWN) {
		note_punted_flow(p);
		return XDP_DROP;
	}
	if (strict && !r->odd && !(part.options & LCCP_TCB_AWARE))
		state = 0;
	if (pool == POOL_REFUSED || pool == POOL_TOO_BIG || (strict && r->cut)) {
		tally_undecided(p, pool);
		return answer_itself(p, pool != POOL_TOO_BIG);
	}
	struct choice choice = { .owner = SERVER_PUNTED };
	if (pool != POOL_PUNTED)
		choice = dispatch(p, r, pool, route);
	if (choice.owner == SERVER_PUNTED) {
		note_punted_flow(p);
		return XDP_DROP;
	}
	choice.replaces = held;
	bool at_door = p->service->flags & SERVICE_OWNER;
	if (p->service->flags & SERVICE_HANDOVER && state)
		count(p->counters, COUNTER_CS_PINNED);
	const struct data_server *to = data_server(choice.owner);

	bool is_there = to && to->flags & DATA_SERVER_PRESENT;
	if (!is_there || !at_door)
		tally_request(choice.route, choice.pool);
	if (!is_there) {
		tally_unavailable(choice.route, choice.pool);
		return nobody_answers(p, r);
	}

	if (strict && !(part.options & LCCP_TCB_AWARE))
		part.options = LCCP_TCB_STRICT | (!state && r->goes_on ? LCCP_TCB_CHUNKED : 0);
	cookie_open(cookie, p->settings->rcv_wscale, &part);
	bool is_known = !state && !r->goes_on;
	if (part.options & LCCP_TCB_STRICT && (!is_known || r->end + r->body > p->frame.payload))
		tell_end(&part, is_known, head_of(r, p->frame.payload), bpf_ntohl(p->frame.tcp->seq) + r->end + r->body);
	long error = create_tcb(p, &choice, state, r, &part);
	if (error)
		return drop(p, error == -ERROR_EXISTS ? COUNTER_CS_ADOPTED_MEANWHILE : COUNTER_CS_TCB_FULL);
	if (part.options & LCCP_TCB_CHUNKED) {
		struct tcb *begun = bpf_map_lookup_elem(&tcbs, &p->flow);

		keep_upload(p);
		if (begun)
			end_turn(begun);
	}

	note_used(cookie, tag);
	if (!(state & TCB_PINNED))
		keep_request(p, r);
	tally_connection(choice.owner, at_door);
	if (part.options & LCCP_TCB_AWARE)
		count(p->counters, COUNTER_CS_AWARE);
	count(p->counters, COUNTER_CS_ADOPT);
	return distribute(p, to, LCCP_ADOPT, unmap_address(p->settings->address), &part);
}

/* What has come before, from long ago: only its owner knows whether it has that. */
static __always_inline int follow_late(struct packet *p, struct tcb *tcb)
{
	return is_strict(tcb) && p->frame.payload ? ask_again(p, tcb) : follow(p, tcb);
}

/*
 * A packet of a client that does not seem to go on where its entry is. Anybody can send one, who need not even know the
 * ports: so the entry stays as it is, until the owner says that this is the next byte.
 */
static __noinline int jump(struct packet *p, struct tcb *tcb)
{
	const struct data_server *owner = data_server(tcb->owner);

	touch(tcb);
	if (is_large_step(tcb, p)) {
		note_packet(tcb, p);
		return follow(p, tcb);
	}
	/* The window may be larger than what counts as near, and this is nobody's request. */
	u32 seq = bpf_ntohl(p->frame.tcp->seq);
	if (is_strict(tcb) && p->frame.payload &&
	    (is_in_body(tcb, seq, seq + p->frame.payload) || is_in_upload(p, tcb, seq)))
		return follow(p, tcb);
	count(p->counters, COUNTER_CS_JUMP);
	if (tcb->state & TCB_PINNED && !is_unsure(tcb))
		return follow(p, tcb);
	if (owner && hears(owner) && p->frame.payload && p->frame.tcp->ack && fits_in_lccp(p) && may_claim_known(p->settings))
		return ask_owner(p, owner, is_strict(tcb) ? BEGINS_JUMP : BEGINS_ONLY_CONFIRM);
	/* What nobody can judge is not for just any server. */
	if (p->frame.payload && is_strict(tcb))
		return XDP_DROP;
	return follow(p, tcb);
}

/*
 * Whether these numbers are a little behind those of the entry, on both sides: then the packet is from earlier in the
 * same connection. A new one has that by chance once in 65,536 times. This is for connections that did not begin here.
 */
static __always_inline bool is_behind_entry(const struct tcb *tcb, const struct tcphdr *tcp)
{
	u32 seq = tcb->last_seq - bpf_ntohl(tcp->seq), ack = tcb->last_ack - bpf_ntohl(tcp->ack_seq);

	return seq - 1 < BEHIND_SEQ && ack < BEHIND_ACK;
}

/* No XDP action has such a number. */
enum admission {
	ADMIT_KNOWN = 300, /* it is of its entry's connection after all */
	ADMIT_NEW,   /* first data */
	ADMIT_JUMP,  /* its entry is to note it */
	ADMIT_LATE,  /* its entry is not to */
	ADMIT_STRAY, /* it has none */
	ADMIT_RESET, /* the same of a RST */
	ADMIT_PROBE,
	ADMIT_HELD,  /* until another connection server has all entries */
	ADMIT_NOT,   /* nothing is to be done */
};

/* Of no first data, or with no cookie of ours. `tag` is 0 if that is so. */
static __always_inline enum admission admit_other(struct packet *p, const struct tcb *held, u32 cookie, u32 tag)
{
	const struct tcphdr *tcp = p->frame.tcp;

	/* What it is behind may wait for another connection server to take over. */
	if (!tcp->rst && waits_for_first(p, held))
		return waited_behind(p) && is_on_hold() ? ADMIT_HELD : ADMIT_NOT;
	if (is_probe_of_unused(p))
		return ADMIT_PROBE;
	if (held)
		return ADMIT_JUMP;
	if (!tcp->rst)
		return ADMIT_STRAY;
	/* Of a client that has not sent any data: there is nobody to tell. */
	if (tag && !is_used(cookie, tag)) {
		count(p->counters, COUNTER_CS_RST);
		return ADMIT_NOT;
	}
	return ADMIT_RESET;
}

/* Of what has a valid cookie. */
static __always_inline enum admission admit_first(struct packet *p, const struct tcb *held, u32 cookie, u32 tag)
{
	const struct tcphdr *tcp = p->frame.tcp;

	if (held && is_adopted_packet(held, &p->frame))
		return ADMIT_JUMP;
	if (!p->frame.payload && !tcp->fin && !(p->service->flags & SERVICE_SPLIT_AT_ACK)) {
		count(p->counters, COUNTER_CS_HANDSHAKE_ACK);
		return ADMIT_NOT;
	}
	if (!is_used(cookie, tag) && !(held && is_behind_entry(held, tcp)))
		return ADMIT_NEW;
	/*
	 * The first data of a connection that has begun before comes once more: late, or replayed. It begins nothing. If
	 * the connection lives, its owner calls the segment old; if it has ended, nobody has it.
	 */
	count(p->counters, COUNTER_CS_BEGUN_BEFORE);
	return held ? ADMIT_LATE : ADMIT_STRAY;
}

/* The cookie is our ISN: the client's first data, and only that, has ISN + 1 on both sides. 0: this is not with it. */
static __always_inline u32 tag_of_first(struct packet *p)
{
	const struct tcphdr *tcp = p->frame.tcp;

	return tcp->ack ? tag_of_cookie(p, bpf_ntohl(tcp->seq) - 1) : 0;
}

/* Of an entry that its client has ended: whether this is behind that end, where only another connection begins. */
static __noinline bool begins_behind_end(struct packet *p, const struct tcb *tcb)
{
	u32 end = bpf_ntohl(p->frame.tcp->seq) + p->frame.payload;

	/* The end has a sequence number, too, and may be forged: then the connection goes on. */
	return (int)(end - tcb->last_seq) > 1 && (tag_of_first(p) || follows_punted(p, tcb));
}

/*
 * Whether this is of a new connection, although its numbers go on with the entry: a client that uses its port again within
 * milliseconds has a sequence number near the last one, and one cookie in 2,048 is near what was acknowledged last.
 */
static __always_inline bool is_of_next_connection(struct packet *p, const struct tcb *tcb)
{
	return tcb->state & (TCB_FIN | TCB_RST) && begins_behind_end(p, tcb);
}

static __always_inline int not_ours(struct packet *p)
{
	if (service_at(p->frame.ip->saddr, p->frame.tcp->source))
		count_bytes(p->counters, COUNTER_CS_RESPONSE_BYTES, p->frame.ip_bytes);
	return XDP_PASS;
}

#endif
