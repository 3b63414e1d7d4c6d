/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The owner of a connection decides for each of its requests which data server answers it. No other node needs to
 * know: the connection server forwards what comes, and the door (door.h) lets in what this data server is to answer.
 * With a request for another data server the connection goes there (handover.h). If one packet does not decide, the
 * agent reads the request (reader.h).
 */
#ifndef BATON_DATA_SERVER_DOOR_AT_DOOR_H
#define BATON_DATA_SERVER_DOOR_AT_DOOR_H

#include "data_server/agent/kept.h"
#include "data_server/door/acknowledged.h"
#include "data_server/door/door.h"
#include "data_server/door/doors.h"
#include "data_server/door/early.h"
#include "data_server/door/judge.h"
#include "data_server/door/take_request.h"
#include "data_server/door/tally.h"
#include "data_server/fence.h"

/*
 * TCP has not seen what is before the packet, which may be in the same batch. So the packet goes through this ingress
 * once more, behind the batch: a client's packet twice at most, an agent's once, and a packet that has waited not at
 * all. After that its data waits in user space.
 */
static __always_inline int put_behind_batch(struct arrival *a)
{
	if (rounds_of(a) > 1 || a->sent_in == EARLY_METADATA || a->mark == MARK_OF_AGENT)
		return wait(a, COUNTER_DS_DOOR_LATER);
	/* The metadata that says that this node sent the packet in is lost on that way; the mark is not. */
	a->skb->mark = is_of_agent(a) ? MARK_OF_AGENT : mark_behind(a);
	count(a->counters, COUNTER_DS_DOOR_BATCH);
	return bpf_redirect(a->skb->ifindex, BPF_F_INGRESS);
}

/*
 * Decides what becomes of a packet by what its door says. The caller has taken the door, so no other processor has a
 * packet at it.
 */
static __always_inline int pass_door(struct arrival *a, struct lccp_header *h, struct inner *in, struct bpf_sock *sk,
				     struct door *d)
{
	const struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	u32 seq = bpf_ntohl(in->tcp.seq), bytes = payload_of(in);

	if (!tcp)
		return TCX_DISCARD;
	if (d->flags & DOOR_SWITCHES && is_tunnel(sk))
		return LET_IN;
	if (has_just_left(d))
		return put_behind_batch(a);
	if (a->keeper && !is_before(tcp->rcv_nxt, seq + bytes + in->tcp.fin)) {
		a->end = tcp->rcv_nxt;
		return RECEIVED_BEFORE;
	}
	/*
	 * The agent may have changed the head that it has read. So TCP gets that head from the agent alone. What comes
	 * behind that request is judged by its packets.
	 */
	if (d->owes && d->flags & DOOR_FROM_AGENT) {
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
		return take_more(a, h, in, sk, tcp, d, false);
	default:
		break;
	}
	bool is_next = course == DOOR_JUDGE;
	if (!is_next && d->flags & DOOR_IN_BODY)
		return take_more(a, h, in, sk, tcp, d, true);
	/*
	 * A repeated request is judged without its door: it is enough that this node may answer it, because it does
	 * so already.
	 */
	struct judged j = { .may_ask = is_next };
	enum judgement found = judge_request(a, h, in, is_next ? d : 0, &j);
	if (is_next)
		return take_next(a, h, in, sk, d, found, &j);
	return take_again(a, h, in, tcp, d, found == JUDGED_HERE && j.pool == d->pool ? &j.span : 0);
}

/*
 * Whether TCP has all that the packet brings. The socket may be in TIME_WAIT, if the connection has ended in order.
 */
static __noinline bool has_come(struct bpf_sock *sk, const struct inner *in)
{
	u32 end = bpf_ntohl(in->tcp.seq) + payload_of(in) + in->tcp.fin;
	const struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);

	if (tcp)
		return !is_before(tcp->rcv_nxt, end) && !is_before(tcp->snd_una, bpf_ntohl(in->tcp.ack_seq));
	const struct tcp_timewait_sock *timewait = bpf_skc_to_tcp_timewait_sock(sk);
	return timewait && !is_before(timewait->tw_sk.__tw_common.skc_tw_rcv_nxt, end);
}

/*
 * Whether the packet belongs to a later connection with the same ports than the one that has ended here (TIME_WAIT).
 * The client's SYN came by another connection server than this packet, so nobody had the later connection adopted.
 * TIME_WAIT would answer with numbers of its own for ever.
 */
static __always_inline bool is_later(struct bpf_sock *sk, const struct inner *in)
{
	const struct tcp_timewait_sock *ended = bpf_skc_to_tcp_timewait_sock(sk);

	return ended && bpf_ntohl(in->tcp.seq) - ended->tw_sk.__tw_common.skc_tw_rcv_nxt + BEHIND_SEQ >= 2 * BEHIND_SEQ;
}

/* Says what becomes of a packet of the connection on `sk`: an enum found, or a verdict if the packet is done with. */
static __noinline int at_door(struct arrival *a, struct lccp_header *h, struct inner *in, struct bpf_sock *sk)
{
	const struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	int verdict;

	a->kept = 0;
	if (!tcp && is_later(sk, in))
		return NOT_HERE;
	/*
	 * This is done for the connection's first packet, whatever that is: it moves the door from `doors_begun` to
	 * the socket.
	 */
	struct door *d = door_of(sk, tcp, h);
	if (d && tcp && is_anothers(a, d, tcp, in))
		return end_here(a, tcp, COUNTER_DS_STALE_ENDED);
	if (d)
		note_heard(a, d);
	if (d && tcp && d->owes)
		settle_note(h, d, !is_before(tcp->rcv_nxt, d->owed));
	if (d && tcp && is_to_settle(sk, tcp, d, in))
		settle_at_door(d, tcp, in);
	if (tcp && (a->keeper || is_of_agent(a)))
		note_acknowledged(sk, tcp->rcv_nxt, bpf_ntohl(in->tcp.seq) + payload_of(in));
	/*
	 * TCP would acknowledge this data once more. The client would take that for a sign of loss; or it has closed
	 * its socket, and would answer with a RST.
	 */
	if (a->sent_in == EARLY_METADATA && has_come(sk, in))
		return discard(a, COUNTER_DS_DOOR_CAME);
	if (!tcp && a->keeper) {
		/* The connection has ended in order (TIME_WAIT), so all of this data has been received. */
		a->end = bpf_ntohl(in->tcp.seq) + payload_of(in);
		return RECEIVED_BEFORE;
	}
	if (!payload_of(in) || !tcp)
		return LET_IN;
	/* A TLS connection that began before its service had a door stays here: nothing of it would be judged. */
	if (!d && is_tls(in->ip.daddr, in->tcp.dest) && !being_adopted(h))
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
	if (!is_to_leave(verdict))
		leave_door(d);
	/*
	 * An acknowledgement does not wait with its data: otherwise the server's TCP would retransmit what the client
	 * has.
	 */
	if (a->keeps_out && is_before(tcp->snd_una, bpf_ntohl(in->tcp.ack_seq))) {
		a->kept = NOTHING;
		return LET_IN;
	}
	return verdict;
}

#endif
