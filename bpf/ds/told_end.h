/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests that go on behind their first packet, as the connection server told. It knows where they end, and may be
 * replaced by another one, which does not: that one asks (begins.h) what is more of such a request.
 */
#ifndef BATON_DS_TOLD_END_H
#define BATON_DS_TOLD_END_H

#include "packet.h"

enum {
	ENDS_TOLD = 16384, /* of which nothing is heard for longest is forgotten first; what is more of it is not delivered then */
};

struct told_end {
	u32 begin;
	u32 end;
	u32 how;           /* enum lccp_end */
	u32 head;          /* so many bytes only the connection server can judge */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, ENDS_TOLD);
	__type(key, struct tcb_key);
	__type(value, struct told_end);
} ends_told SEC(".maps");

static __noinline void note_end(const struct lccp_header *h, const struct inner *in)
{
	u64 told = bpf_be64_to_cpu(h->tcb.be_resume);
	struct told_end end = {
		.begin = bpf_ntohl(in->tcp.seq),
		.end = told,
		.how = (u16)(told >> LCCP_END_SHIFT),
		.head = told >> LCCP_END_HEAD_SHIFT,
	};
	struct tcb_key flow = flow_of(h);

	if (!(h->flags & LCCP_FLAG_RESUME) && end.how)
		bpf_map_update_elem(&ends_told, &flow, &end, BPF_ANY);
}

/*
 * Nothing is to come of any request: the connection is adopted with an empty acknowledgement, because it was idle where it
 * was. Of such a socket no response can say that it is whole.
 */
static __noinline void note_idle(const struct lccp_header *h, const struct inner *in)
{
	u32 at = bpf_ntohl(in->tcp.seq);
	struct told_end end = { .begin = at, .end = at, .how = LCCP_END_TOLD };
	struct tcb_key flow = flow_of(h);

	bpf_map_update_elem(&ends_told, &flow, &end, BPF_ANY);
}

/* Whether it has come so, and nothing has been asked for here since. */
static __noinline bool is_unused(const struct lccp_header *h, struct bpf_sock *sk)
{
	struct bpf_tcp_sock *tcp = sk ? bpf_tcp_sock(sk) : 0;
	struct tcb_key flow = flow_of(h);
	const struct told_end *told = bpf_map_lookup_elem(&ends_told, &flow);

	return tcp && told && told->begin == told->end && tcp->rcv_nxt == told->begin && !tcp->bytes_received &&
	       !tcp->bytes_acked && tcp->snd_nxt == tcp->snd_una;
}

/* A connection begins here: what was told of an earlier one on these ports says nothing of this. */
static __noinline void forget_end(const struct lccp_header *h)
{
	struct tcb_key flow = flow_of(h);

	bpf_map_delete_elem(&ends_told, &flow);
}

/* How much of a request is still to come, from `next` on. */
enum rest {
	REST_NONE,         /* whatever comes begins another */
	REST_BYTES,        /* up to the sequence number that goes to `end` */
	REST_UNKNOWN,
};

/* Of the last request that was told of. */
static __noinline enum rest find_rest(const struct lccp_header *h, u32 next, u32 *end)
{
	struct tcb_key flow = flow_of(h);
	const struct told_end *told = bpf_map_lookup_elem(&ends_told, &flow);

	if (!told)
		return REST_NONE;
	u32 come = next - told->begin;
	if (told->how == LCCP_END_UNKNOWN || come < told->head)
		return (int)come >= 0 ? REST_UNKNOWN : REST_NONE;
	*end = told->end;
	return come < told->end - told->begin ? REST_BYTES : REST_NONE;
}

/*
 * Whether a response has begun while the last request was still coming, and all of that is here. A server may answer before
 * it has read the body (RFC 9112, 9.3): what came since is the rest of that, and waits for no answer.
 */
static __noinline bool is_answered_early(const struct lccp_header *h, struct bpf_sock *sk, u32 next)
{
	const struct response *r = sk ? bpf_sk_storage_get(&responses, sk, 0, 0) : 0;
	struct tcb_key flow = flow_of(h);
	const struct told_end *told = bpf_map_lookup_elem(&ends_told, &flow);

	return r && told && r->state == RESPONSE_COMPLETE && told->how == LCCP_END_TOLD && told->end == next &&
	       r->asked == next && (int)(r->answered - told->begin) > 0;
}

#endif
