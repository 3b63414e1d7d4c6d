/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * BEGINS: the connection server does not know where the next request on a connection begins (cs/strict.h), and asks
 * before a server sees it. If all that came is answered, it begins with this packet, which is not delivered then.
 * If a response has not begun, or began before its request's body came, this is more of the request as far as that was
 * told to go (told_end.h). All else ends here, and comes again.
 */
#ifndef BATON_DS_BEGINS_H
#define BATON_DS_BEGINS_H

#include "asked.h"
#include "deliver.h"
#include "handover.h"
#include "packet.h"
#include "told_end.h"

enum {
	GAP_TICKS = 4,             /* longer than anything comes out of its order */
};

/*
 * Whether what is missing before a packet will not come any more: something behind it has been coming for seconds, while
 * the next byte is the same. It was acknowledged, as part of a head, by the user space of a connection server that has
 * died. Whose first bytes are on their way sends them again before others. A stranger does not know what was sent.
 */
static __always_inline bool is_gap_for_good(struct bpf_sock *sk, const struct tcp_sock *tcp,
					    const struct lccp_header *h, const struct inner *in)
{
	struct response *r = bpf_sk_storage_get(&responses, sk, 0, 0);
	u32 now = tick_now(), next = tcp->rcv_nxt;

	if (!r || h->tcb.attempt != BEGINS_UNSURE || !in->tcp.ack || bpf_ntohl(in->tcp.ack_seq) != tcp->write_seq)
		return false;
	if (r->gap_since && r->gap_at == next)
		return now - r->gap_since >= GAP_TICKS;
	r->gap_since = now;
	r->gap_at = next;
	return false;
}

/* The packet goes up to `end`, the request before it up to `last`. 0, or an enum lccp_keep. */
static __always_inline u32 what_goes_on(const struct lccp_header *h, u32 end, u32 last, bool is_next)
{
	if ((int)(end - last) > 0)
		return LCCP_KEEP_UNKNOWN;
	return h->tcb.attempt == BEGINS_JUMP && is_next ? LCCP_KEEP_MORE : 0;
}

/* 0: more of what came before, to be delivered. Or an enum lccp_keep. */
static __noinline u32 what_begins(struct bpf_sock *sk, const struct lccp_header *h, const struct inner *in)
{
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	u32 headers = in->ip.ihl * 4 + in->tcp.doff * 4;
	u32 end = bpf_ntohl(in->tcp.seq) + bpf_ntohs(in->ip.tot_len) - headers;

	/* What its server has closed is none any more: the kernel answers with a RST. */
	if (h->tcb.attempt == BEGINS_COME)
		return tcp ? LCCP_KEEP_COME : 0;
	if (!tcp || sk->state != STATE_ESTABLISHED)
		return 0;
	bool is_next = bpf_ntohl(in->tcp.seq) == tcp->rcv_nxt;
	bool is_old = (int)(end - tcp->rcv_nxt) <= 0;
	if (h->tcb.attempt == BEGINS_AGAIN)
		return is_old ? 0 : LCCP_KEEP_MISSING;
	if (h->tcb.attempt == BEGINS_ONLY_CONFIRM)
		return is_next ? LCCP_KEEP_MORE : 0;
	if (is_old)
		return 0;
	/* Nothing may lie behind a gap, where the server reads it unjudged. And a stranger does not know what is next. */
	if ((int)(bpf_ntohl(in->tcp.seq) - tcp->rcv_nxt) > 0)
		return is_gap_for_good(sk, tcp, h, in) ? LCCP_KEEP_UNKNOWN : LCCP_KEEP_UNFINISHED;
	if (is_tunnel(sk))
		return LCCP_KEEP_TUNNEL;
	if (cannot_be_followed(sk))
		return LCCP_KEEP_UNKNOWN;
	u32 last = 0;
	enum rest rest = find_rest(h, tcp->rcv_nxt, &last);
	/* Also of a request that was answered before its body came: that may look like one. */
	if (rest == REST_BYTES)
		return what_goes_on(h, end, last, is_next);
	bool unused = is_unused(h, sk);
	if (is_unanswered(sk) && !unused) {
		if (rest == REST_UNKNOWN)
			return LCCP_KEEP_UNKNOWN;
		if (!is_answered_early(h, sk, tcp->rcv_nxt))
			return LCCP_KEEP_UNFINISHED;
		if (!has_answered_all(sk))
			return LCCP_KEEP_UNKNOWN;
		note_answered(sk);
	}
	if (not_quiet(sk, h, in))
		return LCCP_KEEP_UNFINISHED;
	/* Requests that did not wait for each other, or a body that looked like one: nobody can tell any more. */
	return unused || has_answered_all(sk) ? LCCP_KEEP_BEGINS : LCCP_KEEP_UNKNOWN;
}

static __always_inline int tell_asker(struct arrival *a, struct lccp_header *h, const struct inner *in, u32 what,
				      struct bpf_sock *sk)
{
	const struct data_server *asker = peer(a->sender);
	bool tells_next = what == LCCP_KEEP_MISSING || what == LCCP_KEEP_COME;
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	enum counter counted = what == LCCP_KEEP_MISSING ? COUNTER_DS_MISSING :
			       what == LCCP_KEEP_COME ? COUNTER_DS_COME : COUNTER_DS_BEGINS;
	u32 at = tells_next && tcp ? tcp->rcv_nxt : bpf_ntohl(in->tcp.seq);

	h->tcb.attempt = responses_on(sk);
	h->tcb.be_resume = bpf_cpu_to_be64(at);
	if (is_own_cs(asker)) {
		count(a->counters, counted);
		return told_here(a, h, in, what, at);
	}
	h->receptor = LCCP_RECEPTOR_CS;
	h->command = LCCP_BEGINS;
	h->be_data = bpf_htonl(what);
	struct passage back = { asker, a->sender, counted };
	return send_message(a, h, in, &back);
}

/* It is the next byte, and no request, or one that is delivered all the same. */
static __always_inline void confirm(struct arrival *a, struct lccp_header *h, const struct inner *in,
				    struct bpf_sock *sk)
{
	const struct data_server *asker = peer(a->sender);

	if (!asker)
		return;
	if (is_own_cs(asker)) {
		jumped_here(a, h, in);
		return;
	}
	h->receptor = LCCP_RECEPTOR_CS;
	h->be_data = bpf_htonl(LCCP_KEEP_MORE);
	h->tcb.attempt = responses_on(sk);
	h->tcb.be_resume = bpf_cpu_to_be64(bpf_ntohl(in->tcp.seq));
	send_copy(a, h, in, asker, a->sender);
}

static __always_inline int deliver_more(struct arrival *a, struct bpf_sock *sk, const struct inner *in)
{
	if (!keep_for(a, sk))
		return discard(a, COUNTER_DS_NO_SOCKET);
	note_asked_inside(a, sk, in);
	if (!strip(a->skb))
		return TCX_DISCARD;
	count(a->counters, COUNTER_DS_BEGINS_NOT);
	return TCX_GO_ON;
}

static __always_inline int receive_begins(struct arrival *a, struct lccp_header *h, const struct inner *in)
{
	struct bpf_sock *sk = lookup(a->skb, in->ip.saddr, in->ip.daddr, in->tcp.source, in->tcp.dest);
	int verdict;

	if (!is_connection(sk)) {
		/* Here it says what is asked. */
		h->tcb.attempt = 0;
		verdict = send_none(a, h, in);
	} else {
		u32 what = what_begins(sk, h, in);

		if (what == LCCP_KEEP_MORE)
			confirm(a, h, in, sk);
		if (!what || what == LCCP_KEEP_MORE)
			verdict = deliver_more(a, sk, in);
		else if (what == LCCP_KEEP_UNFINISHED)
			verdict = discard(a, COUNTER_DS_BEGINS_LATER);
		else
			verdict = tell_asker(a, h, in, what, sk);
	}
	if (sk)
		bpf_sk_release(sk);
	return verdict;
}

#endif
