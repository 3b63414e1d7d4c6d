/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a client has asked for, as far as a data server must know it: whether the server has begun to answer all that
 * came, and whether the next response has a body. See response.h for the other direction.
 */
#ifndef BATON_DS_ASKED_H
#define BATON_DS_ASKED_H

#include "packet.h"
#include "../bounds.h"
#include "../cs/request.h"

enum {
	SERVICES_FOLLOWED = SERVICE_HANDOVER | SERVICE_RESUME | SERVICE_STRICT | SERVICE_OWNER, /* whose responses are */
};

/* A request for HEAD begins `at` so many bytes of the frame. */
static __always_inline bool begins_with_head(struct __sk_buff *skb, u32 at)
{
	u64 word;

	return !bpf_skb_load_bytes(skb, at, &word, sizeof(word)) &&
	       (word & FIRST(5)) == LETTERS('H', 'E', 'A', 'D', ' ', 0, 0, 0);
}

static __always_inline bool is_capital(u8 letter)
{
	return (u8)(letter - 'A') < 26;
}

enum {
	METHOD_BYTES = 16,         /* VERSION-CONTROL, and a space */
};

static __always_inline bool is_of_method(u8 letter)
{
	return is_capital(letter) || letter == '-' || letter == '_';
}

/*
 * It begins with three letters of a method at least, and behind them a space, or the packet's end. Empty lines may be in
 * front (RFC 9112, 2.2). Whatever is doubtful is one: a request too many ends a connection, and one too few lets it go in
 * the middle of an answer. Global, so that it is verified by itself.
 */
__noinline int looks_like_request(struct __sk_buff *skb, u32 at, u32 bytes)
{
	u8 text[METHOD_BYTES] = {}, behind = '\n';
	u64 seen = bytes < METHOD_BYTES ? bytes : METHOD_BYTES;
	u32 letters = 0;

	if (bpf_skb_load_bytes(skb, at, text, BOUNDED(seen, 1, METHOD_BYTES)))
		return false;
#pragma unroll
	for (int i = 0; i < METHOD_BYTES; i++) {
		bool goes_on = letters ? is_of_method(behind) : behind == '\r' || behind == '\n';

		if (goes_on) {
			behind = text[i];
			letters += is_of_method(behind);
		}
	}
	return letters && (!behind || is_of_method(behind) || (behind == ' ' && letters >= 3));
}

/* The client's data from `seq` on is delivered to `sk`; it begins `at` so many bytes of the frame. */
static __noinline void note_asked(struct __sk_buff *skb, struct bpf_sock *sk, u32 at, u32 seq, u32 bytes)
{
	struct response *r = bpf_sk_storage_get(&responses, sk, 0, 0);

	if (!r || (int)(seq + bytes - r->asked) <= 0)
		return;
	r->requests += looks_like_request(skb, at, bytes);
	bool is_first = r->state == RESPONSE_COMPLETE && r->asked == r->answered;
	r->asked = seq + bytes;
	if (begins_with_head(skb, at)) {
		/* Behind a body that the server did not wait for, it is the next request all the same. */
		if (r->state == RESPONSE_COMPLETE)
			r->bodiless = 1;
		else if (r->state != RESPONSE_TUNNEL)
			r->state = RESPONSE_UNKNOWN;
	} else if (is_first) {
		r->bodiless = 0;
	}
}

/* The same of the client's packet inside a message. */
static __always_inline void note_asked_inside(struct arrival *a, struct bpf_sock *sk, const struct inner *in)
{
	u32 bytes = payload_of(in);

	if (bytes)
		note_asked(a->skb, sk, payload_at(in), bpf_ntohl(in->tcp.seq), bytes);
}

/* Whether each request that came has its whole response, up to `end`, and none is under way. */
static __always_inline bool is_answered(struct bpf_sock *sk, u32 end)
{
	const struct response *r = bpf_sk_storage_get(&responses, sk, 0, 0);

	return r && r->state == RESPONSE_COMPLETE && r->next == end && r->asked == r->answered;
}

/*
 * The same where the connection server has counted: so many requests have come, each has its whole response. What came
 * besides is the rest of a body that the server did not wait for.
 */
static __always_inline bool has_answered(struct bpf_sock *sk, u32 end, u8 requests)
{
	const struct response *r = bpf_sk_storage_get(&responses, sk, 0, 0);

	return r && r->state == RESPONSE_COMPLETE && r->next == end && r->responses == requests;
}

/* Whether anything has left by this socket. */
static __always_inline bool has_begun(struct bpf_sock *sk)
{
	return bpf_sk_storage_get(&responses, sk, 0, 0) != 0;
}

/* Whether as many responses have begun as requests may have. */
static __always_inline bool has_answered_all(struct bpf_sock *sk)
{
	const struct response *r = bpf_sk_storage_get(&responses, sk, 0, 0);

	return r && r->responses == r->requests;
}

/* Whether the server has switched to another protocol. */
static __always_inline bool is_tunnel(struct bpf_sock *sk)
{
	const struct response *r = bpf_sk_storage_get(&responses, sk, 0, 0);

	return r && r->state == RESPONSE_TUNNEL;
}

/* Whether nobody can say, now or later, where a response on this connection ends. */
static __always_inline bool cannot_be_followed(struct bpf_sock *sk)
{
	const struct response *r = bpf_sk_storage_get(&responses, sk, 0, 0);

	if (r)
		return r->state == RESPONSE_UNKNOWN;
	/* Nothing has left yet, though TCP may have sent it: it waits until its neighbour is known. Or it left before this program was here. */
	struct bpf_tcp_sock *tcp = bpf_tcp_sock(sk);
	if (!tcp)
		return true;
	if (!tcp->bytes_acked)
		return false;
	/* Or it left only just now, by another processor. */
	r = bpf_sk_storage_get(&responses, sk, 0, 0);
	return !r || r->state == RESPONSE_UNKNOWN;
}

/* How many responses have begun on it, modulo 256. */
static __always_inline u8 responses_on(struct bpf_sock *sk)
{
	const struct response *r = bpf_sk_storage_get(&responses, sk, 0, 0);

	return r ? r->responses : 0;
}

/* Whether something came to which no response has begun. */
static __always_inline bool is_unanswered(struct bpf_sock *sk)
{
	const struct response *r = bpf_sk_storage_get(&responses, sk, 0, 0);

	return !r || r->state == RESPONSE_FIRST || r->asked != r->answered;
}

/* What came since the last response began belongs to the request that it answers. */
static __always_inline void note_answered(struct bpf_sock *sk)
{
	struct response *r = bpf_sk_storage_get(&responses, sk, 0, 0);

	if (r)
		r->answered = r->asked;
}

/* Whether the response to the last request that came is under way, and it is known where it ends. */
static __always_inline bool is_answering(struct bpf_sock *sk)
{
	const struct response *r = bpf_sk_storage_get(&responses, sk, 0, 0);

	return r && r->state == RESPONSE_BODY && r->asked == r->answered;
}

#endif
