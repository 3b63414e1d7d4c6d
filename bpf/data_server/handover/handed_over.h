/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections that this data server gave to another one lately. An ADOPT with an earlier request than the one with
 * which the connection went has been on its way for longer than the connection was here: the connection server, or an
 * owner before, sent it again because the answer was late. If it were adopted anew, a second socket would answer the
 * client once more. Where that answer is longer than the first was, it would reach into the response that another data
 * server sends by then.
 */
#ifndef BATON_DATA_SERVER_HANDOVER_HANDED_OVER_H
#define BATON_DATA_SERVER_HANDOVER_HANDED_OVER_H

#include "data_server/packet.h"
#include "include/clock.h"
#include "include/socket_lookup.h"

enum {
	GIVEN_TICKS = 3, /* longer than anything is on its way inside a cluster */
	LATELY_SHIFT = 36, /* of nanoseconds: 69 s */
};

static __always_inline u64 *last_handover(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&handovers, &zero);
}

static __always_inline void handed_over_now(void)
{
	u64 *last = last_handover();

	if (last)
		*last = bpf_ktime_get_coarse_ns();
}

static __always_inline bool handed_over_lately(void)
{
	u64 *last = last_handover();

	return last && *last && bpf_ktime_get_coarse_ns() - *last < 1ULL << LATELY_SHIFT;
}

/*
 * Binds the packet to this socket. The kernel takes packets in batches: this program has seen all of a batch before TCP
 * sees the first packet. If that is the RST of a handover, the socket will be gone when TCP comes to this packet. TCP
 * would look for it in vain, and send a RST to the client. Binding a packet to its socket costs a route look-up, so it
 * is done only where connections are handed over. False if the socket is gone already: the kernel refuses a socket that
 * has left its tables; on another processor, it leaves them shortly before its state says so.
 */
static __always_inline bool keep_for(struct arrival *a, struct bpf_sock *sk)
{
	if (sk->state == STATE_TIME_WAIT || !handed_over_lately())
		return true;
	/* In a test run, where packets come in nowhere, no socket can be assigned. */
	return bpf_sk_assign(a->skb, sk, 0) == 0 || !a->skb->ingress_ifindex;
}

/* Whether this is an ADOPT whose sender does not know whether it has come before. */
static __always_inline bool is_adopt_again(const struct lccp_header *h)
{
	return h->command == LCCP_ADOPT && h->flags & LCCP_FLAG_KEPT;
}

/*
 * Notes that the connection goes to `next`, with the request in `in` or in the middle of a response. `clock` is that of
 * the connection's timestamps, less ours.
 */
static __noinline void note_handover(const struct arrival *a, const struct lccp_header *h, const struct inner *in, __be32 next,
				     u32 clock)
{
	struct tcb_key flow = flow_of(h);
	struct given now = {
		.seq = bpf_ntohl(in->tcp.seq),
		.tick = tick_now(),
		.next = next,
		.asker = a->asker,
		.tcb = h->tcb,
		.clock = clock,
		.ack = bpf_ntohl(in->tcp.ack_seq),
		.mid_response = !!(h->flags & LCCP_FLAG_RESUME),
	};

	handed_over_now();
	bpf_map_update_elem(&given, &flow, &now, BPF_ANY);
}

/*
 * Returns the note of a connection that was given away, if this packet begins at the request with which it went, or
 * behind that; or 0.
 */
static __noinline const struct given *find_given(const struct lccp_header *h, const struct inner *in)
{
	struct tcb_key flow = flow_of(h);
	const struct given *last = bpf_map_lookup_elem(&given, &flow);

	return last && bpf_ntohl(in->tcp.seq) - last->seq < BEHIND_SEQ ? last : 0;
}

/* Forgets that the connection was given away. */
static __noinline void forget_given(const struct lccp_header *h)
{
	struct tcb_key flow = flow_of(h);

	bpf_map_delete_elem(&given, &flow);
}

/* Whether the packet begins the very request with which the connection of this note went. */
static __always_inline bool went_with_connection(const struct given *last, const struct inner *in)
{
	return bpf_ntohl(in->tcp.seq) == last->seq && !last->mid_response;
}

/*
 * Returns the note of a connection that was given away, if the packet begins the very request with which it went; or 0.
 */
static __always_inline const struct given *given_with(const struct lccp_header *h, const struct inner *in)
{
	const struct given *last = find_given(h, in);

	return last && went_with_connection(last, in) ? last : 0;
}

/*
 * Whether the packet is from before the request with which its connection was given away, a few ticks ago at most. That
 * request itself does not count: it comes back if nobody else can answer it.
 */
static __noinline bool was_given(const struct lccp_header *h, const struct inner *in)
{
	struct tcb_key flow = flow_of(h);

	if (!handed_over_lately())
		return false;
	struct given *last = bpf_map_lookup_elem(&given, &flow);
	return last && tick_now() - last->tick < GIVEN_TICKS &&
	       last->seq - bpf_ntohl(in->tcp.seq) - 1 < BEHIND_SEQ;
}

#endif
