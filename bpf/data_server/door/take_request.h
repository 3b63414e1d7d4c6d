/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What becomes of a packet that begins a request, or goes on with the body of one, once it has been judged: it is let
 * in, goes on to another data server or to the agent, or waits.
 */
#ifndef BATON_DATA_SERVER_DOOR_TAKE_REQUEST_H
#define BATON_DATA_SERVER_DOOR_TAKE_REQUEST_H

#include "data_server/door/asked.h"
#include "data_server/door/body.h"
#include "data_server/door/cut.h"
#include "data_server/door/door.h"
#include "data_server/door/early.h"
#include "data_server/door/judge.h"
#include "data_server/door/keep_request.h"
#include "data_server/door/quiet.h"
#include "data_server/door/tally.h"

/* Has only the payload before `end` delivered (`a->kept`). True if that is not all of it. */
static __always_inline bool keep_until(struct arrival *a, const struct inner *in, u32 end)
{
	u32 seq = bpf_ntohl(in->tcp.seq), bytes = payload_of(in);

	a->kept = 0;
	if (!is_before(end, seq + bytes))
		return false;
	a->kept = end - seq;
	count(a->counters, COUNTER_DS_DOOR_CUT);
	return true;
}

/* Lets in the payload before `end`. What is behind it waits. */
static __always_inline int let_in_until(struct arrival *a, const struct inner *in, u32 end)
{
	if (keep_until(a, in, end))
		wait_from(a, a->kept, 0);
	return LET_IN;
}

/*
 * Whether the packet begins a HEAD request while a response is under way, or to come. There is only one note of which
 * response has no body (asked.h). If it were taken for another response, the end of the response to HEAD would never
 * be found.
 */
static __noinline bool is_head_too_early(struct arrival *a, struct bpf_sock *sk, const struct door *d, const struct inner *in)
{
	const struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);

	return tcp && d && begins_with_head(a->skb, payload_at(in), payload_of(in)) && !is_quiet(a, sk, tcp, d, in) &&
	       !cannot_be_followed(sk);
}

/* Carries out what was judged of a request that begins with this packet. TCP has all that is before it. */
static __always_inline int take_next(struct arrival *a, const struct lccp_header *h, struct inner *in, struct bpf_sock *sk,
				     struct door *d, enum judgement found, const struct judged *j)
{
	const struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);

	if (!tcp)
		return TCX_DISCARD;
	if (a->asker)
		d->asker = a->asker;
	switch (found) {
	case JUDGED_HERE:
		if (j->span.body.state == RESPONSE_UNKNOWN) {
			a->broken = true;
			return read_or_wait(a, in, sk, d);
		}
		if (is_head_too_early(a, sk, d, in))
			return wait_until_quiet(a, sk, d, in);
		if (are_too_many(sk, d->requests))
			return wait(a, COUNTER_DS_DOOR_WITHHELD);
		/* Only on a quiet connection is it known where the response to this request begins. */
		if (j->resumes && is_quiet(a, sk, tcp, d, in))
			keep_request_here(a, h, in, j->pool);
		if (!d->requests)
			note_first_request(a->skb, sk, payload_at(in), payload_of(in));
		tally_next(d, tcp, in, j->route, j->pool);
		let_in(d, &j->span, false);
		d->since = moment();
		d->route = j->route;
		d->pool = j->pool;
		d->generation = j->generation;
		/* They are counted modulo 256, so 0 may come again. */
		if (d->requests++)
			d->attempt = 0;
		else
			note_has_asked(h, true);
		count(a->counters, COUNTER_DS_DOOR_REQUEST);
		return let_in_until(a, in, d->next);
	case JUDGED_ELSEWHERE:
		a->route = j->route;
		a->pool = j->pool;
		return hand_on_or_wait(a, in, sk, d, j->owner);
	case JUDGED_ASKS:
		return wait_for_word(a, 0);
	default:
		/* The agent also answers a request that nobody serves. */
		return read_or_wait(a, in, sk, d);
	}
}

/*
 * Handles the current request, or what was last read of its body, when it comes again while TCP has nothing of it
 * yet. `found` is its span as judged again; 0: the judgement is another one. It is let in only if it says the same as
 * before.
 */
static __always_inline int take_again(struct arrival *a, const struct lccp_header *h, const struct inner *in,
				      const struct tcp_sock *tcp, struct door *d, const struct span *found)
{
	if (found && reaches_as_far(d, found)) {
		d->since = moment();
		return let_in_until(a, in, d->next);
	}
	if (moment() - d->since > FORGET_AFTER) {
		bool is_body = d->flags & DOOR_IN_BODY;

		if (forget_request(d, tcp->rcv_nxt) && !is_body && !--d->requests)
			note_has_asked(h, false);
	}
	return discard(a, COUNTER_DS_DOOR_CHANGED);
}

/*
 * Handles a body of the current request that goes on as no body can. As long as nothing of its response has left, the
 * agent gets the connection once all requests before it are answered, and the server is told that the connection has
 * ended. A server that has begun to answer gets a FIN: it hears that no more of the body comes, and ends the
 * connection itself. NOT_YET: the packet has to wait.
 */
static __noinline int refuse_body(struct arrival *a, const struct inner *in, struct bpf_sock *sk, const struct door *d)
{
	const struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	u32 seq = bpf_ntohl(in->tcp.seq);

	if (!tcp || !d)
		return TCX_DISCARD;
	a->end = tcp->rcv_nxt;
	if (!a->settings->reader_port)
		return end_here(a, tcp, COUNTER_DS_DOOR_UNREADABLE);
	if (sk->state != STATE_ESTABLISHED || has_answered_all(sk, d->requests)) {
		a->ends = a->end == seq;
		a->kept = NOTHING;
		count(a->counters, COUNTER_DS_DOOR_UNREADABLE);
		return a->ends ? LET_IN : TCX_DISCARD;
	}
	a->broken = a->end == seq && tcp->write_seq == bpf_ntohl(in->tcp.ack_seq) &&
		    (has_answered(sk, tcp->write_seq, d->requests - 1) || (d->requests == 1 && !has_begun(sk)));
	return a->broken ? TO_AGENT : NOT_YET;
}

/* Reads more of a body that is followed. `is_again`: the packet repeats what was last read of it. */
static __always_inline int take_more(struct arrival *a, const struct lccp_header *h, struct inner *in, struct bpf_sock *sk,
				     const struct tcp_sock *tcp, struct door *d, bool is_again)
{
	struct span s = { .body = is_again ? d->before : d->body };

	follow_body(a->skb, in, is_again ? 0 : d->next - bpf_ntohl(in->tcp.seq), &s);
	if (is_again)
		return take_again(a, h, in, tcp, d, &s);
	if (s.body.state == RESPONSE_UNKNOWN) {
		int verdict = refuse_body(a, in, sk, d);

		return verdict == NOT_YET ? wait(a, COUNTER_DS_DOOR_WITHHELD) : verdict;
	}
	let_in(d, &s, true);
	d->since = moment();
	return let_in_until(a, in, d->next);
}

#endif
