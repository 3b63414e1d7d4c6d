/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The door: what becomes of each packet of a connection whose socket is here, before TCP sees it. It knows where requests
 * begin and end; what they say is judged by its caller, who then says what it found (let_in).
 *
 *  no payload, or TCP has all of it                                 deliver
 *  begins behind the next request                                   after the batch: the agent may be about to get it
 *  begins where the next request does                               judge, once TCP has all that is before it
 *  in a body that is followed (body.h), reaches beyond what is known of it, once TCP has accepted the last of that   judge
 *  begins before that, and TCP has accepted the current one's head  deliver, in any order; cut at the next request
 *  ... and has not: it is the current request again                 judge again
 *                   it begins before the current request            cut: TCP acknowledges that it has what is before
 *                   it is behind a head that TCP has not seen       after the batch
 *
 * Nothing unjudged gets past: what lies at or behind the next request is never delivered, and what lies before it only if
 * TCP has accepted the head that was judged, or if it is judged again with the same outcome. A head may be judged that TCP
 * drops, because its checksum is wrong.
 */
#ifndef BATON_DATA_SERVER_DOOR_DOOR_H
#define BATON_DATA_SERVER_DOOR_DOOR_H

#include "data_server/packet.h"

/* What becomes of a packet. */
enum course_at_door {
	DOOR_DELIVER,              /* to TCP */
	DOOR_CUT,                  /* what is before the next request to TCP; the rest comes again, */
	DOOR_CUT_OLD,              /* or what is before the current one */
	DOOR_AFTER_BATCH,          /* once more through here, when TCP has seen the packets before it */
	DOOR_JUDGE,                /* a request begins with it */
	DOOR_JUDGE_AGAIN,          /* the current one begins with it, again: delivered if it says the same */
	DOOR_FOLLOW,               /* more of the body, from the next byte on */
};

#define NOT_FOLLOWED ((struct followed_body){ .state = RESPONSE_COMPLETE })

/* So much is known of the stream from a packet on: up to `next`, if TCP accepts what is before `head_end`. */
struct span {
	u32 head_end;
	u32 next;
	struct followed_body body; /* at `next` */
};

static __always_inline bool is_before(u32 one, u32 other)
{
	return (int)(one - other) < 0;
}

/* Of `bytes` of payload at `seq`, when TCP expects `rcv_nxt`. */
static __always_inline enum course_at_door course_at_door(const struct door *d, u32 rcv_nxt, u32 seq, u32 bytes)
{
	u32 end = seq + bytes;
	bool is_followed = d->body.state != RESPONSE_COMPLETE;

	if (!is_before(rcv_nxt, end))
		return DOOR_DELIVER;
	if (is_before(d->next, seq))
		return DOOR_AFTER_BATCH;
	if (is_followed && !is_before(rcv_nxt, d->head_end) && is_before(d->next, end))
		return DOOR_FOLLOW;
	/* TCP may not have seen what is before it: then it is not known either whether it is quiet. */
	if (seq == d->next)
		return is_before(rcv_nxt, seq) || is_followed ? DOOR_AFTER_BATCH : DOOR_JUDGE;
	if (!is_before(rcv_nxt, d->head_end))
		return is_before(d->next, end) ? DOOR_CUT : DOOR_DELIVER;
	/* All before the current request was accepted before that was judged: TCP acknowledges that it has it. */
	if (is_before(seq, d->request))
		return DOOR_CUT_OLD;
	return seq == d->request ? DOOR_JUDGE_AGAIN : DOOR_AFTER_BATCH;
}

/* The request at `next`, or more of its body, is this node's, and goes so far. */
static __always_inline void let_in(struct door *d, const struct span *s, bool is_body)
{
	d->before = d->body;
	d->request = d->next;
	d->head_end = s->head_end;
	d->next = s->next;
	d->body = s->body;
	if (is_body)
		d->flags |= DOOR_IN_BODY;
	else
		d->flags &= ~DOOR_IN_BODY;
}

/*
 * The current request comes again and says something else: TCP has dropped one of the two, or will. The next packet is judged as
 * the first one of it. Only after a moment: until then what was let in may still be on its way to TCP.
 */
static __always_inline bool forget_request(struct door *d, u32 rcv_nxt)
{
	if (rcv_nxt != d->request)
		return false;
	d->next = d->head_end = d->request;
	d->body = d->before;
	return true;
}

/* Whether the current request, judged again, is the one that was let in. */
static __always_inline bool is_let_in(const struct door *d, const struct span *s)
{
	return d->head_end == s->head_end && d->next == s->next && d->body.state == s->body.state &&
	       d->body.left == s->body.left && d->body.digits == s->body.digits;
}

#endif
