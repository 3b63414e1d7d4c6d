/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Handles packets of a connection that the agent has because it reads the current request. The agent sends the request
 * that it has read through here too; with that request the connection goes to the server or to another data server.
 */
#ifndef BATON_DATA_SERVER_AGENT_AT_READER_H
#define BATON_DATA_SERVER_AGENT_AT_READER_H

#include "data_server/agent/reader.h"
#include "data_server/door/at_door.h"
#include "data_server/door/judge.h"
#include "data_server/door/quiet.h"
#include "data_server/door/take_request.h"

/*
 * Judges the request that the agent has read and that begins with this packet. The agent answers it (DOOR_NOBODY) if no
 * data server answers for its pool, if it belongs to another data server but the connection must stay here, or if no
 * attempt is left.
 */
static __always_inline int judge_read(struct arrival *a, struct lccp_header *h, const struct inner *in, struct door *d,
				      const struct have_read *known)
{
	struct judged j = { .known = known, .may_ask = !(d->flags & DOOR_CHOSEN) };
	const struct data_server *next;

	a->deserted = !is_server_there(a, in);
	switch (judge_request(a, h, in, d->pool == NO_POOL ? 0 : d, &j)) {
	case JUDGED_HERE:
		/* No server listens here. The connection stays with the agent, which sends the request in again later. */
		if (a->deserted)
			return discard(a, COUNTER_DS_UNASSIGNED);
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
		/*
		 * Attempts are limited: data servers may name each other, because their tables differ or none has a
		 * listener.
		 */
		if (!is_to_stay(in, d) && attempt_of(d) + 1 < ADOPT_ATTEMPTS)
			return HAND_ON;
	default:
		if (!(d->flags & DOOR_NOBODY))
			tally_at_door(j.route, j.pool, 0, COUNT_UNAVAILABLE);
		d->flags |= DOOR_NOBODY;
		return discard(a, COUNTER_DS_DOOR_NOBODY);
	}
}

/*
 * Lets in the payload before `end`, because the agent reads no more. The rest waits until the connection has left the
 * agent. If the agent itself answers the request, all payload is let in.
 */
static __always_inline int let_in_no_more_than(struct arrival *a, const struct inner *in, struct bpf_sock *sk, u32 end)
{
	u32 seq = bpf_ntohl(in->tcp.seq);

	if (!is_before(end, seq + payload_of(in)))
		return LET_IN;
	const struct have_read *read = bpf_sk_storage_get(&have_read, sk, 0, 0);
	if (read && read->flags & READ_ANSWERS)
		return LET_IN;
	return is_before(seq, end) ? let_in_until(a, in, end) : wait(a, COUNTER_DS_DOOR_LATER);
}

/*
 * Notes that this packet's data is on its way to the agent's socket. find_read() lets the connection leave once the
 * socket has the data, or after FORGET_AFTER.
 */
static __always_inline void note_let_in(const struct arrival *a, const struct inner *in, const struct tcp_sock *tcp,
					struct door *d)
{
	u32 end = bpf_ntohl(in->tcp.seq) + (a->kept ? a->kept : payload_of(in));

	if (!is_before(tcp->rcv_nxt, end))
		return;
	if (is_before(d->next, end))
		d->next = end;
	d->since = moment();
}

/* Decides what becomes of a packet of a connection that the agent has. The caller has taken the door. */
static __always_inline int pass_reader(struct arrival *a, struct lccp_header *h, const struct inner *in, struct bpf_sock *sk,
				       struct door *d)
{
	const struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);

	if (!tcp)
		return TCX_DISCARD;
	note_last(a->skb, in, d);
	if (has_just_left(d))
		return put_behind_batch(a);
	const struct have_read *known = find_read(a, sk, in, d);
	if (known && !echo_now(a->skb, in, tcp->tsoffset))
		return discard(a, COUNTER_DS_DOOR_UNRENEWED);
	if (known)
		return judge_read(a, h, in, d, known);
	/*
	 * The agent's socket already has what the agent sends in, so that data waits for the next socket. The exception
	 * is data behind a request that the agent gave back earlier: this socket does not have it yet.
	 */
	if (is_of_agent(a) && !is_before(tcp->rcv_nxt, bpf_ntohl(in->tcp.seq) + payload_of(in)))
		return wait(a, COUNTER_DS_DOOR_LATER);
	/*
	 * Data behind a gap is not let in: the agent's socket would acknowledge it by SACK, and the next socket would
	 * not have it.
	 */
	if (is_before(tcp->rcv_nxt, bpf_ntohl(in->tcp.seq)))
		return put_behind_batch(a);
	int verdict = let_in_no_more_than(a, in, sk, d->request + READ_BYTES_MOST);
	if (verdict == LET_IN)
		note_let_in(a, in, tcp, d);
	return verdict;
}

/*
 * Says what becomes of a packet of a connection that the agent has: LET_IN, HAND_ON, TO_SERVER, or a verdict if the
 * packet is done with. Takes the door; the door stays taken if the connection is to leave its socket.
 */
static __noinline int at_reader(struct arrival *a, struct lccp_header *h, const struct inner *in, struct bpf_sock *sk)
{
	struct door *d = door_of(sk, bpf_skc_to_tcp_sock(sk), h);

	if (!d)
		return TCX_DISCARD;
	if (!take_door(d))
		return put_behind_batch(a);
	int verdict = pass_reader(a, h, in, sk, d);
	if (!is_to_leave(verdict))
		leave_door(d);
	return verdict;
}

#endif
