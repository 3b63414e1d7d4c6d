/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A connection goes to another data server with its next request: ADOPT goes there, the connection server is told (MOVED), and the
 * socket here ends without a word on the wire. See docs/handover.md.
 */
#ifndef BATON_DATA_SERVER_HANDOVER_HANDOVER_H
#define BATON_DATA_SERVER_HANDOVER_HANDOVER_H

#include "data_server/adopt/window.h"
#include "data_server/agent/reader.h"
#include "data_server/door/doors.h"
#include "data_server/door/early.h"
#include "data_server/door/tally.h"
#include "data_server/handover/handed_over.h"
#include "data_server/handover/moved.h"
#include "data_server/plain.h"
#include "data_server/send.h"
#include "include/socket_lookup.h"

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

/*
 * Whether who was given a connection with the request that this packet begins will not answer it: that data server is dead; or it takes
 * no messages, because its clock is wrong, and what it may have got all the same may be done twice.
 */
static __noinline bool is_lost(struct arrival *a, const struct inner *in, __be32 next)
{
	const struct data_server *found = data_server(data_server_at(next));

	if (!found)
		return false;
	return found->flags & DATA_SERVER_DEAD || (found->flags & DATA_SERVER_DEAF && is_repeatable(a->skb, in));
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

	if (!before || is_lost(a, in, before->next))
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
		return discard(a, COUNTER_DS_NO_WAY);
	if (a->pool != NO_POOL)
		tally_at_door(a->route, a->pool, 0, COUNT_HANDOVER);
	tell_moved(a, h, in, next_address);
	count(a->counters, COUNTER_DS_DOOR_HANDED_ON);
	return END_SOCKET;
}

#endif
