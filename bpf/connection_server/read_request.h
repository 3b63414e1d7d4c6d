/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads what a client's packet asks for. */
#ifndef BATON_CONNECTION_SERVER_READ_REQUEST_H
#define BATON_CONNECTION_SERVER_READ_REQUEST_H

#include "routing/client_hello.h"
#include "routing/request.h"
#include "xdp/packet.h"

static __always_inline u32 payload_begins(const struct packet *p)
{
	return sizeof(struct ethhdr) + p->frame.ip_header + p->frame.tcp_header;
}

static __always_inline bool read_request_of(struct packet *p, struct request *r)
{
	return read_request(p->ctx, payload_begins(p), p->frame.payload, r);
}

/* Returns the route of a TLS connection that begins with this packet, as find_tls_route() does. */
static __always_inline u32 read_hello_of(struct packet *p)
{
	struct text *text = text_of_this_cpu();
	u32 bytes = p->frame.payload, seen = seen_of(bytes);

	if (!text || bytes < 1 ||
	    bpf_xdp_load_bytes(p->ctx, payload_begins(p), text->at, BOUNDED(seen, 1, TEXT_BYTES - WORD)))
		return ROUTE_UNCLEAR;
	return find_tls_route(p->service->id, p->service->flags, seen);
}

#endif
