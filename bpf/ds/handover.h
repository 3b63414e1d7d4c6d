/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * HANDOVER: the connection server wants another data server to answer this request. Only the owner knows
 * whether the connection is at a quiet point. If so, it passes the request on as ADOPT and ends its own
 * socket, without a word on the wire; if not, it delivers the request here and answers KEEP.
 */
#ifndef BATON_DS_HANDOVER_H
#define BATON_DS_HANDOVER_H

#include "asked.h"
#include "end.h"
#include "given.h"
#include "none.h"
#include "own_cs.h"
#include "packet.h"
#include "send.h"
#include "told_end.h"
#include "window.h"

/*
 * 0, or why not (enum lccp_keep). Quiet: the request is the next byte, and it acknowledges all that the
 * server has written. The server has read whatever came before. And that is answered, where the service is one
 * whose responses can be understood: a server may pause in the middle of one.
 */
static __always_inline u32 not_quiet(struct bpf_sock *held, const struct lccp_header *h, const struct inner *in)
{
	struct tcp_sock *sk = bpf_skc_to_tcp_sock(held);

	if (!sk || held->state != STATE_ESTABLISHED)
		return LCCP_KEEP_STATE;
	if (sk->rcv_nxt != bpf_ntohl(in->tcp.seq))
		return LCCP_KEEP_SEQUENCE;
	if (sk->copied_seq != sk->rcv_nxt)
		return LCCP_KEEP_UNREAD;
	if (sk->write_seq != bpf_ntohl(in->tcp.ack_seq))
		return LCCP_KEEP_UNSENT;
	const struct service *service = service_at(in->ip.daddr, in->tcp.dest);
	if (h->command == LCCP_ELSEWHERE && has_answered(held, sk->write_seq, h->tcb.attempt))
		return 0;
	if (h->command == LCCP_ELSEWHERE)
		return !h->tcb.attempt && is_unused(h, held) ? 0 : LCCP_KEEP_UNFINISHED;
	if (service && service->flags & SERVICES_FOLLOWED && !is_answered(held, sk->write_seq) && !is_unused(h, held))
		return LCCP_KEEP_UNFINISHED;
	return 0;
}

static __always_inline enum counter keep_counter(u32 why)
{
	switch (why) {
	case LCCP_KEEP_UNSENT:
		return COUNTER_DS_KEPT_UNSENT;
	case LCCP_KEEP_UNREAD:
		return COUNTER_DS_KEPT_UNREAD;
	case LCCP_KEEP_SEQUENCE:
		return COUNTER_DS_KEPT_SEQUENCE;
	case LCCP_KEEP_NO_WAY:
		return COUNTER_DS_KEPT_NO_WAY;
	case LCCP_KEEP_UNFINISHED:
		return COUNTER_DS_KEPT_UNFINISHED;
	default:
		return COUNTER_DS_KEPT_STATE;
	}
}

/* Sends a copy of this message as `command` to another node; this one stays as it is otherwise. */
static __always_inline bool send_copy(struct arrival *a, struct lccp_header *h, const struct inner *in,
				      const struct data_server *to, __be32 to_address)
{
	return make_message(a, h, in, to, to_address) && bpf_clone_redirect(a->skb, to->ifindex, 0) == 0;
}

/* The answer goes to the connection server that asked; without a way to it, its next NONE tells it. */
static __always_inline int keep(struct arrival *a, struct lccp_header *h, const struct inner *in, u32 why)
{
	const struct data_server *asker = peer(a->sender);

	count(a->counters, keep_counter(why));
	if (is_own_cs(asker)) {
		kept_here(a, h, why);
		return strip(a->skb) ? TCX_GO_ON : TCX_DISCARD;
	}
	h->receptor = LCCP_RECEPTOR_CS;
	h->command = LCCP_KEEP;
	h->be_data = bpf_htonl(why);
	if (asker)
		send_copy(a, h, in, asker, a->sender);
	return strip(a->skb) ? TCX_GO_ON : TCX_DISCARD;
}

/* Where a request goes that this data server does not answer, and as what. */
struct passage {
	const struct data_server *way; /* 0: nowhere */
	__be32 address;
	enum counter how;
};

/*
 * To the next data server as ADOPT, in the name of the connection server that asked. If no way to it is
 * known (yet), back to who asked, who knows one; not if that is this node, which would know it here.
 */
static __always_inline struct passage open_passage(struct arrival *a, struct lccp_header *h, enum counter how)
{
	__be32 next = h->be_data;
	struct passage passage = { .way = peer(next), .address = next, .how = how };

	h->tcb.attempt = 0;
	if (passage.way) {
		h->command = LCCP_ADOPT;
			h->be_data = a->sender;
		return passage;
	}
	passage = (struct passage){ .way = peer(a->sender), .address = a->sender, .how = COUNTER_DS_NO_WAY };
	if (is_own_cs(passage.way))
		return (struct passage){ .how = COUNTER_DS_NO_WAY };
	h->receptor = LCCP_RECEPTOR_CS;
	h->command = LCCP_REFUSED;
	h->be_data = bpf_htonl(LCCP_REFUSAL_NO_WAY);
	return passage;
}

static __always_inline int hand_on(struct arrival *a, struct lccp_header *h, const struct inner *in,
				   const struct bpf_sock *held)
{
	struct tcp_sock *sk = bpf_skc_to_tcp_sock((void *)held);
	bool elsewhere = h->command == LCCP_ELSEWHERE;
	struct passage passage = open_passage(a, h, COUNTER_DS_HANDED_OVER);

	/* What is for another pool the server here must not see. Its client sends it again. */
	if (!passage.way)
		return elsewhere ? discard(a, COUNTER_DS_NO_WAY) : keep(a, h, in, LCCP_KEEP_NO_WAY);
	note_handover(a, h, in, passage.address, 0);
	h->tcb.be_cwnd = sk ? window_to_give(sk) : 0;
	if (!send_copy(a, h, in, passage.way, passage.address))
		return TCX_DISCARD;
	if (!strip(a->skb) || !become_reset(a->skb, in, in->tcp_at - OUTER_BYTES, bpf_ntohl(in->tcp.seq)))
		return TCX_DISCARD;
	count(a->counters, passage.how);
	return TCX_GO_ON;
}

static __always_inline int send_message(struct arrival *a, struct lccp_header *h, const struct inner *in,
					const struct passage *passage)
{
	if (!passage->way)
		return discard(a, COUNTER_DS_NO_WAY);
	if (!make_message(a, h, in, passage->way, passage->address))
		return TCX_DISCARD;
	count(a->counters, passage->how);
	return bpf_redirect(passage->way->ifindex, 0);
}

/* The connection is not here: it was handed over before, and this HANDOVER came again. */
static __always_inline int pass_on(struct arrival *a, struct lccp_header *h, const struct inner *in)
{
	struct passage passage = open_passage(a, h, COUNTER_DS_PASSED_ON);

	return send_message(a, h, in, &passage);
}

/*
 * The connection is not here. An ELSEWHERE may also be here before the connection is, while the one before has it still:
 * then it is not to go on to a third.
 */
static __always_inline int handover_of_other(struct arrival *a, struct lccp_header *h, const struct inner *in)
{
	__be32 next = was_handed_over(h, in);

	if (h->command != LCCP_ELSEWHERE)
		return pass_on(a, h, in);
	if (next) {
		/* Whoever is to have it by now: that one has it, or had. */
		h->be_data = next;
		return pass_on(a, h, in);
	}
	h->tcb.attempt = 0;
	return send_none(a, h, in);
}

/*
 * The request is for another pool: no server here may see it. Its client sends it again, and by then the connection
 * may be able to go.
 */
static __always_inline int withhold_request(struct arrival *a, struct lccp_header *h, const struct inner *in, u32 why)
{
	const struct data_server *asker = peer(a->sender);

	count(a->counters, COUNTER_DS_WITHHELD);
	if (is_own_cs(asker))
		return withheld_here(a, h, in, why);
	h->receptor = LCCP_RECEPTOR_CS;
	h->command = LCCP_WITHHELD;
	h->be_data = bpf_htonl(why);
	if (!asker || !make_message(a, h, in, asker, a->sender))
		return TCX_DISCARD;
	return bpf_redirect(asker->ifindex, 0);
}

static __noinline int answer_handover(struct arrival *a, struct lccp_header *h, const struct inner *in, struct bpf_sock *sk)
{
	u32 why = not_quiet(sk, h, in);

	if (!why)
		return hand_on(a, h, in, sk);
	if (h->command == LCCP_ELSEWHERE && !is_tunnel(sk))
		return withhold_request(a, h, in, why == LCCP_KEEP_UNFINISHED && cannot_be_followed(sk) ?
				LCCP_KEEP_UNKNOWN : why);
	note_asked_inside(a, sk, in);
	return keep(a, h, in, why);
}

static __always_inline int handover(struct arrival *a, struct lccp_header *h, const struct inner *in)
{
	struct bpf_sock *sk = lookup(a->skb, in->ip.saddr, in->ip.daddr, in->tcp.source, in->tcp.dest);
	int verdict;

	if (!is_connection(sk)) {
		verdict = a->again ? discard(a, COUNTER_LCCP_REPEATED) : handover_of_other(a, h, in);
	} else {
		verdict = answer_handover(a, h, in, sk);
	}
	if (sk)
		bpf_sk_release(sk);
	return verdict;
}

#endif
