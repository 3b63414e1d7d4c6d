/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests that only their pool may answer (SERVICE_STRICT): one that cannot go there ends its connection before any
 * server sees it, and its client tries again on a new one. So nothing passes of which it is not known whose it is.
 * What lies before the next request is the owner's, in any order. The next request must begin exactly where the one
 * before ends; what comes too early is dropped, and TCP sends it again. Where that end is not known, because a body
 * does not say its length or the entry was made in the middle of a connection, the owner is asked (BEGINS): it knows
 * whether it has answered all that came.
 */
#ifndef BATON_CS_STRICT_H
#define BATON_CS_STRICT_H

#include "distributor.h"
#include "packet.h"
#include "punt.h"
#include "tcb.h"
#include "turn.h"
#include "upload_again.h"

/* What becomes of a packet of a known connection. */
enum course {
	COURSE_FOLLOW,             /* to the owner */
	COURSE_HAND_OVER,          /* to the owner, who is to give the connection to another */
	COURSE_UNAVAILABLE,        /* a request for a pool in which nobody is, or where it cannot go */
	COURSE_REFUSED,            /* a request that servers refuse */
	COURSE_PUNTED,             /* user space has it */
	COURSE_BEGINS,             /* a request: find where it goes */
	COURSE_AGAIN,              /* to the owner, if that has it already */
	COURSE_COME,               /* nowhere: its owner is asked how much has come there */
	COURSE_WITHHELD,           /* nowhere: it comes again */
	COURSE_CLOSED,             /* nowhere, and that was the connection */
};

static __always_inline bool is_strict(const struct tcb *tcb)
{
	return tcb->options & LCCP_TCB_STRICT;
}

_Static_assert(COUNTER_CS_CLOSED_LOST - COUNTER_CS_CLOSED_BEHIND == CLOSED_LOST, "each reason has its counter");

/* For one of the reasons that have a counter of their own. */
static __always_inline enum course close_at(struct packet *p, u16 route, u16 pool, enum closed_reason why)
{
	count(p->counters, COUNTER_CS_CLOSED_BEHIND + why);
	tally_closed(route, pool, why);
	return COURSE_CLOSED;
}

/* Whose route is not known is of that of the request before. */
static __always_inline enum course close_for(struct packet *p, const struct tcb *tcb, enum closed_reason why)
{
	return close_at(p, tcb->route, tcb->pool, why);
}

static __always_inline enum course withhold(struct packet *p, enum counter why)
{
	count(p->counters, why);
	return COURSE_WITHHELD;
}

/* Whether nothing of the response to the current request is there yet: then that cannot be over. */
static __always_inline bool is_unanswered_request(const struct tcb *tcb, const struct tcphdr *tcp)
{
	return tcb->state & TCB_WAITING && (int)(bpf_ntohl(tcp->ack_seq) - tcb->last_ack) <= 0;
}

/*
 * Reads the request of a packet. COURSE_BEGINS: it is one, and `r` says where the next one begins; where that cannot be
 * known, that it is odd; or that its head is incomplete. COURSE_WITHHELD: user space divides the packet.
 */
static __always_inline enum course find_length(struct packet *p, struct request *r)
{
	/* Not so if something is behind it, which is all that may be wrong here. */
	bool sure = read_request_of(p, r) || (r->target && r->end && !r->odd);

	if (sure && (r->chunked || r->large))
		sure = begin_upload(p, r);
	/* Whatever is behind a request in its packet is not for its server to read before it was judged. */
	u32 whole = sure ? r->end + r->body : r->end;
	if (r->end && !(sure && r->goes_on) && whole < p->frame.payload) {
		if (!divide(p, whole))
			count(p->counters, COUNTER_CS_EARLY);
		return COURSE_WITHHELD;
	}
	r->odd = !sure;
	r->incomplete = p->frame.payload && (!r->end || r->end > p->frame.payload);
	return COURSE_BEGINS;
}

/* Whether this is all body of the current request, of known length: then its content counts for nothing. */
static __always_inline bool is_in_body(const struct tcb *tcb, u32 seq, u32 end)
{
	return tcb->head && !(tcb->state & TCB_PINNED) && !(tcb->form & TCB_CHUNKED) &&
	       (int)(seq - tcb->request_seq) >= tcb->head && (int)(end - tcb->next_request) <= 0;
}

/*
 * Whether this packet, which ends in what is new, begins in or before the head of the current request. Of a head in
 * several packets the rest comes from user space, which has read it.
 */
static __always_inline bool is_said_before(struct packet *p, const struct tcb *tcb, u32 seq)
{
	int at = seq - tcb->request_seq;

	if (!tcb->head || at >= tcb->head)
		return false;
	return (int)(seq - tcb->last_seq) < 0 || !waited_behind(p);
}

/*
 * Whether it is a part of the current request's head that user space has read, and acknowledged, and sends again. What is
 * behind the head nobody has judged.
 */
static __always_inline bool is_read_again(struct packet *p, const struct tcb *tcb, u32 seq)
{
	u32 at = seq - tcb->request_seq;

	return at < tcb->head && p->frame.payload <= tcb->head - at && was_read(p);
}

/*
 * What was sent before comes again. The owner may not have taken it then, because of a wrong checksum, an old timestamp or
 * whatever else a client can think of, and now it may say something else. So but for bytes of a body, whose content
 * counts for nothing, it goes only where it is the current request in one packet, and is judged as that was; or
 * where the owner has it already.
 */
static __always_inline enum course comes_again(struct packet *p, const struct tcb *tcb, struct request *r)
{
	u32 seq = bpf_ntohl(p->frame.tcp->seq), end = seq + p->frame.payload;

	if (asks_what_has_come(p))
		return COURSE_COME;
	if (!p->frame.payload || is_in_body(tcb, seq, end) || is_read_again(p, tcb, seq))
		return COURSE_FOLLOW;
	if (seq != tcb->request_seq || !tcb->head)
		return is_same_upload(p, tcb) ? COURSE_FOLLOW : COURSE_AGAIN;
	if (tcb->state & TCB_PINNED && (int)(end - tcb->last_seq) > 0)
		return divide(p, tcb->last_seq - seq) ? COURSE_WITHHELD : withhold(p, COUNTER_CS_EARLY);
	r->again = 1;
	enum course course = find_length(p, r);
	return r->incomplete ? COURSE_AGAIN : course;
}

/* Whether it is judged so, once its pool is known. */
static __always_inline bool is_same_request(const struct tcb *tcb, const struct request *r, u32 pool)
{
	if (pool != tcb->pool || r->cut || r->end != tcb->head)
		return false;
	return r->goes_on ? !r->odd : r->end + r->body == tcb->next_request - tcb->request_seq;
}

/* The current request ends there. What comes behind it must not be taken for what is behind its first packet. */
static __always_inline void end_upload(struct tcb *tcb, u32 next)
{
	tcb->next_request = next;
	IN_THIS_ORDER();
	tcb->options &= ~LCCP_TCB_CHUNKED;
}

/* The next bytes of a request that is followed, in their turn. */
static __always_inline enum course go_on_with_body(struct packet *p, struct tcb *tcb)
{
	u32 seq = bpf_ntohl(p->frame.tcp->seq), end = seq + p->frame.payload, behind = 0;
	struct upload *upload = upload_of(p, tcb->request_seq);

	if (upload && is_inside(&upload->body)) {
		/* So far behind its head sequence numbers do not tell what is before it. */
		tcb->head = 0;
		if (next_piece(upload) == RESPONSE_COMPLETE)
			end_upload(tcb, upload->next);
	}
	u32 seen = upload ? upload->next - seq : 0;
	if (!upload || (upload->body.state == RESPONSE_UNKNOWN && !seen)) {
		/* Forgotten, or begun at another connection server; or nobody can say what it is. */
		tcb->options &= ~LCCP_TCB_CHUNKED;
		pin(p, tcb);
		return COURSE_FOLLOW;
	}
	if ((int)(end - upload->next) <= 0)
		return COURSE_FOLLOW;
	if ((int)seen < 0 || !(tcb->options & LCCP_TCB_CHUNKED))
		return withhold(p, COUNTER_CS_EARLY);
	if ((int)(seq - upload->data) < 0 || seen > p->frame.payload)
		return divide(p, seen) ? COURSE_WITHHELD : close_for(p, tcb, CLOSED_BEHIND);
	u32 state = go_on_with_upload(p, upload, seen, &behind);
	if (behind && state == RESPONSE_COMPLETE && divide(p, p->frame.payload - behind))
		return COURSE_WITHHELD;
	if (behind || state == RESPONSE_UNKNOWN)
		return close_for(p, tcb, CLOSED_BEHIND);
	if (state == RESPONSE_COMPLETE)
		end_upload(tcb, upload->next);
	return COURSE_FOLLOW;
}

/* More of a request that is followed, or something of it again. `glance`: of the entry, see turn.h. */
static __always_inline enum course find_end(struct packet *p, struct tcb *tcb, struct request *r, u32 glance)
{
	u32 seq = bpf_ntohl(p->frame.tcp->seq), end = seq + p->frame.payload;
	const volatile struct upload *upload = upload_of(p, tcb->request_seq);

	if (upload) {
		u32 next = upload->next, data = upload->data; /* in this order: see follow_upload() */

		/* In front of the body, what comes for the first time is the rest of a head: see is_said_before(). */
		if ((int)(end - next) <= 0)
			return (int)(seq - data) >= 0 || waited_behind(p) ? COURSE_FOLLOW : comes_again(p, tcb, r);
	}
	if (!take_turn(tcb, glance))
		return withhold(p, COUNTER_CS_NOTED_MEANWHILE);
	enum course course = go_on_with_body(p, tcb);
	end_turn(tcb);
	return course;
}

/* Whether this is all data of a body that is followed: then its content counts for nothing. */
static __noinline bool is_in_upload(struct packet *p, const struct tcb *tcb, u32 seq)
{
	const volatile struct upload *upload = tcb->options & LCCP_TCB_CHUNKED ? upload_of(p, tcb->request_seq) : 0;

	if (!upload)
		return false;
	u32 next = upload->next, data = upload->data; /* in this order: see follow_upload() */
	return (int)(seq - data) >= 0 && (int)(seq + p->frame.payload - next) <= 0;
}

/*
 * Whether this goes on with a body that is followed: of that a chunk may have come that is longer than what counts as near,
 * and its beginning last.
 */
static __noinline bool continues_upload(struct packet *p, const struct tcb *tcb)
{
	const struct tcphdr *tcp = p->frame.tcp;
	u32 ack = bpf_ntohl(tcp->ack_seq) - tcb->last_ack + NEAR_ACK;

	if (!is_strict(tcb) || !(tcb->form & TCB_CHUNKED) || !p->frame.payload || ack >= 2 * NEAR_ACK)
		return false;
	/* Or the request itself comes again, from far behind. */
	if (bpf_ntohl(tcp->seq) == tcb->request_seq)
		return true;
	const struct upload *upload = upload_of(p, tcb->request_seq);
	bool is_near = upload && bpf_ntohl(tcp->seq) - upload->next + NEAR_SEQ < 2 * NEAR_SEQ;
	return (is_near && tcb->options & LCCP_TCB_CHUNKED) || is_same_upload(p, tcb);
}

/* Whether it is to be read. Where nobody knows where requests begin, the current one is known all the same. */
static __always_inline bool may_be_request(const struct packet *p, const struct tcb *tcb)
{
	if (!(tcb->state & TCB_PINNED))
		return p->frame.payload || p->frame.tcp->fin;
	return p->frame.payload && tcb->head && !(tcb->options & LCCP_TCB_TUNNEL) &&
	       bpf_ntohl(p->frame.tcp->seq) == tcb->request_seq;
}

enum {
	EARLY_TICKS = 1,           /* longer than most of what comes out of its order */
};

/*
 * What is before this packet has not come here, and may not any more: whose first bytes are on their way sends them again
 * before others. They went by another connection server, as when two are in front; or as a request that was asked for twice,
 * which its owner has withheld first, and then given to the next one. Or they were acknowledged, as parts of a head, by user
 * space, and it has died with them. Their owner says which (is_gap_for_good() in ds/begins.h). A stranger does not know what
 * the client has got.
 */
static __always_inline bool is_lost_before(struct tcb *tcb, const struct tcphdr *tcp)
{
	if (!tcp->ack || bpf_ntohl(tcp->ack_seq) != tcb->last_ack)
		return false;
	if (tcb->missing & MISSING_COUNT)
		return tick_now() - tcb->seen >= EARLY_TICKS;
	tcb->missing |= 1;
	touch(tcb);
	return false;
}

/* Whether a request begins with this packet. If so, `r` is what could be made out of it. `glance`: of the entry, see turn.h. */
static __always_inline enum course find_beginning(struct packet *p, struct tcb *tcb, struct request *r, u32 glance)
{
	struct tcphdr *tcp = p->frame.tcp;
	u32 seq = bpf_ntohl(tcp->seq), end = seq + p->frame.payload;

	p->service = service_at(p->frame.ip->daddr, tcp->dest);
	if (!p->service)
		return COURSE_FOLLOW;
	bool is_chunked = tcb->options & LCCP_TCB_CHUNKED && p->frame.payload;
	if (tcb->state & TCB_PINNED || is_said_before(p, tcb, seq))
		return comes_again(p, tcb, r);
	if (is_chunked)
		return find_end(p, tcb, r, glance);
	if ((int)(end - tcb->last_seq) <= 0)
		return comes_again(p, tcb, r);
	if ((int)(end - tcb->next_request) <= 0)
		return COURSE_FOLLOW;
	if ((int)(seq - tcb->next_request) > 0) {
		/* User space has what is before it, or a part of that; but not if that may have come to the owner before. */
		if (tcb->state & TCB_PUNTED && !tcb->doubted && goes_behind(p))
			return COURSE_WITHHELD;
		if (!tcb->doubted && !is_lost_before(tcb, tcp))
			return withhold(p, COUNTER_CS_EARLY);
		/* Its owner says where the next request begins. */
		pin(p, tcb);
		return COURSE_FOLLOW;
	}
	if (!p->frame.payload)
		return COURSE_FOLLOW;
	if (seq != tcb->next_request && !tcp->rst && !tcp->urg && divide(p, tcb->next_request - seq))
		return COURSE_WITHHELD;
	if (seq != tcb->next_request || tcp->rst || tcp->urg)
		return close_for(p, tcb, CLOSED_BEHIND);
	/* The one before is on its way to its owner: what is behind it could be there first. */
	if (tcb->state & TCB_ADOPTING && is_unanswered_request(tcb, tcp))
		return withhold(p, COUNTER_CS_WITHHELD);
	return find_length(p, r);
}

enum {
	MISSING_MAX = 3,           /* so often a packet may get lost between here and its owner */
};

/* Whether nobody here knows where the next request begins, so that the owner must be asked. */
static __always_inline bool is_unsure(const struct tcb *tcb)
{
	return tcb->state & TCB_PINNED &&
	       (tcb->options & (LCCP_TCB_STRICT | LCCP_TCB_TUNNEL)) == LCCP_TCB_STRICT;
}

/* The connection stays where it is, whatever comes on it. */
static __always_inline void stay(struct tcb *tcb)
{
	tcb->options |= LCCP_TCB_TUNNEL;
	tcb->state = (tcb->state | TCB_PINNED) & ~(TCB_ADOPTING | TCB_RELEASED);
}

/* Nothing of it has been delivered: where it begins the next request does, wherever that is to go. */
static __always_inline void take_back(struct tcb *tcb, u32 seq)
{
	tcb->next_request = seq;
	tcb->last_seq = seq;
	tcb->head = 0;
	if (tcb->options & LCCP_TCB_ELSEWHERE)
		tcb->pool = NO_POOL;
	tcb->state &= ~(TCB_PINNED | TCB_ADOPTING | TCB_RELEASED | TCB_WAITING);
	tcb->options &= ~LCCP_TCB_CHUNKED;
}

/* Its owner says that the next request begins there, which is its `requests`th. */
static __always_inline void begin_at(struct tcb *tcb, u32 seq, u8 requests)
{
	take_back(tcb, seq);
	tcb->requests = requests;
	tcb->pool = NO_POOL;
	tcb->missing = 0;
	tcb->doubted = 0;
}

/*
 * The owner had not got what came again, when it was asked: it expected `next`. If that is where the current request
 * begins, nothing of it had come there, and it is judged anew; but where it is handed over just now, that goes on. True
 * if the connection is to end.
 */
static __always_inline bool ends_as_missing(struct tcb *tcb, u32 next, bool stays)
{
	if (next == tcb->request_seq && !stays)
		return false;
	if (next == tcb->request_seq && tcb->head && !(tcb->state & TCB_PINNED)) {
		tcb->requests--;
		take_back(tcb, next);
		/* On its way it may have been behind the question. Then its client goes on behind it. */
		tcb->doubted = 1;
		tcb->missing |= MISSING_OTHER;
		return false;
	}
	tcb->missing++;
	return (tcb->missing & MISSING_COUNT) >= MISSING_MAX;
}

/*
 * The owner does not have the connection, so the one before has it, unless it did not come to that: `tcb` names that one
 * again. What of the current request it may see it says itself.
 */
static __always_inline void go_back(struct tcb *tcb)
{
	if (tcb->state & TCB_ADOPTING) {
		take_back(tcb, tcb->request_seq);
		return;
	}
	/* Acknowledgements of the response before may have been taken for those of the current one. */
	tcb->state |= TCB_PINNED;
	tcb->pool = NO_POOL;
	tcb->head = 0;
}

#endif
