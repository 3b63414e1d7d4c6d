/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * If this data server dies in the middle of a response, another one is asked for the same response with the same bytes.
 * The connection server sees these bytes pass, but does not know that they are a request. So the owner keeps them,
 * where the operator has said that all data servers answer alike. Its daemon tells them to the connection servers,
 * together with how the response begins (show_head.h).
 */
#ifndef BATON_DATA_SERVER_DOOR_KEEP_REQUEST_H
#define BATON_DATA_SERVER_DOOR_KEEP_REQUEST_H

#include "connection_server/orphans/keep.h"
#include "data_server/door/judge.h"
#include "data_server/packet.h"
#include "routing/request.h"

static __always_inline bool is_get(const struct text *text)
{
	return (text_word(text, 0) & FIRST(4)) == LETTERS('G', 'E', 'T', ' ', 0, 0, 0, 0);
}

/*
 * Keeps the request of this packet, which must just have been judged: its text is still where the judgement left it.
 * Its response begins with what the client expects next, because nothing of an earlier response is under way.
 */
static __noinline void keep_request_here(struct arrival *a, const struct lccp_header *h, const struct inner *in, u16 pool)
{
	struct text *text = text_of_this_cpu();
	struct tcb_key flow = flow_of(h);

	if (!text || !may_move(&text->request) || !is_get(text))
		return;
	u32 bytes = text->request.bytes;
	if (bytes > TOLD_BYTES) {
		count(a->counters, COUNTER_DS_REQUEST_TOO_LONG);
		return;
	}
	if (keep_text(text, &flow, &in->tcp, bytes, pool))
		count(a->counters, COUNTER_DS_REQUEST_KEPT);
}

#endif
