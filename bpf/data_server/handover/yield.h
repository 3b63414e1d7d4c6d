/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * YIELD comes to a data server that drains, when another one has the rest of a response ready. The connection can go
 * when nothing of it is on its way: then all that was ever sent is acknowledged, and no acknowledgement beyond the new
 * socket's first byte can come later. A response that flows never gets there by itself, so it is stopped: whatever
 * window the client announces, the socket is shown one that ends at the last byte that it has sent. What gets lost of
 * these bytes, it retransmits as always. With the acknowledgement of the last byte the connection goes to the other
 * data server's agent, as ADOPT, and ends here without a word on the wire.
 *
 * This lasts only as long as YIELD is repeated. Without it the client's next packet opens the window again, and the
 * socket itself asks for such a packet (zero window probes), so the response goes on here.
 */
#ifndef BATON_DATA_SERVER_HANDOVER_YIELD_H
#define BATON_DATA_SERVER_HANDOVER_YIELD_H

#include "data_server/deliver.h"
#include "data_server/handover/yielding.h"
#include "data_server/packet.h"
#include "include/socket_lookup.h"

/* These three functions have their key on a stack of their own, because the program's is full. */
static __noinline struct yielding *yielding_of(const struct lccp_header *h, bool even_over)
{
	struct tcb_key flow = flow_of(h);

	return even_over ? bpf_map_lookup_elem(&yields, &flow) : find_yielding(&flow);
}

static __noinline void forget_yielding(const struct lccp_header *h)
{
	struct tcb_key flow = flow_of(h);

	bpf_map_delete_elem(&yields, &flow);
}

static __noinline void note_begun(const struct lccp_header *h, const struct yielding *begun)
{
	struct tcb_key flow = flow_of(h);

	bpf_map_update_elem(&yields, &flow, begun, BPF_ANY);
}

static __always_inline int answer_yield(struct arrival *a, struct lccp_header *h, const struct inner *in, u32 what)
{
	const struct data_server *asker = peer(a->sender);

	if (!asker || is_own_cs(asker))
		return TCX_DISCARD;
	h->receptor = LCCP_RECEPTOR_DAEMON;
	h->command = LCCP_YIELD;
	h->be_data = bpf_htonl(what);
	if (!make_message(a, h, in, asker, a->sender))
		return TCX_DISCARD;
	return bpf_redirect(asker->ifindex, 0);
}

/*
 * Whether the connection may go: the response is under way, or pauses, and the client has sent nothing beyond its
 * request.
 */
static __always_inline bool may_yield(struct bpf_sock *held, const struct tcp_sock *sk, const struct inner *in)
{
	return held->state == STATE_ESTABLISHED && sk->rcv_nxt == bpf_ntohl(in->tcp.seq) &&
	       sk->copied_seq == sk->rcv_nxt && is_answering(held);
}

/* Whether nothing is on its way, and nothing more can be sent. */
static __always_inline bool is_at_rest(const struct tcp_sock *sk, u32 ack, const struct yielding *y)
{
	return ack == sk->snd_nxt && (int)(sk->snd_una + sk->snd_wnd - sk->snd_nxt) <= 0 &&
	       bpf_ktime_get_ns() - y->since >= YIELD_LEAST_NS;
}

/* Returns the window as it is delivered to the socket: it ends at the last byte that the socket has sent. */
static __noinline __be16 closed_window(const struct tcp_sock *sk, const struct inner *in)
{
	u32 room = sk->snd_nxt - bpf_ntohl(in->tcp.ack_seq);
	u32 field = bpf_ntohs(in->tcp.window);

	if ((int)room < 0)
		room = 0;
	if (BPF_CORE_READ_BITFIELD(sk, rx_opt.wscale_ok))
		room >>= BPF_CORE_READ_BITFIELD(sk, rx_opt.snd_wscale) & 15;
	return bpf_htons(room < field ? room : field);
}

/*
 * Gives the connection to the other data server's agent, and ends its socket here. `in` is an acknowledgement as the
 * client would send it at this moment.
 */
static __always_inline int let_response_go(struct arrival *a, struct lccp_header *h, const struct inner *in,
					   struct tcp_sock *sk, const struct yielding *y)
{
	__be32 next_address = y->next;
	const struct data_server *next = peer(next_address);

	if (!next)
		return discard(a, COUNTER_DS_NO_WAY);
	h->receptor = LCCP_RECEPTOR_DS;
	h->command = LCCP_ADOPT;
	h->flags = LCCP_FLAG_RESUME;
	h->be_data = y->asker;
	h->tcb = part_of(sk);
	h->tcb.be_cwnd = window_to_give(sk);
	a->asker = y->asker;
	note_handover(a, h, in, next_address, sk->tsoffset);
	forget_yielding(h);
	if (!send_copy(a, h, in, next, next_address))
		return TCX_DISCARD;
	if (!strip(a->skb) || !become_reset(a->skb, in, in->tcp_at - OUTER_BYTES, bpf_ntohl(in->tcp.seq)))
		return TCX_DISCARD;
	count(a->counters, COUNTER_DS_YIELDED);
	return TCX_GO_ON;
}

/*
 * Returns the note of a connection that begins to yield. It keeps the window that the client announced last, because
 * the client's own socket here is not shown that.
 */
static __always_inline struct yielding begin_yielding(struct arrival *a, const struct lccp_header *h,
						      const struct tcp_sock *sk)
{
	u64 now = bpf_ktime_get_ns();
	u32 window = sk->snd_wnd;

	if (BPF_CORE_READ_BITFIELD(sk, rx_opt.wscale_ok))
		window >>= BPF_CORE_READ_BITFIELD(sk, rx_opt.snd_wscale) & 15;
	count(a->counters, COUNTER_DS_YIELDING);
	return (struct yielding){
		.since = now,
		.until = now + YIELD_LASTS_NS,
		.next = h->be_data,
		.asker = a->sender,
		.be_window = bpf_htons(window < WINDOW_FIELD_MAX ? window : WINDOW_FIELD_MAX),
	};
}

static __noinline struct yielding *note_yielding(struct arrival *a, const struct lccp_header *h,
						 const struct tcp_sock *sk)
{
	struct yielding *y = yielding_of(h, false);
	u32 zero = 0;
	u64 until = bpf_ktime_get_coarse_ns() + 2 * (u64)YIELD_LASTS_NS;

	bpf_map_update_elem(&yielding_until, &zero, &until, BPF_ANY);
	if (y) {
		y->until = bpf_ktime_get_ns() + YIELD_LASTS_NS;
		y->next = h->be_data;
		y->asker = a->sender;
		return y;
	}
	struct yielding begun = begin_yielding(a, h, sk);
	note_begun(h, &begun);
	return yielding_of(h, true);
}

/*
 * Handles the ACK that came with YIELD. If nothing is on its way, the ACK closes the window, if that was open, and the
 * next YIELD finds it closed. Otherwise the client's own acknowledgements do that, and this ACK is dropped.
 */
static __always_inline int wait_for_rest(struct arrival *a, struct lccp_header *h, struct inner *in,
					 struct tcp_sock *sk, const struct yielding *y)
{
	u32 ack = bpf_ntohl(in->tcp.ack_seq);

	if (is_at_rest(sk, ack, y)) {
		if (!write_window_field(a, in, y->be_window) || !write_timestamps(a, in, sk, 0))
			return TCX_DISCARD;
		return let_response_go(a, h, in, sk, y);
	}
	if (sk->snd_una != sk->snd_nxt || ack != sk->snd_nxt)
		return TCX_DISCARD;
	if (!write_window_field(a, in, 0) || !write_timestamps(a, in, sk, 0) || !strip(a->skb))
		return TCX_DISCARD;
	count(a->counters, COUNTER_DS_YIELD_CLOSED);
	return TCX_GO_ON;
}

/* Keeps the connection here. The ACK, with the client's own window, opens the window again. */
static __always_inline int stop_yielding(struct arrival *a, struct lccp_header *h, const struct inner *in,
					 const struct tcp_sock *sk)
{
	struct yielding *y = yielding_of(h, true);
	const struct data_server *asker = peer(a->sender);

	count(a->counters, COUNTER_DS_YIELD_STOPPED);
	if (!y)
		return answer_yield(a, h, in, LCCP_YIELD_KEPT);
	__be16 field = y->be_window;
	forget_yielding(h);
	if (!write_window_field(a, in, field) || !write_timestamps(a, in, sk, 0))
		return TCX_DISCARD;
	h->receptor = LCCP_RECEPTOR_DAEMON;
	h->be_data = bpf_htonl(LCCP_YIELD_KEPT);
	if (asker && !is_own_cs(asker))
		send_copy(a, h, in, asker, a->sender);
	return strip(a->skb) ? TCX_GO_ON : TCX_DISCARD;
}

static __always_inline int yield_held(struct arrival *a, struct lccp_header *h, struct inner *in,
				      struct bpf_sock *held)
{
	struct tcp_sock *sk = bpf_skc_to_tcp_sock(held);

	/* A connection that is ending has no window to open. */
	if (!sk && !h->be_data) {
		count(a->counters, COUNTER_DS_YIELD_STOPPED);
		return answer_yield(a, h, in, LCCP_YIELD_KEPT);
	}
	if (!h->be_data)
		return stop_yielding(a, h, in, sk);
	if (!sk || !may_yield(held, sk, in) || !peer(h->be_data)) {
		forget_yielding(h);
		count(a->counters, COUNTER_DS_YIELD_REFUSED);
		return answer_yield(a, h, in, LCCP_YIELD_REFUSED);
	}
	struct yielding *y = note_yielding(a, h, sk);
	return y ? wait_for_rest(a, h, in, sk, y) : TCX_DISCARD;
}

/* Handles YIELD. Like take_ack(), it has a stack of its own: see data_server.h. */
static __noinline int yield(struct arrival *a, struct lccp_header *h, struct inner *in)
{
	if (!is_made_ack(in))
		return discard(a, COUNTER_LCCP_MISMATCH);
	struct bpf_sock *sk = lookup(a->skb, in->ip.saddr, in->ip.daddr, in->tcp.source, in->tcp.dest);
	int verdict;

	if (is_connection(sk)) {
		verdict = yield_held(a, h, in, sk);
	} else {
		count(a->counters, COUNTER_DS_YIELD_GONE);
		verdict = answer_yield(a, h, in, LCCP_YIELD_GONE);
	}
	if (sk)
		bpf_sk_release(sk);
	return verdict;
}

/* Whether the packet is nothing but an acknowledgement of what came before. */
static __always_inline bool is_plain_ack(const struct inner *in)
{
	return in->tcp.ack && !(in->tcp.syn | in->tcp.fin | in->tcp.rst) &&
	       bpf_ntohs(in->ip.tot_len) == in->ip.ihl * 4 + in->tcp.doff * 4;
}

enum {
	AS_ANY_OTHER = 100, /* no verdict: the packet is delivered like any other */
};

/* Handles a client's packet for a connection that yields; AS_ANY_OTHER if it is to be delivered. */
static __noinline int take_ack(struct arrival *a, struct lccp_header *h, struct inner *in,
			       struct bpf_sock *held, struct yielding *y)
{
	struct tcp_sock *sk = bpf_skc_to_tcp_sock(held);

	if (!sk || !may_yield(held, sk, in) || !is_plain_ack(in)) {
		forget_yielding(h);
		count(a->counters, COUNTER_DS_YIELD_ENDED);
		return AS_ANY_OTHER;
	}
	y->be_window = in->tcp.window;
	if (is_at_rest(sk, bpf_ntohl(in->tcp.ack_seq), y))
		return let_response_go(a, h, in, sk, y);
	if (!write_window_field(a, in, closed_window(sk, in)))
		return TCX_DISCARD;
	count(a->counters, COUNTER_DS_YIELD_CLOSED);
	return AS_ANY_OTHER;
}

/* Handles FORWARD. What a connection server sends of a connection that moves comes in this way. */
static __always_inline int receive_forwarded(struct arrival *a, struct lccp_header *h, struct inner *in)
{
	struct yielding *y = any_yields() ? yielding_of(h, false) : 0;

	if (y) {
		struct bpf_sock *sk = lookup(a->skb, in->ip.saddr, in->ip.daddr, in->tcp.source, in->tcp.dest);
		int verdict = is_connection(sk) ? take_ack(a, h, in, sk, y) : AS_ANY_OTHER;
		if (sk)
			bpf_sk_release(sk);
		if (verdict != AS_ANY_OTHER)
			return verdict;
	}
	return deliver_forwarded(a, h, in);
}

#endif
