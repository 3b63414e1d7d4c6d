/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ADOPT (DM1): at a quiet point a TCP connection is a few numbers, all in the message and in the
 * client's packet. The kernel builds a socket of them on whatever listens on the service port.
 */
#ifndef BATON_DATA_SERVER_ADOPT_ADOPT_H
#define BATON_DATA_SERVER_ADOPT_ADOPT_H

#include "data_server/adopt/assign.h"
#include "data_server/adopt/end.h"
#include "data_server/adopt/window.h"
#include "data_server/door/owned.h"
#include "data_server/handover/handed_over.h"
#include "data_server/packet.h"
#include "data_server/refuse.h"
#include "include/bounds.h"
#include "include/socket_lookup.h"
#include "include/tcp_options.h"

/*
 * Adopts a connection whose response goes on here: the agent has the rest of it. Without the agent's listener nobody
 * has it: the connection server's daemon asks again, and then asks another data server.
 */
static __always_inline int adopt_resumed(struct arrival *a, struct lccp_header *h, const struct inner *in)
{
	if (a->again)
		return discard(a, COUNTER_LCCP_REPEATED);
	if (!a->settings->resume_port)
		return refuse(a, h, in, LCCP_REFUSAL_NO_LISTENER);
	if (!assign_own(a, h, in, a->settings->resume_port))
		return discard(a, COUNTER_DS_UNASSIGNED);
	expect(a->skb, h, in);
	if (is_owners(in->ip.daddr, in->tcp.dest))
		begin_resumed_door(h, in);
	if (!strip(a->skb))
		return TCX_DISCARD;
	count(a->counters, COUNTER_DS_RESUMED);
	return TCX_GO_ON;
}

/*
 * Whether the packet is of the same connection, from before that came here (a connection may come here again and
 * again): both its numbers are a little behind, which those of another connection are not.
 */
static __always_inline bool is_behind(const struct tcp_sock *sk, const struct inner *in, u32 begin)
{
	u32 seq = begin - bpf_ntohl(in->tcp.seq);
	u32 ack = sk->write_seq - bpf_ntohl(in->tcp.ack_seq);

	return seq < BEHIND_SEQ && ack < BEHIND_ACK;
}

/*
 * Whether the packet is of the same connection, and something before it has not come: a request that was to go
 * elsewhere has to wait and comes again, and this packet comes again after it.
 */
static __always_inline bool is_ahead(const struct tcp_sock *sk, const struct inner *in, u32 expected)
{
	u32 seq = bpf_ntohl(in->tcp.seq) - expected - 1;
	u32 ack = sk->write_seq - bpf_ntohl(in->tcp.ack_seq);

	return seq < BEHIND_SEQ && ack < BEHIND_ACK;
}

/* Whether this ADOPT may have come before, and its connection has a door: the door knows by all numbers what is old. */
static __always_inline bool is_kept_again(const struct lccp_header *h, const struct inner *in)
{
	return is_adopt_again(h) && is_owners(in->ip.daddr, in->tcp.dest);
}

/*
 * Whether this ADOPT may end an older connection. An ADOPT of a data server may be a lie about a connection that it
 * never had. While the older connection may still send something, only a connection server is believed: it sees what
 * clients send, and sends the request on as ADOPT when its client repeats it.
 */
static __always_inline bool may_end_older(const struct arrival *a, const struct bpf_sock *held)
{
	const struct peer_keys *sender = keys_shared_with(a->sender);
	bool is_over = held->state != STATE_ESTABLISHED && held->state != STATE_FIN_WAIT1;

	return is_over || (sender && sender->is_cs);
}

/*
 * Handles an ADOPT when a full socket has its ports. The first byte of that socket was rcv_nxt - bytes_received. If
 * this packet begins there, or before that, the ADOPT is a duplicate; if not, the socket is an older connection's.
 */
static __always_inline int adopt_over(struct arrival *a, struct lccp_header *h, struct inner *in,
				      struct bpf_sock *held)
{
	struct tcp_sock *sk = bpf_skc_to_tcp_sock(held);

	if (!sk)
		return discard(a, COUNTER_DS_NO_SOCKET);
	if (is_kept_again(h, in))
		return leave_to(STAGE_OWNED, a, h->be_data);
	u32 expected = sk->rcv_nxt;
	u32 begin = expected - (u32)sk->bytes_received;
	/*
	 * If the client acknowledges more than this socket has written, another data server has sent that meanwhile,
	 * and this socket never will.
	 */
	bool overtaken = h->flags & LCCP_FLAG_RESUME && (int)(bpf_ntohl(in->tcp.ack_seq) - sk->write_seq) > 0;
	if (!overtaken && is_ahead(sk, in, expected))
		return discard(a, COUNTER_DS_AHEAD);
	if (overtaken || (bpf_ntohl(in->tcp.seq) != begin && !is_behind(sk, in, begin)))
		return may_end_older(a, held) ? end_older(a, in, expected, COUNTER_DS_STALE_ENDED) : discard(a, COUNTER_DS_STALE_KEPT);
	if (is_owners(in->ip.daddr, in->tcp.dest))
		return leave_to(STAGE_OWNED, a, h->be_data);
	if (!strip(a->skb))
		return TCX_DISCARD;
	count(a->counters, COUNTER_DS_DUPLICATE);
	return TCX_GO_ON;
}

static __always_inline int adopt_after(struct arrival *a, const struct lccp_header *h, const struct inner *in,
				       struct bpf_sock *held)
{
	struct tcp_timewait_sock *timewait = bpf_skc_to_tcp_timewait_sock(held);

	if (!timewait)
		return discard(a, COUNTER_DS_NO_SOCKET);
	u32 seq = timewait->tw_sk.__tw_common.skc_tw_rcv_nxt;
	u32 ack = timewait->tw_sk.__tw_common.skc_tw_snd_nxt;
	/* A request of the very connection that has ended: its server is not to answer it twice. */
	if (seq - bpf_ntohl(in->tcp.seq) - 1 < BEHIND_SEQ && ack - bpf_ntohl(in->tcp.ack_seq) < BEHIND_ACK)
		return is_kept_again(h, in) ? leave_to(STAGE_OWNED, a, h->be_data) : discard(a, COUNTER_DS_ENDED_BEFORE);
	return end_older(a, in, seq, COUNTER_DS_TIME_WAIT_ENDED);
}

/* Handles an ADOPT while no server listens here. Where owners judge requests, another data server may be known here. */
static __always_inline int adopt_deserted(struct arrival *a, struct lccp_header *h, const struct inner *in)
{
	if (a->again)
		return discard(a, COUNTER_LCCP_REPEATED);
	if (was_given(h, in))
		return discard(a, COUNTER_DS_GIVEN);
	if (is_owners(in->ip.daddr, in->tcp.dest))
		return leave_to(STAGE_OWNED, a, h->be_data);
	return refuse(a, h, in, LCCP_REFUSAL_NO_LISTENER);
}

static __always_inline int adopt(struct arrival *a, struct lccp_header *h, struct inner *in)
{
	struct bpf_sock *sk = lookup(a->skb, in->ip.saddr, in->ip.daddr, in->tcp.source, in->tcp.dest);
	int verdict;

	if (h->flags & LCCP_FLAG_RESUME && (!sk || sk->state == STATE_LISTEN)) {
		verdict = adopt_resumed(a, h, in);
		if (sk)
			bpf_sk_release(sk);
		return verdict;
	}
	if (!sk)
		return adopt_deserted(a, h, in);
	switch (sk->state) {
	case STATE_LISTEN:
		if (a->again)
			verdict = discard(a, COUNTER_LCCP_REPEATED);
		else if (was_given(h, in))
			verdict = discard(a, COUNTER_DS_GIVEN);
		else if (is_owners(in->ip.daddr, in->tcp.dest))
			verdict = leave_to(STAGE_OWNED, a, h->be_data);
		else
			verdict = adopt_at(a, h, in, sk);
		break;
	case STATE_TIME_WAIT:
		verdict = adopt_after(a, h, in, sk);
		break;
	default:
		verdict = adopt_over(a, h, in, sk);
	}
	bpf_sk_release(sk);
	return verdict;
}

#endif
