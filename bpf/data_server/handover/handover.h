/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A connection goes to another data server with its next request: ADOPT goes there, the connection server is told
 * (MOVED), and the socket here ends without a word on the wire. See docs/handover.md.
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

/*
 * Whether the host of this data server has died since a connection was given to it. The connection's socket has died
 * with it.
 */
static __always_inline bool is_dead(__be32 address)
{
	const struct data_server *found = data_server(data_server_at(address));

	return found && found->flags & DATA_SERVER_DEAD;
}

/*
 * Whether the request that this packet begins may be done twice (RFC 9110, 9.2.2). What a TLS client says first only
 * begins a handshake.
 */
static __noinline bool is_repeatable(struct __sk_buff *skb, const struct inner *in)
{
	u64 word;

	if (is_tls(in->ip.daddr, in->tcp.dest))
		return true;
	if (bpf_skb_load_bytes(skb, payload_at(in), &word, sizeof(word)))
		return false;
	return (word & FIRST(4)) == LETTERS('G', 'E', 'T', ' ', 0, 0, 0, 0) ||
	       (word & FIRST(5)) == LETTERS('H', 'E', 'A', 'D', ' ', 0, 0, 0) ||
	       word == LETTERS('O', 'P', 'T', 'I', 'O', 'N', 'S', ' ');
}

/*
 * Whether data server `next`, which was given a connection with the request that this packet begins, will not answer
 * it. Either it is dead. Or it takes no messages, because its clock is wrong, and the request may be done twice, in
 * case it has arrived all the same.
 */
static __noinline bool is_lost(struct arrival *a, const struct inner *in, __be32 next)
{
	const struct data_server *found = data_server(data_server_at(next));

	if (!found)
		return false;
	return found->flags & DATA_SERVER_DEAD || (found->flags & DATA_SERVER_DEAF && is_repeatable(a->skb, in));
}

/* Whether the request went to a data server that is dead, may have been done there, and must not be done twice. */
static __noinline bool may_have_been_done(struct arrival *a, const struct lccp_header *h, const struct inner *in)
{
	const struct given *before = given_with(h, in);

	return before && is_dead(before->next) && !is_repeatable(a->skb, in);
}

/*
 * Whether a request that went to another data server comes again: then `a->next` is the data server that was chosen
 * before. That one may have a socket by now, so it keeps the connection, whichever data server is due, and however much
 * of the request this packet shows. Packets of the same batch still find the old socket here.
 */
static __noinline bool choose_again(struct arrival *a, const struct lccp_header *h, const struct inner *in)
{
	const struct given *before = given_with(h, in);

	if (!before || is_lost(a, in, before->next))
		return false;
	a->next = before->next;
	return true;
}

/*
 * Returns how often the connection was moved since its client said something that was let in. Each of these moves is an
 * attempt, so that one that comes back here is no late copy.
 */
static __always_inline u8 moves_of(const struct door *d)
{
	return d->next == d->request ? d->attempt : 0;
}

/*
 * Gives the connection to data server `a->next` with this request. That one adopts it. The socket here has nothing left
 * to do, and ends.
 */
static __noinline int hand_on_request(struct arrival *a, struct lccp_header *h, struct inner *in, struct bpf_sock *sk)
{
	const struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);

	/* The agent has told the data server that it names of the connection, and no other. */
	if (!is_move(a))
		choose_again(a, h, in);
	__be32 next_address = a->next, asker = a->asker;
	const struct data_server *next = peer(next_address);

	if (!tcp || !next)
		return discard(a, COUNTER_DS_NO_WAY);
	/* A packet that is too long for a message waits: the daemon sends it in again in pieces. */
	if (!make_room(a, in))
		return wait(a, COUNTER_DS_DOOR_LATER);
	struct door *d = bpf_sk_storage_get(&doors, sk, 0, 0);
	settle_at_door(d, tcp, in);
	h->be_body_length = 0;
	h->flags = 0;
	h->tcb = part_of(tcp);
	h->tcb.options |= aware_option(sk);
	h->tcb.be_cwnd = window_to_give(tcp);
	/* An attempt above 0 says that the data server was chosen: no dispatcher is asked again. */
	h->tcb.attempt = (!d ? 0 : is_move(a) ? moves_of(d) : attempt_of(d)) + 1;
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
