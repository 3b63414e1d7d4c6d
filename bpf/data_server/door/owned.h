/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What becomes of packets of connections whose owner judges their requests, however they come: plain, in FORWARD, or in
 * ADOPT.
 */
#ifndef BATON_DATA_SERVER_DOOR_OWNED_H
#define BATON_DATA_SERVER_DOOR_OWNED_H

#include "data_server/adopt/assign.h"
#include "data_server/agent/at_reader.h"
#include "data_server/agent/kept.h"
#include "data_server/agent/reader.h"
#include "data_server/door/at_door.h"
#include "data_server/door/awaits.h"
#include "data_server/door/tally.h"
#include "data_server/handover/handover.h"
#include "data_server/handover/leave.h"
#include "data_server/packet.h"
#include "data_server/plain.h"
#include "data_server/refuse.h"

/* Returns the counter for the delivery of a packet, by the way in which it has come. */
static __always_inline enum counter counter_of(const struct lccp_header *h, const struct inner *in)
{
	if (!is_wrapped(in))
		return COUNTER_DS_DELIVERED;
	return h->command == LCCP_ADOPT ? COUNTER_DS_DUPLICATE : COUNTER_DS_FORWARDED;
}

enum {
	FOLLOWS_MAX = 32, /* a packet is sent on between data servers so often: each of them has one note at most */
	AGAIN_TICKS = 64, /* no client waits longer for a request; who had it remembers it for so long */
};

/*
 * Makes the header with which a packet follows its connection. The request with which the connection went (`is_first`)
 * goes there once more as ADOPT, because the first ADOPT may have been lost. Every other packet goes as it is, in
 * FORWARD. `before` says how often the packet was sent on already. An ADOPT that repeats another one has the number of
 * attempts that the other one had, or a higher one: it comes to nobody twice with the same. It names the connection
 * server that `h->be_data` names, or the one by which the connection came if that is 0.
 */
static __always_inline void become_follower(struct arrival *a, struct lccp_header *h, const struct given *last, u8 before,
					    bool is_first)
{
	h->receptor = LCCP_RECEPTOR_DS;
	h->command = is_first ? LCCP_ADOPT : LCCP_FORWARD;
	h->flags = is_first || a->keeper ? LCCP_FLAG_KEPT : 0;
	if (!is_first)
		h->be_data = a->keeper;
	else if (!h->be_data)
		h->be_data = last->asker;
	h->tcb = (struct lccp_tcb){};
	if (is_first) {
		h->tcb = last->tcb;
		h->tcb.be_resume = bpf_cpu_to_be64(bpf_ntohl(a->keeper));
	}
	h->tcb.attempt = is_first && last->tcb.attempt > before ? last->tcb.attempt : before + 1;
}

/*
 * Returns the connection server that is told where the connection has gone: the one that sent the packet. If the client
 * sent it here itself, it is the one by which the connection came before it went: what that one was told then may have
 * been lost.
 */
static __always_inline __be32 asker_to_tell(const struct arrival *a, const struct lccp_header *h, const struct given *last)
{
	bool is_direct = !a->asker && !h->command && !a->sent_in;

	return is_direct ? last->asker : a->asker;
}

/*
 * Sends a packet of a connection that has gone to another data server on to that one, and tells the connection server
 * (again). NOT_HERE: no such connection is known, or its request must not be done again. BEGINS_HERE: the other data
 * server is lost, and the connection begins here once more.
 */
static __noinline int follow_gone(struct arrival *a, struct lccp_header *h, struct inner *in)
{
	const struct given *last = find_given(h, in);

	if (!last)
		return NOT_HERE;
	bool is_recent = is_adopt_again(h) || tick_now() - last->tick < AGAIN_TICKS;
	bool is_first = payload_of(in) && went_with_connection(last, in) && is_recent;
	bool was_followed = is_first ? is_adopt_again(h) : h->command == LCCP_FORWARD;
	u8 before = was_followed ? h->tcb.attempt : 0;
	/*
	 * A packet that has waited, or is kept, is old, and echoes no timestamp that can be used. Of the request with
	 * which the connection went, an earlier copy may come first, from before its client had received everything:
	 * the socket that begins with it would retransmit what the client has.
	 */
	if ((is_first || has_waited(a, h)) && !begin_as_now(a->skb, in, last->ack, last->clock))
		return discard(a, COUNTER_DS_DOOR_UNRENEWED);
	if (is_first && may_have_been_done(a, h, in))
		return NOT_HERE;
	/* The connection begins here once more with the numbers that it had when it went, as by an ADOPT. */
	if (is_first && is_lost(a, in, last->next)) {
		h->tcb = last->tcb;
		h->flags = 0;
		h->be_data = last->asker;
		count(a->counters, COUNTER_DS_DOOR_BACK);
		return BEGINS_HERE;
	}
	struct passage on = { peer(last->next), last->next, is_first ? COUNTER_DS_DOOR_AGAIN : COUNTER_DS_DOOR_FOLLOWED };
	h->tcb = last->tcb;
	if (before >= FOLLOWS_MAX)
		return discard(a, COUNTER_DS_NO_SOCKET);
	/* A packet that is too long for a message waits: the daemon sends it in again in pieces. */
	if (!make_room(a, in))
		return wait(a, COUNTER_DS_DOOR_LATER);
	h->flags = 0;
	h->be_data = asker_to_tell(a, h, last);
	/* If no request went with the connection, none that comes is to be adopted: the byte before it never comes. */
	if (!went_with_connection(last, in))
		h->tcb.be_resume = bpf_cpu_to_be64((u64)MOVED_BEHIND << 32 | (last->seq - last->mid_response));
	tell_moved(a, h, in, on.address);
	become_follower(a, h, last, before, is_first);
	return send_message(a, h, in, &on);
}

/*
 * Whether this is a copy of the ADOPT that `last` notes, with which the connection was sent on from here, and that
 * comes late, or repeats it. An ADOPT that comes back from there, or was refused there, has a higher attempt. `last`
 * may be 0.
 */
static __always_inline bool was_passed_on(const struct lccp_header *h, const struct given *last)
{
	return last && h->tcb.attempt <= last->tcb.attempt;
}

/*
 * Receives an ADOPT that may have come before. A data server that never had the connection begins one with it. So does
 * one that has sent the connection on with this request, if the ADOPT has come back: then it repeats the one that was
 * to come back here.
 */
static __noinline int receive_adopt_again(struct arrival *a, struct lccp_header *h, struct inner *in)
{
	u32 seq = bpf_ntohl(in->tcp.seq);
	const struct given *last = given_with(h, in);

	if (was_passed_on(h, last))
		return follow_gone(a, h, in);
	if (last || !has_been_here(h, seq)) {
		h->flags = 0;
		return BEGINS_HERE;
	}
	a->end = seq + payload_of(in) + in->tcp.fin;
	return a->keeper ? RECEIVED_BEFORE : discard(a, COUNTER_DS_ENDED_BEFORE);
}

/* Delivers a packet of the connection on `sk`, of which TCP may see something. */
static __always_inline int let_in_packet(struct arrival *a, const struct lccp_header *h, struct inner *in, struct bpf_sock *sk)
{
	if (!keep_for(a, sk))
		return wait(a, COUNTER_DS_NO_SOCKET);
	u32 bytes = a->kept ? a->kept : payload_of(in);
	if (bytes && bytes != NOTHING)
		note_asked(a->skb, sk, payload_at(in), bpf_ntohl(in->tcp.seq), bytes);
	return pass_in(a, in, counter_of(h, in));
}

/*
 * Has the connection leave its socket, in the way that was found, and leaves the door, which was still taken. Returns
 * END_SOCKET, or a verdict if the connection stays for the time being.
 */
static __noinline int leave_socket(struct arrival *a, struct lccp_header *h, struct inner *in, struct bpf_sock *sk,
				   enum found how)
{
	struct door *d = door_of(sk, bpf_skc_to_tcp_sock(sk), h);
	int verdict;

	if (how == HAND_ON)
		verdict = hand_on_request(a, h, in, sk);
	else if (how == TO_AGENT)
		verdict = pass_to_agent(a, h, in, sk);
	else
		verdict = pass_to_server(a, h, in, sk);
	if (!d)
		return verdict;
	if (verdict == END_SOCKET) {
		if (is_move(a))
			note_move(h, bpf_skc_to_tcp_sock(sk));
		d->flags |= DOOR_LEFT;
		d->since = moment();
	}
	leave_door(d);
	return verdict;
}

/* Returns the door of a connection that begins here with this packet. */
static __always_inline struct door door_from(const struct lccp_header *h, const struct inner *in)
{
	u32 seq = bpf_ntohl(in->tcp.seq);

	return (struct door){
		.request = seq,
		.head_end = seq,
		.next = seq,
		.pool = NO_POOL,
		.asker = h->be_data,
		.body = NOT_FOLLOWED,
		.since = moment(),
		.heard = moment(),
		.counted = bpf_ntohl(in->tcp.ack_seq),
		.attempt = h->tcb.attempt,
	};
}

/*
 * Begins the door of a connection that comes here. `j` is what was judged of its first request here; 0: it comes
 * without a request.
 */
static __noinline void begin_door(struct arrival *a, const struct lccp_header *h, const struct inner *in,
				  const struct judged *j)
{
	struct door d = door_from(h, in);

	if (j) {
		let_in(&d, &j->span, false);
		d.requests = 1;
		d.route = j->route;
		d.pool = j->pool;
		d.generation = j->generation;
		count(a->counters, COUNTER_DS_DOOR_REQUEST);
		keep_until(a, in, d.next);
	} else if (is_tls(in->ip.daddr, in->tcp.dest)) {
		/* An agent has moved the connection here: what its client sends is inside TLS, as behind a ClientHello. */
		d.body = (struct followed_body){ .state = RESPONSE_BODY, .left = ENDLESS };
		d.requests = 1;
	}
	keep_door(h, &d);
}

/*
 * Begins the door of a connection with the rest of a response, which the agent has. The request that it answers is none
 * of this data server's.
 */
static __noinline void begin_resumed_door(const struct lccp_header *h, const struct inner *in)
{
	struct door d = door_from(h, in);

	d.requests = 1;
	keep_door(h, &d);
}

/* Refuses an ADOPT that no other data server will take either: the connection server need not try another one. */
static __always_inline int refuse_for_all(struct arrival *a, struct lccp_header *h, struct inner *in)
{
	h->tcb.attempt = ADOPT_ATTEMPTS;
	/* A packet that has waited has no message around it. */
	if (!make_room(a, in))
		return discard(a, COUNTER_DS_NO_WAY);
	return refuse(a, h, in, LCCP_REFUSAL_UNREADABLE);
}

/*
 * Ends the way of a request that each data server takes for another one's, because their tables differ: the agent of
 * the last one answers that nobody serves it.
 */
static __noinline int answer_for_nobody(struct arrival *a, struct lccp_header *h, struct inner *in)
{
	if (!a->settings->reader_port)
		return refuse_for_all(a, h, in);
	begin_to_read(a, h, in, DOOR_NOBODY);
	tally_at_door(a->route, a->pool, 0, COUNT_UNAVAILABLE);
	count(a->counters, COUNTER_DS_DOOR_NOBODY);
	return adopt_to_read(a, h, in);
}

/*
 * Sends an ADOPT whose request is another data server's on to that one. The number of attempts is limited, because the
 * tables of two data servers may differ.
 */
static __noinline int pass_adopt_on(struct arrival *a, struct lccp_header *h, struct inner *in)
{
	struct passage on = { peer(a->next), a->next, COUNTER_DS_DOOR_HANDED_ON };
	const struct given *last = given_with(h, in);
	bool is_again = last, is_noted = last && last->next == a->next;

	if (++h->tcb.attempt >= ADOPT_ATTEMPTS)
		return answer_for_nobody(a, h, in);
	if (!on.way || !make_room(a, in))
		return discard(a, COUNTER_DS_NO_WAY);
	/* A copy that comes late does not lower the attempt that is noted. */
	if (!is_noted || last->tcb.attempt < h->tcb.attempt)
		note_handover(a, h, in, a->next, clock_echoed(a->skb, in));
	forget_passing(h);
	if (!is_again)
		tally_at_door(a->route, a->pool, 0, COUNT_HANDOVER);
	tell_moved(a, h, in, a->next);
	h->receptor = LCCP_RECEPTOR_DS;
	h->command = LCCP_ADOPT;
	return send_message(a, h, in, &on);
}

/* Has the agent adopt the connection, or nobody if there is no agent. `flags` are added to those of its door. */
static __noinline enum found read_or_refuse(struct arrival *a, const struct lccp_header *h, const struct inner *in, u32 flags)
{
	if (a->settings->reader_port) {
		begin_to_read(a, h, in, flags);
		return ADOPT_TO_READ;
	}
	count(a->counters, COUNTER_DS_DOOR_UNREADABLE);
	return REFUSE;
}

/*
 * Refuses an ADOPT because no server listens here, and this node knows no other data server for it. The connection
 * server may know one. But if a data server has sent it, some of the request may be kept by an agent, and comes here as
 * well: then the agent here answers.
 */
static __always_inline int refuse_deserted(struct arrival *a, struct lccp_header *h, struct inner *in)
{
	if (payload_of(in) && h->tcb.attempt && a->settings->reader_port)
		return answer_for_nobody(a, h, in);
	/* From here on the connection server decides where the connection is, and a note from before is wrong. */
	forget_given(h);
	if (!make_room(a, in))
		return discard(a, COUNTER_DS_NO_WAY);
	return refuse(a, h, in, LCCP_REFUSAL_NO_LISTENER);
}

/*
 * Whether the packet is from the middle of a TLS connection. An agent has moved that here, and the ADOPT that is to begin
 * it comes again (send_move_again()).
 */
static __noinline bool is_inside_tls(struct arrival *a, const struct inner *in)
{
	u8 kind;

	return is_tls(in->ip.daddr, in->tcp.dest) && !bpf_skb_load_bytes(a->skb, payload_at(in), &kind, sizeof(kind)) &&
	       kind != HELLO_BEGIN;
}

/* Judges whose the connection is that an ADOPT brings. */
static __noinline enum found judge_adopt(struct arrival *a, struct lccp_header *h, const struct inner *in)
{
	const struct data_server *found;
	struct judged j = { .may_ask = !h->tcb.attempt };

	a->kept = 0;
	/* The connection was idle at the data server from which it comes, or its client ends it without a request. */
	if (!payload_of(in)) {
		/* Only the agent here has the session, if anybody has. */
		if (a->deserted && is_tls(in->ip.daddr, in->tcp.dest))
			return REFUSE;
		/* The agent reads its next request, whoever listens then. */
		if (a->deserted)
			return a->settings->reader_port ? read_or_refuse(a, h, in, 0) : REFUSE_DESERTED;
		begin_door(a, h, in, 0);
		return ADOPT_HERE;
	}
	if (h->tcb.attempt && is_inside_tls(a, in))
		return discard(a, COUNTER_DS_AHEAD);
	if (may_have_been_done(a, h, in))
		return REFUSE;
	if (was_passed_on(h, given_with(h, in)) && choose_again(a, h, in))
		return PASS_ON;
	enum judgement judged = judge_request(a, h, in, 0, &j);
	a->route = j.route;
	a->pool = j.pool;
	switch (judged) {
	case JUDGED_HERE:
		if (j.span.body.state == RESPONSE_UNKNOWN)
			return read_or_refuse(a, h, in, DOOR_BROKEN);
		if (a->deserted)
			return REFUSE_DESERTED;
		if (j.resumes)
			keep_request_here(a, h, in, j.pool);
		begin_door(a, h, in, &j);
		return ADOPT_HERE;
	case JUDGED_ELSEWHERE:
		found = data_server(j.owner);
		a->next = found ? unmap_address(found->address) : 0;
		return PASS_ON;
	case JUDGED_ASKS:
		return AWAITS_WORD;
	default:
		/* The agent also answers a request that nobody serves. */
		return read_or_refuse(a, h, in, 0);
	}
}

/* Makes a socket of the packet. If that succeeds, the request on it, which has just been judged, counts. */
static __always_inline int adopt_with_request(struct arrival *a, struct lccp_header *h, struct inner *in, struct bpf_sock *listener)
{
	int verdict = adopt_at(a, h, in, listener);

	if (verdict == TCX_GO_ON && a->pool != NO_POOL)
		tally_at_door(a->route, a->pool, 0, COUNT_REQUEST);
	return verdict;
}

/* What is known here of the connection that an ADOPT brings, while that has no socket. */
enum beginning {
	IS_NEW,
	IS_HERE_SOON, /* its socket is being made: the client has sent the first request that TCP has once more */
	HAS_ENDED,    /* the ADOPT is late: the connection had a socket here that began with this very request, or lately with
			 a later one */
	HAS_GONE,     /* the ADOPT brings an idle connection late: it has gone on from here with its next request */
};

/* Whether an agent has moved the connection here once more, before its client said anything. */
static __noinline bool comes_back(const struct lccp_header *h, const struct inner *in, const struct door *begun)
{
	return begun && !payload_of(in) && h->tcb.attempt > begun->attempt && is_tls(in->ip.daddr, in->tcp.dest);
}

/*
 * Says what is known of the connection. A request that was served, and whose connection has ended, must not be carried
 * out once more.
 */
static __noinline enum beginning beginning_of(const struct lccp_header *h, const struct inner *in)
{
	const struct passing *on = find_passing(h);
	struct tcb_key flow = flow_of(h);
	const struct door *begun = bpf_map_lookup_elem(&doors_begun, &flow);
	u32 seq = bpf_ntohl(in->tcp.seq);

	if (on && !on->asks && on->door.request - seq < BEHIND_SEQ)
		return IS_HERE_SOON;
	if (!payload_of(in) && was_passed_on(h, given_with(h, in)))
		return HAS_GONE;
	if (!begun)
		return IS_NEW;
	if (!(begun->flags & DOOR_BORN))
		return is_young(begun) && begun->request - seq < BEHIND_SEQ ? IS_HERE_SOON : IS_NEW;
	u32 acknowledged = begun->counted - bpf_ntohl(in->tcp.ack_seq);
	if (begun->requests && begun->request == seq && !acknowledged && !comes_back(h, in, begun))
		return HAS_ENDED;
	bool is_earlier = begun->request - seq - 1 < BEHIND_SEQ && acknowledged < BEHIND_ACK;
	return is_earlier && moment() - begun->since < LATE_FOR ? HAS_ENDED : IS_NEW;
}

/* Says what becomes of an ADOPT whose connection has no socket here: BEGINS_HERE, or a verdict. */
static __always_inline int begin_or_not(struct arrival *a, struct lccp_header *h, struct inner *in, enum beginning beginning)
{
	if (beginning == HAS_ENDED)
		return discard(a, COUNTER_DS_ENDED_BEFORE);
	return beginning == HAS_GONE ? follow_gone(a, h, in) : BEGINS_HERE;
}

/* Whether this node has made the packet, an empty ACK, in its client's name. */
static __always_inline bool is_made_here(const struct arrival *a)
{
	return a->sent_in == LEAVE_METADATA || a->sent_in == QUIET_METADATA || is_move(a);
}

/*
 * Handles a packet of a connection whose owner judges its requests, however it has come: plain, in FORWARD, or in
 * ADOPT. The function is global, so that it is verified by itself and once.
 */
__noinline int receive_owned(struct __sk_buff *skb)
{
	struct scratch *s = scratch_of_this_cpu();
	struct arrival arrival, *a = &arrival;

	if (!s || !resume_arrival(a, skb, s))
		return TCX_DISCARD;
	struct lccp_header *h = &s->header;
	struct inner *in = &s->packet;
	struct bpf_sock *sk = lookup(a->skb, in->ip.saddr, in->ip.daddr, in->tcp.source, in->tcp.dest);
	const struct passing *on = 0;
	enum beginning beginning;
	int verdict;

	a->keeper = take_keeper(a, h);
	if (is_connection(sk))
		verdict = is_made_here(a) ? leave_idle(a, h, in, sk) : at_door(a, h, in, sk);
	else if (is_made_here(a))
		verdict = is_move(a) ? send_move_again(a, h, in) : discard(a, COUNTER_DS_RELEASE_GONE);
	else if (h->command == LCCP_ADOPT && !is_adopt_again(h) && (beginning = beginning_of(h, in)) != IS_HERE_SOON)
		verdict = begin_or_not(a, h, in, beginning);
	else if ((on = find_passing(h)) && on->door.request == bpf_ntohl(in->tcp.seq))
		verdict = on->asks ? begin_again(a, h, in, on) : take_passing(a, h, in, on);
	else if (on || being_adopted(h))
		verdict = put_behind_batch(a);
	else
		verdict = is_adopt_again(h) ? receive_adopt_again(a, h, in) : follow_gone(a, h, in);
	if (verdict == BEGINS_HERE) {
		a->deserted = !sk;
		verdict = judge_adopt(a, h, in);
	}
	if (on && on->asks && (verdict == ADOPT_HERE || verdict == ADOPT_TO_READ))
		forget_passing(h);
	if (verdict == ADOPT_HERE && a->kept)
		wait_from(a, a->kept, 0);
	if (sk) {
		if (verdict == IS_READ)
			verdict = at_reader(a, h, in, sk);
		if (verdict == LET_IN)
			verdict = let_in_packet(a, h, in, sk);
		else if (is_to_leave(verdict))
			verdict = leave_socket(a, h, in, sk, verdict);
		else if (verdict == ADOPT_HERE)
			verdict = adopt_with_request(a, h, in, sk);
		bpf_sk_release(sk);
	}
	switch (verdict) {
	case END_SOCKET:
		/*
		 * Packets behind the RST in the same batch must not find their socket gone: from here on keep_for()
		 * binds them.
		 */
		handed_over_now();
		return unwrap(a, in) && become_bare_reset(a->skb, in, a->end) ? TCX_GO_ON : TCX_DISCARD;
	case ADOPT_HERE:
		return discard(a, COUNTER_DS_NO_SOCKET);
	case ADOPT_TO_READ:
		return adopt_to_read(a, h, in);
	case PASS_ON:
		return pass_adopt_on(a, h, in);
	case AWAITS_WORD:
		return await_word(a, h, in);
	case REFUSE:
		return refuse_for_all(a, h, in);
	case REFUSE_DESERTED:
		return refuse_deserted(a, h, in);
	case RECEIVED_BEFORE:
		return tell_received(a, h, in, false);
	case NOT_HERE:
		if (a->keeper)
			return tell_received(a, h, in, true);
		return is_wrapped(in) ? send_none(a, h, in) : bounce(a, h, in);
	default:
		return verdict;
	}
}

#endif
