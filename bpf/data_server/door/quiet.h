/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A connection can leave this data server when it is quiet: nothing of it is under way. Until then, the packet with
 * which it is to leave waits.
 */
#ifndef BATON_DATA_SERVER_DOOR_QUIET_H
#define BATON_DATA_SERVER_DOOR_QUIET_H

#include "data_server/door/asked.h"
#include "data_server/door/doors.h"
#include "data_server/door/early.h"
#include "data_server/packet.h"

/* Ends the socket here without a word on the wire. The client is reset if nobody claims its connection. */
static __always_inline int end_here(struct arrival *a, const struct tcp_sock *tcp, enum counter why)
{
	count(a->counters, why);
	a->end = tcp->rcv_nxt;
	return END_SOCKET;
}

/*
 * Whether everything was said on the connection: the server has read all that came, the client was sent an
 * acknowledgement of all of it, and each request that was let in has come as a whole and has its whole response.
 * `a->end` is then the sequence number that the socket expects.
 */
static __always_inline bool is_all_said(struct arrival *a, struct bpf_sock *sk, const struct tcp_sock *tcp, const struct door *d,
					const struct inner *in)
{
	a->end = bpf_ntohl(in->tcp.seq);
	return sk->state == STATE_ESTABLISHED && tcp->rcv_nxt == a->end && tcp->copied_seq == a->end && tcp->rcv_wup == a->end &&
	       d->next == a->end && d->body.state == RESPONSE_COMPLETE &&
	       (has_answered(sk, tcp->write_seq, d->requests) || (!d->requests && !has_begun(sk)));
}

/*
 * Whether the connection can leave: everything was said (is_all_said()), and the client has acknowledged all that was
 * written, so nothing is on its way.
 */
static __always_inline bool is_quiet(struct arrival *a, struct bpf_sock *sk, const struct tcp_sock *tcp, const struct door *d,
				     const struct inner *in)
{
	return is_all_said(a, sk, tcp, d, in) && tcp->write_seq == bpf_ntohl(in->tcp.ack_seq);
}

/*
 * Whether only an acknowledgement is missing: the client was sent the last byte of the last response, and may delay the
 * acknowledgement of it. False for what an agent sends in: its client has said all that it will.
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

/*
 * Whether the connection must stay here: a server here has had a request of it, and its service lets no connection
 * leave.
 */
static __noinline bool is_to_stay(const struct inner *in, const struct door *d)
{
	const struct service *service = service_at(in->ip.daddr, in->tcp.dest);

	return d && d->pool != NO_POOL && service && service->flags & SERVICE_STAYS;
}

/*
 * Returns `how` if the connection is quiet; otherwise the packet waits. If the connection never can be quiet, its
 * socket ends here. If a response has announced the connection's end, the server ends it, and the packet is kept out.
 */
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

/*
 * Gives the connection to the agent, which reads the request, once the connection is quiet. Without an agent the
 * connection ends.
 */
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

#endif
