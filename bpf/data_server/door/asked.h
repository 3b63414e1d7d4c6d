/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a client has asked for, as far as a data server must know it: whether the server has begun to answer all that
 * came, and whether the next response has a body. See response.h for the other direction.
 */
#ifndef BATON_DATA_SERVER_DOOR_ASKED_H
#define BATON_DATA_SERVER_DOOR_ASKED_H

#include "data_server/packet.h"
#include "include/bounds.h"
#include "routing/request.h"

enum {
	HEAD_AND_BLANK = 5,        /* bytes of "HEAD " */
	WAITING_MOST = 127,        /* requests and responses are counted modulo 256, and their difference has a sign */
};

/*
 * Whether a HEAD request begins with these `bytes` bytes, which begin at offset `at` of the frame. What is behind them
 * is not looked at, because it is another request's: the empty line that ends a chunked body looks like one in front of
 * a request.
 */
static __always_inline bool begins_with_head(struct __sk_buff *skb, u32 at, u32 bytes)
{
	u32 end = at + bytes;
	u64 word;

	for (int i = 0; i <= LEADING_MAX; i++) {
		if (at + HEAD_AND_BLANK > end || bpf_skb_load_bytes(skb, at, &word, sizeof(word)))
			return false;
		if ((u8)word != '\r' && (u8)word != '\n')
			break;
		at++;
	}
	return (word & FIRST(HEAD_AND_BLANK)) == LETTERS('H', 'E', 'A', 'D', ' ', 0, 0, 0);
}

/*
 * Returns the note of the responses on `sk`; if there is none yet, makes one that says that nothing has left. It begins
 * as RESPONSE_FIRST, because another processor may look at it before it is filled in, and state 0 would say that nobody
 * can tell where the response ends. Other processors may at the same time make the first storage of this socket, and
 * then this note (-EAGAIN and -EEXIST in kernel/bpf/bpf_local_storage.c), so the third try finds it. 0: there is no
 * memory.
 */
static __noinline struct response *new_response(struct bpf_sock *sk)
{
	struct response begins = { .state = RESPONSE_FIRST };
	struct response *r = bpf_sk_storage_get(&responses, sk, &begins, BPF_SK_STORAGE_GET_F_CREATE);

	if (!r)
		r = bpf_sk_storage_get(&responses, sk, &begins, BPF_SK_STORAGE_GET_F_CREATE);
	return r ? r : bpf_sk_storage_get(&responses, sk, &begins, BPF_SK_STORAGE_GET_F_CREATE);
}

/*
 * Notes whether the first request of a connection that has come here without one is HEAD, so that its response has no
 * body. The first request of any other connection came with it: see adopt/window.h.
 */
static __noinline void note_first_request(struct __sk_buff *skb, struct bpf_sock *sk, u32 at, u32 bytes)
{
	bool is_head = begins_with_head(skb, at, bytes);
	struct response *r = is_head ? new_response(sk) : bpf_sk_storage_get(&responses, sk, 0, 0);

	if (r && r->state == RESPONSE_FIRST)
		r->bodiless = is_head;
}

/*
 * Notes what a client asks for with data that is delivered to `sk`. The data has sequence number `seq`, and begins at
 * offset `at` of the frame.
 */
static __noinline void note_asked(struct __sk_buff *skb, struct bpf_sock *sk, u32 at, u32 seq, u32 bytes)
{
	struct response *r = bpf_sk_storage_get(&responses, sk, 0, 0);

	/*
	 * Nothing is noted until the connection's first response begins: until then this is the first request once
	 * more.
	 */
	if (!r || r->state == RESPONSE_FIRST || (int)(seq + bytes - r->asked) <= 0)
		return;
	bool is_first = r->state == RESPONSE_COMPLETE && r->asked == r->answered;
	/* Data that begins before `asked` has come before in part, and goes on with more of a body. */
	bool begins = (int)(seq - r->asked) >= 0;
	r->asked = seq + bytes;
	if (begins && begins_with_head(skb, at, bytes)) {
		/* Even behind a body that the server did not wait for, this is the next request. */
		if (r->state == RESPONSE_COMPLETE)
			r->bodiless = 1;
		else if (r->state != RESPONSE_TUNNEL)
			r->state = RESPONSE_UNKNOWN;
	} else if (is_first) {
		r->bodiless = 0;
	}
}

/*
 * Whether `requests` requests have come, and each has its whole response, the last of which ends at `end`. Anything
 * else that came is the rest of a body that the server did not wait for.
 */
static __always_inline bool has_answered(struct bpf_sock *sk, u32 end, u8 requests)
{
	const struct response *r = bpf_sk_storage_get(&responses, sk, 0, 0);

	return r && r->state == RESPONSE_COMPLETE && r->next == end && r->responses == requests;
}

/*
 * Whether the server has answered more requests than have come. Then it is no longer known which response belongs to
 * which request.
 */
static __always_inline bool has_answered_more(struct bpf_sock *sk, u8 requests)
{
	const struct response *r = bpf_sk_storage_get(&responses, sk, 0, 0);

	return r && r->state != RESPONSE_TUNNEL && (signed char)(r->responses - requests) > 0;
}

/* Whether anything has left by this socket. */
static __always_inline bool has_begun(struct bpf_sock *sk)
{
	const struct response *r = bpf_sk_storage_get(&responses, sk, 0, 0);

	return r && r->state != RESPONSE_FIRST;
}

/* Whether the connection ends with the last response, so that its server answers nothing behind that. */
static __always_inline bool is_last(struct bpf_sock *sk)
{
	const struct response *r = bpf_sk_storage_get(&responses, sk, 0, 0);

	return r && r->closes;
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
	struct bpf_tcp_sock *tcp = bpf_tcp_sock(sk);

	if (!tcp)
		return true;
	/* The client has acknowledged what this program has not seen, so TCP does not send it again. */
	if (r && r->state != RESPONSE_FIRST)
		return r->state == RESPONSE_UNKNOWN || (r->ahead && (int)(tcp->snd_una - r->next) > 0);
	/*
	 * Nothing has left yet, though TCP may have sent it: it waits until the address of its neighbour is known. Or
	 * it left before this program was attached.
	 */
	if (!tcp->bytes_acked)
		return false;
	/* Or it has just left by another processor. */
	r = bpf_sk_storage_get(&responses, sk, 0, 0);
	return !r || r->state == RESPONSE_FIRST || r->state == RESPONSE_UNKNOWN;
}

/* Whether the response to the last of `requests` requests has begun, or nobody can say. */
static __always_inline bool has_answered_all(struct bpf_sock *sk, u8 requests)
{
	const struct response *r = bpf_sk_storage_get(&responses, sk, 0, 0);

	return r && r->state != RESPONSE_FIRST && ((signed char)(r->responses - requests) >= 0 || cannot_be_followed(sk));
}

/*
 * Whether so many requests wait for their responses that the difference of the two counts could not show one more. Where
 * responses cannot be followed, nothing depends on these counts.
 */
static __always_inline bool are_too_many(struct bpf_sock *sk, u8 requests)
{
	const struct response *r = bpf_sk_storage_get(&responses, sk, 0, 0);

	return (signed char)(requests - (r ? r->responses : 0)) >= WAITING_MOST && !cannot_be_followed(sk);
}

/* Whether the response to the last request that came is under way, and it is known where it ends. */
static __always_inline bool is_answering(struct bpf_sock *sk)
{
	const struct response *r = bpf_sk_storage_get(&responses, sk, 0, 0);

	return r && r->state == RESPONSE_BODY && r->asked == r->answered;
}

#endif
