/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* When a connection can leave this data server: nothing of it is under way. Until then what it would leave with waits. */
#ifndef BATON_DATA_SERVER_DOOR_QUIET_H
#define BATON_DATA_SERVER_DOOR_QUIET_H

#include "data_server/door/asked.h"
#include "data_server/door/doors.h"
#include "data_server/door/early.h"
#include "data_server/packet.h"

/* The socket here ends in silence. Its client is reset when nobody claims its connection. */
static __always_inline int end_here(struct arrival *a, const struct tcp_sock *tcp, enum counter why)
{
	count(a->counters, why);
	a->end = tcp->rcv_nxt;
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

#endif
