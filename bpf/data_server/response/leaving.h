/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A packet of a response, and how far it has been read. */
#ifndef BATON_DATA_SERVER_RESPONSE_LEAVING_H
#define BATON_DATA_SERVER_RESPONSE_LEAVING_H

#include "data_server/packet.h"

struct leaving {
	struct __sk_buff *skb;
	struct response *response; /* the responses on its connection */
	u32 begin;                 /* offset in the frame of what is new in this packet */
	u32 at;                    /* offset in the frame of what has not been read yet */
	u32 bytes;                 /* number of bytes there */
};

/* Passes over what is here of the response's next `left` bytes. True if that was all of them. */
static __always_inline bool take_bytes(struct leaving *l)
{
	struct response *r = l->response;
	u32 here = r->left < l->bytes ? r->left : l->bytes;

	l->at += here;
	l->bytes -= here;
	r->left -= here;
	return !r->left;
}

#endif
