/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads what a TLS client says first (ClientHello, RFC 8446, section 4.1.2), if the packet shows all of it, in one
 * record: the name of the server that it wants (RFC 6066, section 3). The agent reads all others, and where routes have
 * conditions (crates/core/src/rules/client_hello.rs).
 */
#ifndef BATON_ROUTING_CLIENT_HELLO_H
#define BATON_ROUTING_CLIENT_HELLO_H

#include "routing/request.h"
#include "routing/route.h"

enum {
	HELLO_BEGIN = 0x16,        /* content type of the record: handshake */
	HELLO_MESSAGE_AT = 5,      /* where the handshake message begins in the text, behind the record's header */
	HELLO_BODY_AT = 9,         /* where the message's body begins, behind its type and length */
	HELLO_SESSION_AT = 43,     /* where the session begins in the text, behind version and random */
	HELLO_EXTENSIONS_MAX = 64, /* at most so many extensions are looked at */
	EXTENSION_SERVER_NAME = 0,
};

/* The walk over the extensions. */
struct hello_walk {
	const struct text *text;
	u32 at;                    /* offset in the text of the next extension */
	u32 end;                   /* where the extensions end */
	u32 name;                  /* where the server's name begins; 0: there is none */
	u32 length;                /* its length */
	bool is_unclear;
};

static __always_inline u32 two_bytes_at(const struct text *text, u32 at)
{
	return *text_at(text, at) << 8 | *text_at(text, at + 1);
}

static long look_at_extension(u32 index, struct hello_walk *w)
{
	if (w->at == w->end)
		return 1;
	u32 content = w->at + 4, kind = two_bytes_at(w->text, w->at), bytes = two_bytes_at(w->text, w->at + 2);
	w->at = content + bytes;
	if (w->at > w->end) {
		w->is_unclear = true;
		return 1;
	}
	if (kind != EXTENSION_SERVER_NAME)
		return 0;
	/* A list of one name, of the type 0: a host's. */
	w->is_unclear |= w->name || bytes < 6 || two_bytes_at(w->text, content) != bytes - 2 ||
			 *text_at(w->text, content + 2) || two_bytes_at(w->text, content + 3) != bytes - 5;
	w->name = content + 5;
	w->length = bytes - 5;
	return 0;
}

/* Finds the name in the first `bytes` bytes of the text. False if they are not a whole ClientHello in one record. */
static __always_inline bool find_name(struct hello_walk *w, u32 bytes)
{
	const struct text *text = w->text;
	u32 record = two_bytes_at(text, 3), body = two_bytes_at(text, HELLO_BODY_AT - 2);

	if (bytes < HELLO_SESSION_AT || *text_at(text, 0) != HELLO_BEGIN || *text_at(text, 1) != 3 ||
	    *text_at(text, HELLO_MESSAGE_AT) != 1 || *text_at(text, HELLO_MESSAGE_AT + 1) ||
	    HELLO_MESSAGE_AT + record > bytes || body + 4 > record)
		return false;
	u32 at = HELLO_SESSION_AT, end = HELLO_BODY_AT + body;
	at += 1 + *text_at(text, at);         /* session */
	at += 2 + two_bytes_at(text, at);     /* cipher suites */
	at += 1 + *text_at(text, at);         /* compression */
	w->at = at + 2;
	w->end = w->at + two_bytes_at(text, at);
	if (w->end > end)
		return false;
	bpf_loop(HELLO_EXTENSIONS_MAX, look_at_extension, w, 0);
	return !w->is_unclear && w->at == w->end;
}

/*
 * Returns the route of a TLS connection that begins with the first `bytes` bytes of this processor's text, as
 * find_route() returns that of a request. ROUTE_UNCLEAR if they do not decide.
 */
__noinline u32 find_tls_route(u32 service, u32 flags, u32 bytes)
{
	struct text *text = text_of_this_cpu();

	if (!text)
		return ROUTE_UNCLEAR;
	struct hello_walk w = { .text = text };
	if (!find_name(&w, bytes))
		return ROUTE_UNCLEAR;
	struct route_key *key = &text->route;
	__builtin_memset(key, 0, sizeof(*key));
	key->prefix_bits = ROUTE_BITS;
	key->service = service;
	key->path[0] = '/';
	if (w.name) {
		u32 host = find_host_of_length(text, w.name, w.length);

		if (host == HOST_UNCLEAR)
			return ROUTE_UNCLEAR;
		key->host = host;
	}
	u32 *route = bpf_map_lookup_elem(&routes, key);
	if (route)
		return *route;
	return flags & SERVICE_REFUSES ? ROUTE_UNCLEAR : NO_POOL;
}

#endif
