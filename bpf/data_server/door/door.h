/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The door decides what becomes of each packet of a connection whose socket is here, before TCP sees it. It knows where
 * requests begin and end. Its caller judges what they say, and tells the door by let_in().
 *
 *  TCP has all of its payload                                       deliver (packets without payload: at_door.h)
 *  begins behind the next request                                   after the batch; then it waits
 *  reaches beyond what is known of a body that is followed
 *    (body.h), and TCP has accepted what was read last              follow
 *  begins where the next request does                               judge, once TCP has all that is before it
 *  begins before the next request, and TCP has
 *    accepted the current request's head                            deliver, in any order; cut at the next request
 *    not accepted it, and the packet begins
 *      before the current request                                   cut: TCP acknowledges again what is before that
 *      with the current request                                     judge again
 *      behind its first byte                                        after the batch; then it waits
 *
 * Nothing unjudged gets past the door. What lies at or behind the next request is never delivered. What lies before it
 * is delivered only if TCP has accepted the head that was judged, or if it is judged again with the same outcome: TCP
 * may drop a head that was judged, because its checksum is wrong.
 */
#ifndef BATON_DATA_SERVER_DOOR_DOOR_H
#define BATON_DATA_SERVER_DOOR_DOOR_H

#include "data_server/packet.h"

/* What becomes of a packet at the door. */
enum course_at_door {
	DOOR_DELIVER,              /* TCP gets it */
	DOOR_CUT,                  /* TCP gets what is before the next request; the rest comes again */
	DOOR_CUT_OLD,              /* TCP gets what is before the current request */
	DOOR_AFTER_BATCH,          /* it comes through here once more, when TCP has seen the packets before it */
	DOOR_JUDGE,                /* a request begins with it */
	DOOR_JUDGE_AGAIN,          /* the current request begins with it, again: it is delivered if it says the same */
	DOOR_FOLLOW,               /* it has more of a body that is followed, from `next` on */
};

#define NOT_FOLLOWED ((struct followed_body){ .state = RESPONSE_COMPLETE })

/*
 * How far the client's stream is known: up to `next`, if TCP accepts what is before `head_end`.
 */
struct span {
	u32 head_end;
	u32 next;
	struct followed_body body; /* state of the body at `next` */
};

static __always_inline bool is_before(u32 one, u32 other)
{
	return (int)(one - other) < 0;
}

/* Says what becomes of a packet with `bytes` bytes of payload from `seq` on, while TCP expects `rcv_nxt`. */
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
	/* If TCP has not seen what is before the packet, it is not known either whether the connection is quiet. */
	if (seq == d->next)
		return is_before(rcv_nxt, seq) || is_followed ? DOOR_AFTER_BATCH : DOOR_JUDGE;
	if (!is_before(rcv_nxt, d->head_end))
		return is_before(d->next, end) ? DOOR_CUT : DOOR_DELIVER;
	/*
	 * TCP accepted everything before the current request before that was judged. It only acknowledges these bytes
	 * again.
	 */
	if (is_before(seq, d->request))
		return DOOR_CUT_OLD;
	return seq == d->request ? DOOR_JUDGE_AGAIN : DOOR_AFTER_BATCH;
}

/*
 * Notes that what begins at `next` is this node's: a request, or with `is_body` more of a request's body. `s` says
 * how far it goes.
 */
static __always_inline void let_in(struct door *d, const struct span *s, bool is_body)
{
	d->before = d->body;
	d->request = d->next;
	d->head_end = s->head_end;
	d->next = s->next;
	d->body = s->body;
	d->flags = (d->flags & ~(DOOR_FROM_AGENT | DOOR_IN_BODY)) | (is_body ? DOOR_IN_BODY : 0);
}

/*
 * Forgets what was let in of the current request, because the request has come again and says something else: TCP has
 * dropped one of the two, or will. The next packet is judged as the request's first one. False if TCP does not expect
 * the request's first byte. The caller does this only FORGET_AFTER after it was let in: until then it may still be on
 * its way to TCP.
 */
static __always_inline bool forget_request(struct door *d, u32 rcv_nxt)
{
	if (rcv_nxt != d->request)
		return false;
	d->next = d->head_end = d->request;
	d->body = d->before;
	return true;
}

/*
 * Returns how often the connection was sent on since it last had a request that was let in. The request that came with
 * it counts only while it is let in: it may be forgotten, and judged anew.
 */
static __always_inline u8 attempt_of(const struct door *d)
{
	return d->requests ? 0 : d->attempt;
}

/* Whether the current request, judged again, reaches exactly as far as what was let in. */
static __always_inline bool reaches_as_far(const struct door *d, const struct span *s)
{
	return d->head_end == s->head_end && d->next == s->next && d->body.state == s->body.state &&
	       d->body.left == s->body.left && d->body.digits == s->body.digits;
}

#endif
