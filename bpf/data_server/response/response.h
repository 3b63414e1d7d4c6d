/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds out where responses end, as they leave. TCP cannot say it: when the client has acknowledged all that was
 * written, the server may be about to write more. So this program follows the framing of HTTP/1.1 (RFC 9112, 6.3) from
 * the connection's first byte on, at tc egress, where large sends are still whole. A head may come behind what follows it
 * (note_ahead()). If the program does not understand something, or has not seen what it would have to read, the connection
 * is RESPONSE_UNKNOWN for good: it stays at this data server, and ends with the first request with which it would have to
 * leave. A TLS connection is so from the start.
 */
#ifndef BATON_DATA_SERVER_RESPONSE_RESPONSE_H
#define BATON_DATA_SERVER_RESPONSE_RESPONSE_H

#include "data_server/door/asked.h"
#include "data_server/door/chunks.h"
#include "data_server/response/leaving.h"
#include "data_server/response/response_head.h"

enum {
	/* Enough for a send of 64 KB byte by byte. */
	STEPS_MAX = 1 << 16,
	AHEAD_MOST = 1 << 30, /* bytes, more than any window */
};

/*
 * Takes one step: a whole head, what is here of a body or a chunk, or a few bytes of a head that is read byte by byte
 * or of what is around a chunk.
 */
static long take_part(u32 index, struct leaving *l)
{
	struct response *r = l->response;

	if (!l->bytes)
		return 1;
	switch (r->state) {
	case RESPONSE_UNKNOWN:
		return 1;
	case RESPONSE_FIRST:
	case RESPONSE_COMPLETE:
		take_head(l);
		return 0;
	case RESPONSE_BODY:
		if (take_bytes(l))
			r->state = RESPONSE_COMPLETE;
		return 0;
	case RESPONSE_HEAD:
		take_of_head(l);
		return 0;
	default:
		take_of_chunks(l);
		return 0;
	}
}

static __always_inline void lose_track(struct response *r, enum counter why)
{
	if (r->state == RESPONSE_TUNNEL)
		return;
	struct counters *counters = counters_of_this_cpu();

	r->state = RESPONSE_UNKNOWN;
	if (counters)
		count(counters, why);
}

/*
 * Passes over what was before `seq`, which has left by another interface, or was dropped on its way here and comes
 * later. The bytes of a body that says its length need not be seen. False if the gap cannot be passed over.
 */
static __always_inline bool pass_over_gap(struct response *r, u32 seq)
{
	u32 gap = seq - r->next;

	if (r->state != RESPONSE_BODY || r->left < gap)
		return false;
	r->left -= gap;
	r->next = seq;
	if (!r->left)
		r->state = RESPONSE_COMPLETE;
	return true;
}

/*
 * Notes that data up to `end` has left ahead of what is missing, which is a head, or begins with one. It was dropped on
 * its way here, as by a neighbour's queue while the neighbour's address is not known, and TCP will send it again. False
 * if what has left cannot be passed over later.
 */
static __always_inline bool note_ahead(struct response *r, u32 end)
{
	if ((r->state != RESPONSE_COMPLETE && r->state != RESPONSE_HEAD) || end - r->next > AHEAD_MOST)
		return false;
	if (!r->ahead || (int)(end - r->ahead) > 0)
		r->ahead = end;
	return r->ahead;
}

/* Passes over what has left ahead of a head, once the head has come. */
static __always_inline void pass_over_ahead(struct response *r)
{
	u32 end = r->ahead;

	if (!end || r->state == RESPONSE_HEAD || r->state == RESPONSE_UNKNOWN)
		return;
	r->ahead = 0;
	if ((int)(end - r->next) > 0 && !pass_over_gap(r, end))
		lose_track(r, COUNTER_DS_RESPONSE_GAP);
}

/* Follows the response with a packet that leaves: it has payload, the first byte of which is `seq`. */
static __always_inline void follow_response(struct leaving *l, u32 seq)
{
	struct response *r = l->response;
	u32 again = r->next - seq;

	if ((int)again < 0 && !pass_over_gap(r, seq)) {
		if (!note_ahead(r, seq + l->bytes))
			lose_track(r, COUNTER_DS_RESPONSE_GAP);
		return;
	}
	again = r->next - seq;
	if (again >= l->bytes)
		return;
	l->at += again;
	l->begin = l->at;
	l->bytes -= again;
	r->next += l->bytes;
	if (r->state == RESPONSE_TUNNEL)
		return;
	/* Most packets of a large download end here. */
	if (r->state == RESPONSE_BODY && r->left > l->bytes) {
		r->left -= l->bytes;
		return;
	}
	bpf_loop(STEPS_MAX, take_part, l, 0);
	if (l->bytes || r->state == RESPONSE_UNKNOWN)
		lose_track(r, COUNTER_DS_RESPONSE_UNKNOWN);
	pass_over_ahead(r);
}

/*
 * Whether the connection was adopted with a HEAD request that could not be noted with its socket, because no sockops
 * program runs for the server, or there was no memory: see window.h.
 */
static __noinline bool came_with_head(const struct iphdr *ip, const struct tcphdr *tcp)
{
	struct tcb_key flow;

	name_flow(&flow, ip->daddr, tcp->dest, ip->saddr, tcp->source);
	const struct expected *with = bpf_map_lookup_elem(&expected, &flow);
	return with && with->bodiless;
}

/*
 * Returns what is known of the responses on `sk`, from which a packet with this TCP header is leaving; 0: there is
 * nothing to follow. A connection is followed from its first byte on. One that has sent something before this program was
 * attached never is.
 */
static __always_inline struct response *response_on(struct bpf_sock *sk, const struct iphdr *ip,
						    const struct tcphdr *tcp)
{
	struct response *r = bpf_sk_storage_get(&responses, sk, 0, 0);

	if (r && r->state != RESPONSE_FIRST)
		return r;
	const struct service *service = service_at(ip->saddr, tcp->source);
	struct bpf_tcp_sock *connection = bpf_tcp_sock(sk);
	if (!service || !(service->flags & SERVICE_OWNER) || !connection)
		return 0;
	if (!r)
		r = new_response(sk);
	if (!r) {
		struct counters *counters = counters_of_this_cpu();

		if (counters)
			count(counters, COUNTER_DS_RESPONSE_NO_ROOM);
		return 0;
	}
	r->bodiless |= came_with_head(ip, tcp);
	r->next = connection->snd_una;
	r->asked = connection->rcv_nxt;
	r->answered = r->asked - 1; /* what leaves answers a request that has come */
	/* Nobody can read here what is said by TLS. Where connections move, the agent knows when they may. */
	if (service->flags & SERVICE_TLS)
		r->state = RESPONSE_UNKNOWN;
	else if (connection->bytes_acked)
		lose_track(r, COUNTER_DS_RESPONSE_EARLIER);
	else
		r->state = RESPONSE_COMPLETE;
	return r;
}

#endif
