/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Idle connections leave a data server that drains. Otherwise they would stay until their next request, which may never
 * come. The daemon sends in an empty ACK for each of them. If the connection is quiet, this ACK is as good as a request
 * for another data server: the connection goes to a member of the pool that it was with last.
 *
 * In the same way the connection servers are told of connections that have come to rest: if this data server dies, the
 * next request of each may go to another one (connection_server/orphans/quiet_point.h).
 */
#ifndef BATON_DATA_SERVER_HANDOVER_LEAVE_H
#define BATON_DATA_SERVER_HANDOVER_LEAVE_H

#include "data_server/door/quiet.h"
#include "data_server/handover/empty_ack.h"
#include "data_server/handover/handover.h"

/*
 * Writes into the ACK what the client would say at this moment: its sequence number is the next one that TCP expects,
 * and its acknowledgement is the newest one that TCP has seen.
 */
static __noinline bool write_numbers(struct arrival *a, struct inner *in, const struct tcp_sock *tcp)
{
	__be32 seq = bpf_htonl(tcp->rcv_nxt), ack = bpf_htonl(tcp->snd_una);

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

/* Says what becomes of the empty ACK of an idle connection, whose door is taken. */
static __always_inline int leave_if_quiet(struct arrival *a, struct lccp_header *h, struct inner *in, struct bpf_sock *sk,
					  const struct tcp_sock *tcp, struct door *d)
{
	bool is_at_rest = !has_just_left(d) && is_quiet(a, sk, tcp, d, in);

	if (a->sent_in == QUIET_METADATA)
		return is_at_rest ? tell_rest(a, h, in, tcp, d) : TCX_DISCARD;
	a->next = is_at_rest && may_move_idle(d) ? next_of_idle(a, h, in, d) : 0;
	if (!a->next)
		return discard(a, COUNTER_DS_RELEASE_REFUSED);
	if (!write_window(a, in, tcp) || !write_timestamps(a, in, tcp) || !echo_now(a->skb, in, tcp->tsoffset))
		return discard(a, COUNTER_DS_DOOR_UNRENEWED);
	a->asker = d->asker;
	count(a->counters, COUNTER_DS_RELEASED);
	return HAND_ON;
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
	if (is_being_read(d) || !write_numbers(a, in, tcp) || !take_door(d))
		return discard(a, COUNTER_DS_RELEASE_REFUSED);
	int verdict = leave_if_quiet(a, h, in, sk, tcp, d);
	if (!is_to_leave(verdict))
		leave_door(d);
	return verdict;
}

#endif
