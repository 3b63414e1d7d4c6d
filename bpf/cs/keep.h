/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Kept requests: should a data server die in the middle of a response, another one is asked for the same
 * with the same bytes. Only where the operator said that all answer alike, and only of requests that are
 * safe to be asked twice and all in one segment.
 */
#ifndef BATON_CS_KEEP_H
#define BATON_CS_KEEP_H

#include "packet.h"
#include "request.h"
#include "tally.h"

_Static_assert(__builtin_offsetof(struct text, at) == __builtin_offsetof(struct kept_request, text),
	       "a text begins like a kept request");

/* The request of so many bytes that was read last, and begins this packet: its text is still where that left it. False if there is no room. */
static __always_inline bool keep_text(struct text *text, const struct tcb_key *flow, const struct tcphdr *tcp, u32 bytes, u16 pool)
{
	text->kept[0] = bpf_ntohl(tcp->seq);
	text->kept[1] = bpf_ntohl(tcp->ack_seq);
	text->kept[2] = bytes | (u32)pool << 16;
	text->kept[3] = 0;
	return !bpf_map_update_elem(&kept_requests, flow, text, BPF_ANY);
}

/* `p` is the packet that `r` was read from. */
static __noinline void keep_request(struct packet *p, const struct request *r)
{
	struct text *text = text_of_this_cpu();

	if (!r->resumes || !text || !r->target || r->begin || !may_move(r))
		return;
	if (r->bytes > KEPT_BYTES) {
		count(p->counters, COUNTER_CS_REQUEST_TOO_LONG);
		return;
	}
	if (keep_text(text, &p->flow, p->frame.tcp, r->bytes, NO_POOL))
		count(p->counters, COUNTER_CS_REQUEST_KEPT);
}

/*
 * Whether it is this entry's current request. Where the owner sees to requests, and has told it, the client has sent nothing
 * behind it. Of a connection that is pinned otherwise it is not known.
 */
static __always_inline bool is_current(const struct kept_request *kept, const struct tcb *tcb)
{
	if (is_at_door(tcb))
		return kept->request_seq + kept->bytes == tcb->last_seq && (int)(tcb->last_ack - kept->response_start) >= 0;
	return kept->request_seq == tcb->request_seq && !(tcb->state & TCB_PINNED);
}

/* What is kept of the current request of this entry; 0: nothing. */
static __always_inline const struct kept_request *kept_of(const struct tcb_key *flow, const struct tcb *tcb)
{
	const struct kept_request *kept = bpf_map_lookup_elem(&kept_requests, flow);

	return kept && is_current(kept, tcb) ? kept : 0;
}

static __always_inline bool is_kept(const struct tcb_key *flow, const struct tcb *tcb)
{
	return kept_of(flow, tcb);
}

/* Whether it is, and its client may wait for more of the response. */
static __always_inline bool is_kept_open(const struct tcb_key *flow, const struct tcb *tcb)
{
	const struct kept_request *kept = kept_of(flow, tcb);

	return kept && !kept->whole;
}

#endif
