/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads chunked bodies of responses: a chunk in one step, and what is around it byte by byte. */
#ifndef BATON_DATA_SERVER_DOOR_CHUNKS_H
#define BATON_DATA_SERVER_DOOR_CHUNKS_H

#include "data_server/response/leaving.h"
#include "routing/chunks.h"

static __always_inline void take_of_chunks(struct leaving *l)
{
	struct response *r = l->response;
	u8 c;

	if (r->state == RESPONSE_CHUNK) {
		if (take_bytes(l))
			end_inside(r);
		return;
	}
	if (bpf_skb_load_bytes(l->skb, l->at, &c, sizeof(c))) {
		r->state = RESPONSE_UNKNOWN;
		return;
	}
	take_byte(r, c);
	l->at++;
	l->bytes--;
}

#endif
