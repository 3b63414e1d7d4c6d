/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Idle connections leave a data server that drains. Otherwise they would stay until their next request, which may never
 * come. The daemon sends in an empty ACK for each of them. If the connection is quiet, this ACK is as good as a request
 * for another data server: the connection goes to a member of the pool that it was with last.
 *
 * With such an ACK an agent moves a connection of its own, of which only it knows what is under way. It names the data
 * server.
 *
 * In the same way the connection servers are told of connections that have come to rest: if this data server dies, the
 * next request of each may go to another one (connection_server/orphans/quiet_point.h).
 */
#ifndef BATON_DATA_SERVER_HANDOVER_LEAVE_H
#define BATON_DATA_SERVER_HANDOVER_LEAVE_H

#include "data_server/door/quiet.h"
#include "data_server/handover/empty_ack.h"
#include "data_server/handover/handover.h"

/* Returns the short address of the data server that the connection is to move to with this packet; 0: there is none. */
static __always_inline __be32 moves_to(const struct arrival *a)
{
	const struct data_server *next = data_server(a->sent_in & 0xffff);

	return next ? unmap_address(next->address) : 0;
}

/* Writes sequence number and acknowledgement into the ACK. */
static __noinline bool write_numbers(struct arrival *a, struct inner *in, u32 next, u32 acknowledged)
{
	__be32 seq = bpf_htonl(next), ack = bpf_htonl(acknowledged);

	if (bpf_l4_csum_replace(a->skb, in->tcp_at + CHECK_AT, in->tcp.seq, seq, 4) ||
	    bpf_l4_csum_replace(a->skb, in->tcp_at + CHECK_AT, in->tcp.ack_seq, ack, 4) ||
	    bpf_skb_store_bytes(a->skb, in->tcp_at + SEQ_AT, &seq, sizeof(seq), 0) ||
	    bpf_skb_store_bytes(a->skb, in->tcp_at + ACK_AT, &ack, sizeof(ack), 0))
		return false;
	in->tcp.seq = seq;
	in->tcp.ack_seq = ack;
	return true;
}

/* Returns the data server that is to have a connection which this one is no longer to have; 0: none. */
static __always_inline __be32 next_of_idle(struct arrival *a, const struct lccp_header *h, const struct inner *in,
					   const struct door *d)
{
	const struct service *service = service_at(in->ip.daddr, in->tcp.dest);
	u32 index = service && d->pool == NO_POOL ? service->pool : d->pool;
	const struct pool *pool = pool_at(index);

	/* The pool has left the configuration. */
	if (service && pool && !pool->id) {
		index = service->pool;
		pool = pool_at(index);
	}
	if (!pool || is_member(pool, a->settings->slot))
		return 0;
	const struct data_server *next = data_server(choose_owner(h, index, 0));
	return next ? unmap_address(next->address) : 0;
}

/*
 * Tells the connection server that the connection of this ACK is at rest, by a MOVED that names this very node. A
 * connection server on this node is not told: it dies together with its own data server.
 */
static __always_inline int tell_rest(struct arrival *a, struct lccp_header *h, struct inner *in, const struct tcp_sock *tcp,
				     const struct door *d)
{
	const struct data_server *asker = peer(d->asker);

	if (!asker || is_own_cs(asker) || is_to_stay(in, d))
		return TCX_DISCARD;
	h->be_data = d->asker;
	if (!make_room(a, in))
		return discard(a, COUNTER_DS_NO_WAY);
	h->be_body_length = 0;
	h->flags = 0;
	h->tcb = part_of(tcp);
	tell_moved(a, h, in, own_address(a));
	return discard(a, COUNTER_DS_REST);
}

/*
 * Whether the connection may move once more before its next request. Each move is an attempt, so that no two notes of one
 * way have the same number, and some attempts are left for that request.
 */
static __always_inline bool may_move_idle(const struct door *d)
{
	return attempt_of(d) < ADOPT_ATTEMPTS / 2;
}

/*
 * Whether nothing is under way between the client and the agent that has the connection: the agent has read all that has
 * come, the client has an acknowledgement of it, and has acknowledged all that it was sent. Whether a request or a
 * response is whole only the agent knows.
 */
static __noinline bool is_at_pause(struct arrival *a, struct bpf_sock *sk, const struct tcp_sock *tcp, const struct inner *in)
{
	if (!sk || !tcp || sk->state != STATE_ESTABLISHED || tcp->out_of_order_queue.rb_node)
		return false;
	a->end = bpf_ntohl(in->tcp.seq);
	return tcp->rcv_nxt == a->end && tcp->copied_seq == a->end && tcp->rcv_wup == a->end &&
	       tcp->write_seq == bpf_ntohl(in->tcp.ack_seq);
}

/* Has the connection go to `a->next` with the empty ACK, which becomes what the client would say at this moment. */
static __always_inline int go_with_ack(struct arrival *a, struct inner *in, const struct tcp_sock *tcp, const struct door *d,
				       enum counter how)
{
	if (!write_window(a, in, tcp) || !write_timestamps(a, in, tcp, 0) || !echo_now(a->skb, in, tcp->tsoffset))
		return discard(a, COUNTER_DS_DOOR_UNRENEWED);
	a->asker = d->asker;
	count(a->counters, how);
	return HAND_ON;
}

/* Says what becomes of the empty ACK of an idle connection, whose door is taken. */
static __always_inline int leave_if_quiet(struct arrival *a, struct lccp_header *h, struct inner *in, struct bpf_sock *sk,
					  const struct tcp_sock *tcp, struct door *d)
{
	bool is_at_rest = !has_just_left(d) && is_quiet(a, sk, tcp, d, in);

	if (a->sent_in == QUIET_METADATA)
		return is_at_rest ? tell_rest(a, h, in, tcp, d) : TCX_DISCARD;
	a->next = is_at_rest && may_move_idle(d) ? next_of_idle(a, h, in, d) : 0;
	return a->next ? go_with_ack(a, in, tcp, d, COUNTER_DS_RELEASED) : discard(a, COUNTER_DS_RELEASE_REFUSED);
}

/* Says what becomes of the empty ACK with which an agent moves its connection, whose door is taken. */
static __always_inline int move_at_pause(struct arrival *a, struct inner *in, struct bpf_sock *sk, const struct tcp_sock *tcp,
					 struct door *d)
{
	a->next = !has_just_left(d) && is_at_pause(a, sk, tcp, in) ? moves_to(a) : 0;
	return a->next ? go_with_ack(a, in, tcp, d, COUNTER_DS_MOVED) : discard(a, COUNTER_DS_MOVE_REFUSED);
}

/* Notes of a connection that an agent has moved what its ADOPT says, so that it can be sent again: send_move_again(). */
static __noinline void note_move(const struct lccp_header *h, const struct tcp_sock *tcp)
{
	struct tcb_key flow = flow_of(h);
	struct given *last = bpf_map_lookup_elem(&given, &flow);

	if (!last || !tcp)
		return;
	last->window = window_of_client(tcp);
	last->tsval = BPF_CORE_READ_BITFIELD(tcp, rx_opt.tstamp_ok) ? tcp->rx_opt.ts_recent : 0;
}

/*
 * Sends the ADOPT of a connection that an agent has moved once more. The agent has not heard that the connection has
 * come to the other data server, and the client, which waits for a response, has nothing to send.
 */
static __noinline int send_move_again(struct arrival *a, struct lccp_header *h, struct inner *in)
{
	struct tcb_key flow = flow_of(h);
	const struct given *last = bpf_map_lookup_elem(&given, &flow);

	if (!last || !is_made_ack(in) || last->mid_response || last->next != moves_to(a))
		return discard(a, COUNTER_DS_RELEASE_GONE);
	struct passage on = { peer(last->next), last->next, COUNTER_DS_MOVE_AGAIN };
	if (!write_numbers(a, in, last->seq, last->ack) || !write_window_field(a, in, bpf_htons(last->window)) ||
	    !write_timestamps(a, in, 0, last->tsval) || !echo_now(a->skb, in, last->clock) || !make_room(a, in))
		return discard(a, COUNTER_DS_DOOR_UNRENEWED);
	h->be_body_length = 0;
	h->flags = 0;
	h->tcb = last->tcb;
	h->be_data = last->asker;
	tell_moved(a, h, in, last->next);
	h->receptor = LCCP_RECEPTOR_DS;
	h->command = LCCP_ADOPT;
	return send_message(a, h, in, &on);
}

/*
 * Handles the empty ACK of an idle connection, which the daemon has sent in: HAND_ON, or a verdict if it is done with.
 */
static __noinline int leave_idle(struct arrival *a, struct lccp_header *h, struct inner *in, struct bpf_sock *sk)
{
	const struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	struct door *d = door_of(sk, tcp, h);

	if (!d || !tcp || !is_made_ack(in))
		return discard(a, COUNTER_DS_RELEASE_GONE);
	if (is_being_read(d) || !write_numbers(a, in, tcp->rcv_nxt, tcp->snd_una) || !take_door(d))
		return discard(a, COUNTER_DS_RELEASE_REFUSED);
	int verdict = is_move(a) ? move_at_pause(a, in, sk, tcp, d) : leave_if_quiet(a, h, in, sk, tcp, d);
	if (!is_to_leave(verdict))
		leave_door(d);
	return verdict;
}

#endif
