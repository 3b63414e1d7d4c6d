/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The owner of a connection sees to whose each of its requests is. Nobody else need know: the connection server forwards
 * what comes, and the door here (door.h) lets in what this data server is to answer. With a request for another one the
 * connection goes there, as ADOPT, and its socket here ends without a word on the wire; the connection server is told
 * (MOVED). Until it knows, what it sends here is sent on.
 *
 * What one packet does not decide the agent reads (reader.h).
 */
#ifndef BATON_DS_OWNER_H
#define BATON_DS_OWNER_H

#include "acknowledged.h"
#include "asked.h"
#include "cut.h"
#include "door.h"
#include "doors.h"
#include "early.h"
#include "end.h"
#include "fence.h"
#include "given.h"
#include "judge.h"
#include "keep_request.h"
#include "own_cs.h"
#include "packet.h"
#include "plain.h"
#include "reader.h"
#include "send.h"
#include "tally.h"
#include "window.h"
#include "../claimed.h"
#include "../cs/moved_on.h"

enum {
	FORGET_AFTER = 64,         /* longer than a packet is on its way from here to TCP; 1.05 ms each */
};

/* Whether owners see to the requests of this service. */
static __always_inline bool is_owners(__be32 cluster, __be16 port)
{
	const struct service *service = service_at(cluster, port);

	return service && service->flags & SERVICE_OWNER;
}

/* The socket here ends in silence. Its client is reset when nobody claims its connection. */
static __always_inline int end_here(struct arrival *a, const struct tcp_sock *tcp, enum counter why)
{
	count(a->counters, why);
	a->end = tcp->rcv_nxt;
	return END_SOCKET;
}

/* The entry of this very node's connection server. */
static __noinline void moved_on_here(struct arrival *a, const struct lccp_header *h, const struct inner *in, __be32 next)
{
	struct tcb_key flow;
	struct tcb *tcb = own_entry(h, &flow);
	u32 owner = data_server_at(next);

	if (!tcb || !is_this_node(tcb->owner) || owner == NO_DATA_SERVER)
		return;
	note_moved_on(tcb, owner, h, &in->tcp);
	count(a->counters, COUNTER_CS_MOVED_ON);
}

/* Tells the connection server that sent the packet, or that the ADOPT names, who has the connection now. */
static __noinline void tell_moved(struct arrival *a, struct lccp_header *h, const struct inner *in, __be32 next)
{
	__be32 asker_address = h->be_data;
	const struct data_server *asker = peer(asker_address);

	if (!asker)
		return;
	if (is_own_cs(asker)) {
		moved_on_here(a, h, in, next);
		return;
	}
	h->receptor = LCCP_RECEPTOR_CS;
	h->command = LCCP_MOVED;
	h->be_data = next;
	h->be_sequence = 0;
	send_copy(a, h, in, asker, asker_address);
	h->be_data = asker_address;
}

/* Whose host has died since a connection was given to it, with its socket. */
static __always_inline bool is_dead(__be32 address)
{
	const struct data_server *found = data_server(data_server_at(address));

	return found && found->flags & DATA_SERVER_DEAD;
}

/* Whether the request that this packet begins may be done twice (RFC 9110, 9.2.2). */
static __noinline bool is_repeatable(struct __sk_buff *skb, const struct inner *in)
{
	u64 word;

	if (bpf_skb_load_bytes(skb, payload_at(in), &word, sizeof(word)))
		return false;
	return (word & FIRST(4)) == LETTERS('G', 'E', 'T', ' ', 0, 0, 0, 0) ||
	       (word & FIRST(5)) == LETTERS('H', 'E', 'A', 'D', ' ', 0, 0, 0) ||
	       word == LETTERS('O', 'P', 'T', 'I', 'O', 'N', 'S', ' ');
}

/* Whether the request went to one that is dead now, and may have been done there. */
static __noinline bool may_have_been_done(struct arrival *a, const struct lccp_header *h, const struct inner *in)
{
	const struct given *before = given_with(h, in);

	return before && is_dead(before->next) && !is_repeatable(a->skb, in);
}

/*
 * A request that went to another data server comes again: who was chosen then may have a socket by now, and it stays with that one,
 * whose turn it ever is, and however much of it this packet shows. The old socket is still found by what was in one batch with it.
 */
static __noinline bool choose_again(struct arrival *a, const struct lccp_header *h, const struct inner *in)
{
	const struct given *before = given_with(h, in);

	if (!before || is_dead(before->next))
		return false;
	a->next = before->next;
	return true;
}

/* With this request the connection is the next one's: it adopts it, and what its socket here has left is nothing. */
static __noinline int hand_on_request(struct arrival *a, struct lccp_header *h, struct inner *in, struct bpf_sock *sk)
{
	const struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);

	choose_again(a, h, in);
	__be32 next_address = a->next, asker = a->asker;
	const struct data_server *next = peer(next_address);

	if (!tcp || !next)
		return discard(a, COUNTER_DS_NO_WAY);
	/* What is too long for a message comes in pieces from there. */
	if (!make_room(a, in))
		return wait(a, COUNTER_DS_DOOR_LATER);
	settle_at_door(bpf_sk_storage_get(&doors, sk, 0, 0), tcp, in);
	h->be_body_length = 0;
	h->flags = 0;
	h->tcb = part_of(tcp);
	h->tcb.options |= aware_option(sk);
	h->tcb.be_cwnd = window_to_give(tcp);
	/* Chosen: no dispatcher is asked again. */
	h->tcb.attempt = 1;
	note_handover(a, h, in, next_address, tcp->tsoffset);
	forget_passing(h);
	h->be_data = asker;
	h->receptor = LCCP_RECEPTOR_DS;
	h->command = LCCP_ADOPT;
	if (!send_copy(a, h, in, next, next_address))
		return TCX_DISCARD;
	if (a->pool != NO_POOL)
		tally_at_door(a->route, a->pool, 0, COUNT_HANDOVER);
	tell_moved(a, h, in, next_address);
	count(a->counters, COUNTER_DS_DOOR_HANDED_ON);
	return END_SOCKET;
}

/*
 * Whether all was said on the connection: its server has read all that came, its client has heard so, and each request that was let in
 * has come as a whole, and has its whole response. `a->end` is then what its socket expected at this look.
 */
static __always_inline bool is_all_said(struct arrival *a, struct bpf_sock *sk, const struct tcp_sock *tcp, const struct door *d,
					const struct inner *in)
{
	a->end = bpf_ntohl(in->tcp.seq);
	return sk->state == STATE_ESTABLISHED && tcp->rcv_nxt == a->end && tcp->copied_seq == a->end && tcp->rcv_wup == a->end &&
	       d->next == a->end && d->body.state == RESPONSE_COMPLETE &&
	       (has_answered(sk, tcp->write_seq, d->requests) || (!d->requests && !has_begun(sk)));
}

/* Whether the connection can go: besides, its client has acknowledged all, so nothing is on its way. */
static __always_inline bool is_quiet(struct arrival *a, struct bpf_sock *sk, const struct tcp_sock *tcp, const struct door *d,
				     const struct inner *in)
{
	return is_all_said(a, sk, tcp, d, in) && tcp->write_seq == bpf_ntohl(in->tcp.ack_seq);
}

/*
 * Whether only an acknowledgement is missing: the client has been sent the last byte of the last response, and may delay what it says
 * about that. What an agent sends in is not looked at: its client has said all that it will.
 */
static __noinline bool is_unacknowledged(struct arrival *a, struct bpf_sock *sk, const struct door *d, const struct inner *in)
{
	const struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);

	return tcp && d && !is_of_agent(a) && !a->keeper && tcp->snd_nxt == tcp->write_seq &&
	       is_before(tcp->snd_una, tcp->write_seq) && is_all_said(a, sk, tcp, d, in);
}

/* The request that the packet begins waits until its connection is quiet. */
static __always_inline int wait_until_quiet(struct arrival *a, struct bpf_sock *sk, const struct door *d, const struct inner *in)
{
	return wait_for(a, is_unacknowledged(a, sk, d, in) ? EARLY_UNACKNOWLEDGED : 0, COUNTER_DS_DOOR_WITHHELD);
}

static __always_inline bool is_being_read(const struct door *d)
{
	return d->flags & DOOR_READING;
}

/* Whether the connection on this socket, which a server here has answered on, is to stay here. */
static __noinline bool is_to_stay(const struct inner *in, const struct door *d)
{
	const struct service *service = service_at(in->ip.daddr, in->tcp.dest);

	return d && d->pool != NO_POOL && service && service->flags & SERVICE_STAYS;
}

/* The connection goes as `how` says, once it is quiet. If it never will be, it ends: by its server, if that has said so. */
static __always_inline int go_when_quiet(struct arrival *a, struct inner *in, struct bpf_sock *sk, const struct door *d,
					 enum found how)
{
	const struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);

	if (!tcp)
		return TCX_DISCARD;
	if (is_last(sk))
		return keep_out(a, COUNTER_DS_DOOR_LAST);
	if (is_quiet(a, sk, tcp, d, in))
		return how;
	if (cannot_be_followed(sk) || has_answered_more(sk, d->requests))
		return end_here(a, tcp, COUNTER_DS_DOOR_STAYS);
	return wait_until_quiet(a, sk, d, in);
}

/* What is to be read: by the agent; without one its connection ends. */
static __always_inline int read_or_wait(struct arrival *a, struct inner *in, struct bpf_sock *sk, const struct door *d)
{
	const struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);

	if (!tcp)
		return TCX_DISCARD;
	if (!a->settings->reader_port)
		return end_here(a, tcp, COUNTER_DS_DOOR_UNREADABLE);
	return go_when_quiet(a, in, sk, d, TO_AGENT);
}

static __always_inline int hand_on_or_wait(struct arrival *a, struct inner *in, struct bpf_sock *sk, const struct door *d,
					   u16 owner)
{
	const struct data_server *next = data_server(owner);

	if (!next)
		return TCX_DISCARD;
	a->next = unmap_address(next->address);
	a->asker = d->asker;
	int verdict = go_when_quiet(a, in, sk, d, HAND_ON);
	const struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	if (verdict == HAND_ON && tcp && is_to_stay(in, d))
		return end_here(a, tcp, COUNTER_DS_DOOR_FIXED);
	return verdict;
}

/* What of the packet is before `end` is to be delivered. True if that is not all of it. */
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

/* The same, and what is behind it waits. */
static __always_inline int let_in_until(struct arrival *a, const struct inner *in, u32 end)
{
	if (keep_until(a, in, end))
		wait_from(a, a->kept, 0);
	return LET_IN;
}

/*
 * Whether the packet begins a request for HEAD while a response is under way, or to come. One note is all that says which response
 * has no body (asked.h): taken for another one's, that would never end.
 */
static __noinline bool is_head_too_early(struct arrival *a, struct bpf_sock *sk, const struct door *d, const struct inner *in)
{
	const struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);

	return tcp && d && begins_with_head(a->skb, payload_at(in)) && !is_quiet(a, sk, tcp, d, in) && !cannot_be_followed(sk);
}

/* A request begins with this packet, and TCP has all that is before it. */
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
		/* Else it is not known where its response begins. */
		if (j->resumes && is_quiet(a, sk, tcp, d, in))
			keep_request_here(a, h, in, j->pool);
		tally_next(d, tcp, in, j->route, j->pool);
		let_in(d, &j->span, false);
		d->since = moment();
		d->route = j->route;
		d->pool = j->pool;
		d->generation = j->generation;
		d->requests++;
		count(a->counters, COUNTER_DS_DOOR_REQUEST);
		return let_in_until(a, in, d->next);
	case JUDGED_ELSEWHERE:
		a->route = j->route;
		a->pool = j->pool;
		return hand_on_or_wait(a, in, sk, d, j->owner);
	case JUDGED_ASKS:
		return wait_for_word(a, 0);
	default:
		/* The agent also says that nobody answers it. */
		return read_or_wait(a, in, sk, d);
	}
}

/* The current request, or what was last read of its body, comes again; TCP has nothing of it yet. */
static __always_inline int take_again(struct arrival *a, const struct inner *in, const struct tcp_sock *tcp, struct door *d,
				      const struct span *found)
{
	if (found && is_let_in(d, found)) {
		d->since = moment();
		return let_in_until(a, in, d->next);
	}
	if (moment() - d->since > FORGET_AFTER) {
		bool is_body = d->flags & DOOR_IN_BODY;

		if (forget_request(d, tcp->rcv_nxt) && !is_body)
			d->requests--;
	}
	return discard(a, COUNTER_DS_DOOR_CHANGED);
}

/*
 * The body of the current request goes on as no body can. As long as nothing of its response has left, the agent answers it once all
 * before it is answered, and its server is told that the connection has ended. A server that has begun to answer hears that there is no
 * more of the body, and ends the connection itself.
 */
static __noinline int refuse_body(struct arrival *a, const struct inner *in, struct bpf_sock *sk, const struct door *d)
{
	const struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	u32 seq = bpf_ntohl(in->tcp.seq);

	if (!tcp || !d)
		return TCX_DISCARD;
	a->end = tcp->rcv_nxt;
	if (!a->settings->reader_port) {
		count(a->counters, COUNTER_DS_DOOR_UNREADABLE);
		return END_SOCKET;
	}
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

/* More of a body that is followed. */
static __always_inline int take_more(struct arrival *a, struct inner *in, struct bpf_sock *sk, const struct tcp_sock *tcp,
				     struct door *d, bool is_again)
{
	struct span s = { .body = is_again ? d->before : d->body };

	follow_body(a->skb, in, is_again ? 0 : d->next - bpf_ntohl(in->tcp.seq), &s);
	if (is_again)
		return take_again(a, in, tcp, d, &s);
	if (s.body.state == RESPONSE_UNKNOWN) {
		int verdict = refuse_body(a, in, sk, d);

		return verdict == NOT_YET ? wait(a, COUNTER_DS_DOOR_WITHHELD) : verdict;
	}
	let_in(d, &s, true);
	d->since = moment();
	return let_in_until(a, in, d->next);
}

/* The agent has read the request that this packet begins. Without a pool that answers it, the agent answers. */
static __always_inline int judge_read(struct arrival *a, struct lccp_header *h, const struct inner *in, struct door *d,
				      const struct have_read *known)
{
	struct judged j = { .known = known, .asks = !(d->flags & DOOR_CHOSEN) };
	const struct data_server *next;

	switch (judge_request(a, h, in, d->pool == NO_POOL ? 0 : d, &j)) {
	case JUDGED_HERE:
		d->next = d->request;
		let_in(d, &j.span, false);
		d->route = j.route;
		d->pool = j.pool;
		d->generation = j.generation;
		count(a->counters, COUNTER_DS_DOOR_REQUEST);
		return TO_SERVER;
	case JUDGED_ASKS:
		return wait_for_word(a, EARLY_ONLY_ASKS);
	case JUDGED_ELSEWHERE:
		next = data_server(j.owner);
		if (!next)
			return TCX_DISCARD;
		a->next = unmap_address(next->address);
		a->asker = d->asker;
		a->route = j.route;
		a->pool = j.pool;
		if (!is_to_stay(in, d))
			return HAND_ON;
	default:
		if (!(d->flags & DOOR_NOBODY))
			tally_at_door(j.route, j.pool, 0, COUNT_UNAVAILABLE);
		d->flags |= DOOR_NOBODY;
		return discard(a, COUNTER_DS_DOOR_NOBODY);
	}
}

/* TCP has not seen what is before it, which may be in the same batch: once more through here, behind that; and then later. */
static __always_inline int put_behind_batch(struct arrival *a)
{
	if (rounds_of(a) > 1 || a->sent_in == EARLY_METADATA || a->mark == MARK_OF_AGENT)
		return wait(a, COUNTER_DS_DOOR_LATER);
	/* What says that it was sent in is lost on that way. */
	a->skb->mark = is_of_agent(a) ? MARK_OF_AGENT : mark_behind(a);
	count(a->counters, COUNTER_DS_DOOR_BATCH);
	return bpf_redirect(a->skb->ifindex, BPF_F_INGRESS);
}

/* What becomes of a packet as its door says, at which no other processor has a packet. */
static __always_inline int pass_door(struct arrival *a, struct lccp_header *h, struct inner *in, struct bpf_sock *sk,
				     struct door *d)
{
	const struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	u32 seq = bpf_ntohl(in->tcp.seq), bytes = payload_of(in);

	if (!tcp)
		return TCX_DISCARD;
	if (d->flags & DOOR_SWITCHES && is_tunnel(sk))
		return LET_IN;
	if (a->keeper && !is_before(tcp->rcv_nxt, seq + bytes + in->tcp.fin)) {
		a->end = tcp->rcv_nxt;
		return RECEIVED_BEFORE;
	}
	if (d->flags & DOOR_OWES) {
		u32 known = d->body.state == RESPONSE_COMPLETE ? d->next : d->head_end;

		if (is_of_agent(a) && is_before(seq, known))
			return let_in_until(a, in, known);
		if (!is_of_agent(a) && is_before(tcp->rcv_nxt, d->head_end))
			return wait(a, COUNTER_DS_DOOR_LATER);
	}
	enum course_at_door course = course_at_door(d, tcp->rcv_nxt, seq, bytes);
	switch (course) {
	case DOOR_DELIVER:
		return LET_IN;
	case DOOR_CUT:
		return let_in_until(a, in, d->next);
	case DOOR_CUT_OLD:
		return let_in_until(a, in, d->request);
	case DOOR_AFTER_BATCH:
		return put_behind_batch(a);
	case DOOR_FOLLOW:
		return take_more(a, in, sk, tcp, d, false);
	default:
		break;
	}
	bool is_next = course == DOOR_JUDGE;
	if (!is_next && d->flags & DOOR_IN_BODY)
		return take_more(a, in, sk, tcp, d, true);
	/* Again: that this node may answer it is enough, as it does. */
	struct judged j = { .asks = is_next };
	enum judgement found = judge_request(a, h, in, is_next ? d : 0, &j);
	if (is_next)
		return take_next(a, h, in, sk, d, found, &j);
	return take_again(a, in, tcp, d, found == JUDGED_HERE && j.pool == d->pool ? &j.span : 0);
}

/* Whether TCP has all that the packet brings. It may have ended in order (TIME_WAIT). */
static __noinline bool has_come(struct bpf_sock *sk, const struct inner *in)
{
	u32 end = bpf_ntohl(in->tcp.seq) + payload_of(in) + in->tcp.fin;
	const struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);

	if (tcp)
		return !is_before(tcp->rcv_nxt, end) && !is_before(tcp->snd_una, bpf_ntohl(in->tcp.ack_seq));
	const struct tcp_timewait_sock *timewait = bpf_skc_to_tcp_timewait_sock(sk);
	return timewait && !is_before(timewait->tw_sk.__tw_common.skc_tw_rcv_nxt, end);
}

/* What becomes of a packet of the connection on `sk`: LET_IN, HAND_ON, TO_AGENT, IS_READ, or it is done with. */
static __noinline int at_door(struct arrival *a, struct lccp_header *h, struct inner *in, struct bpf_sock *sk)
{
	const struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	int verdict;

	a->kept = 0;
	/* Of its first packet, whatever that is: then it need not be kept elsewhere any more. */
	struct door *d = door_of(sk, tcp, h);
	if (d)
		note_heard(a, d);
	if (d && tcp && d->flags & DOOR_OWES)
		settle_note(h, d, !is_before(tcp->rcv_nxt, d->owed));
	if (d && tcp && is_to_settle(sk, tcp, d, in))
		settle_at_door(d, tcp, in);
	if (tcp && (a->keeper || is_of_agent(a)))
		note_acknowledged(sk, tcp->rcv_nxt, bpf_ntohl(in->tcp.seq) + payload_of(in));
	/* TCP would answer it once more: the client would hear of a loss that is none, or has ended and would answer with a RST. */
	if (a->sent_in == EARLY_METADATA && has_come(sk, in))
		return discard(a, COUNTER_DS_DOOR_CAME);
	if (!tcp && a->keeper) {
		/* It has ended in order (TIME_WAIT). */
		a->end = bpf_ntohl(in->tcp.seq) + payload_of(in);
		return RECEIVED_BEFORE;
	}
	if (!payload_of(in) || !tcp)
		return LET_IN;
	if (!d)
		return end_here(a, tcp, COUNTER_DS_DOOR_UNKNOWN);
	bool is_read = is_being_read(d);
	if (has_waited(a, h) && !(is_read && is_of_agent(a)) && !renew(a, in, tcp))
		return discard(a, COUNTER_DS_DOOR_UNRENEWED);
	if (is_read)
		return IS_READ;
	if (!take_door(d))
		return put_behind_batch(a);
	verdict = pass_door(a, h, in, sk, d);
	leave_door(d);
	/* What it acknowledges need not wait with its data: else a server says once more what its client has. */
	if (a->keeps_out && is_before(tcp->snd_una, bpf_ntohl(in->tcp.ack_seq))) {
		a->kept = NOTHING;
		return LET_IN;
	}
	return verdict;
}

/* What is behind `end` comes when the agent has given the connection back, if it does not answer itself. */
static __always_inline int read_no_more_than(struct arrival *a, const struct inner *in, struct bpf_sock *sk, u32 end)
{
	u32 seq = bpf_ntohl(in->tcp.seq);

	if (!is_before(end, seq + payload_of(in)))
		return LET_IN;
	const struct have_read *read = bpf_sk_storage_get(&have_read, sk, 0, 0);
	if (read && read->flags & READ_ANSWERS)
		return LET_IN;
	return is_before(seq, end) ? let_in_until(a, in, end) : wait(a, COUNTER_DS_DOOR_LATER);
}

/* A packet of a connection that the agent has: LET_IN, HAND_ON, TO_SERVER, or it is done with. */
static __noinline int at_reader(struct arrival *a, struct lccp_header *h, const struct inner *in, struct bpf_sock *sk)
{
	const struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	struct door *d = door_of(sk, tcp, h);

	if (!tcp || !d)
		return TCX_DISCARD;
	note_last(a->skb, in, d);
	const struct have_read *known = find_read(a, sk, in, d);
	if (known && !echo_now(a->skb, in, tcp->tsoffset))
		return discard(a, COUNTER_DS_DOOR_UNRENEWED);
	if (known)
		return judge_read(a, h, in, d, known);
	/* What the agent has sent in, its own socket has. But for what was behind a request that it has given back. */
	if (is_of_agent(a) && !is_before(tcp->rcv_nxt, bpf_ntohl(in->tcp.seq) + payload_of(in)))
		return wait(a, COUNTER_DS_DOOR_LATER);
	/* What its socket holds behind a gap the next one would not have, and the client would think that it has (SACK). */
	if (is_before(tcp->rcv_nxt, bpf_ntohl(in->tcp.seq)))
		return put_behind_batch(a);
	return read_no_more_than(a, in, sk, d->request + READ_BYTES_MOST);
}

#endif
