/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads what a client's packet asks for. */
#ifndef BATON_CONNECTION_SERVER_READ_REQUEST_H
#define BATON_CONNECTION_SERVER_READ_REQUEST_H

#include "routing/request.h"
#include "xdp/packet.h"

static __always_inline bool read_request_of(struct packet *p, struct request *r)
{
	u32 at = sizeof(struct ethhdr) + p->frame.ip_header + p->frame.tcp_header;

	return read_request(p->ctx, at, p->frame.payload, r);
}

#endif
