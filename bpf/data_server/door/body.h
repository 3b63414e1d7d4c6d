/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Follows bodies of requests whose end is not known from the head: chunked ones, and those that are longer than
 * sequence numbers can tell. What is inside a chunk, or inside a piece of a long body, passes in any order. Where that
 * ends, the door reads on, as far as the packet shows it. What the door has read is then like the head of a request:
 * nothing behind it passes before TCP has accepted it.
 */
#ifndef BATON_DATA_SERVER_DOOR_BODY_H
#define BATON_DATA_SERVER_DOOR_BODY_H

#include "data_server/door/door.h"
#include "data_server/packet.h"
#include "include/bounds.h"
#include "routing/chunks.h"
#include "routing/request.h"

enum {
	BODY_STEPS = 1 << 16,      /* enough for the largest packet, byte by byte */
};

struct body_walk {
	struct __sk_buff *skb;
	struct response *body;
	u32 at;                    /* offset in the frame of what has not been read yet */
	u32 bytes;                 /* number of bytes there */
};

static long take_of_body(u32 index, struct body_walk *w)
{
	struct response *body = w->body;
	u8 c;

	if (!w->bytes || body->state == RESPONSE_COMPLETE || body->state == RESPONSE_UNKNOWN)
		return 1;
	if (is_inside(body)) {
		u32 here = take_inside(body, w->bytes);

		w->at += here;
		w->bytes -= here;
		return 0;
	}
	if (bpf_skb_load_bytes(w->skb, w->at, &c, sizeof(c))) {
		body->state = RESPONSE_UNKNOWN;
		return 1;
	}
	take_byte(body, c);
	w->at++;
	w->bytes--;
	return 0;
}

/*
 * Reads more of a body, which goes on at offset `from` of this packet's payload in the state that `s` has. Afterwards
 * `s` says how far the body is known. Its state is RESPONSE_UNKNOWN if these bytes cannot be a body.
 */
static __noinline void follow_body(struct __sk_buff *skb, const struct inner *in, u32 from, struct span *s)
{
	struct text *text = text_of_this_cpu();
	u32 bytes = payload_of(in);

	if (!text || !s || from > bytes)
		return;
	struct response *body = &text->body;
	struct body_walk walk = { .skb = skb, .body = body, .at = payload_at(in) + from, .bytes = bytes - from };

	body->left = s->body.left;
	body->state = s->body.state;
	body->digits = s->body.digits;
	bpf_loop(BODY_STEPS, take_of_body, &walk, 0);
	if (walk.bytes && body->state != RESPONSE_COMPLETE)
		body->state = RESPONSE_UNKNOWN;
	s->head_end = s->next = bpf_ntohl(in->tcp.seq) + bytes - walk.bytes;
	if (is_inside(body))
		s->next += take_inside(body, PIECE_BYTES);
	s->body.left = body->left;
	s->body.state = body->state;
	s->body.digits = body->digits;
}

#endif
