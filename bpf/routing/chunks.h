/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Follows a chunked body (RFC 9112, 7.1): reads what is around the chunks byte by byte, so packets may be cut
 * anywhere.
 */
#ifndef BATON_ROUTING_CHUNKS_H
#define BATON_ROUTING_CHUNKS_H

#include "abi/abi.h"
#include "include/kernel.h"

enum {
	CHUNK_DIGITS = 8,   /* digits of a size below 4 GiB; zeros may be in front of them */
	NO_DIGIT = 16,
	/*
	 * How many bytes ahead are known to be of a body at most. Sequence numbers twice as far apart still have an
	 * order.
	 */
	PIECE_BYTES = 1 << 29,
};

/* Whether the next byte is data of the body, whatever its value. */
static __always_inline bool is_inside(const struct response *body)
{
	return body->state == RESPONSE_CHUNK || body->state == RESPONSE_BODY;
}

/* Changes the state once all data of a chunk, or of the body, has come or is known to come next. */
static __always_inline void end_inside(struct response *body)
{
	body->state = body->state == RESPONSE_CHUNK ? RESPONSE_CHUNK_END : RESPONSE_COMPLETE;
}

/* Takes the body's data that is among the next `bytes` bytes, and returns how many bytes that is. */
static __always_inline u32 take_inside(struct response *body, u32 bytes)
{
	u32 here = body->left < bytes ? body->left : bytes;

	body->left -= here;
	if (!body->left)
		end_inside(body);
	return here;
}

static __always_inline u32 hex_digit(u8 c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : NO_DIGIT;
}

static __always_inline void take_size(struct response *r, u8 c)
{
	u32 digit = hex_digit(c);

	if (digit < NO_DIGIT && !(r->left >> 4 * (CHUNK_DIGITS - 1))) {
		r->left = r->left << 4 | digit;
		if (r->digits < CHUNK_DIGITS)
			r->digits++;
	} else if (r->digits && (c == '\r' || c == ';' || c == ' ' || c == '\t')) {
		r->state = RESPONSE_CHUNK_EXTENSION;
	} else {
		r->state = RESPONSE_UNKNOWN;
	}
}

static __always_inline void end_size_line(struct response *r)
{
	r->state = r->left ? RESPONSE_CHUNK : RESPONSE_TRAILER_BEGIN;
	r->digits = 0;
}

/*
 * Takes a byte of the line end behind a chunk, which must be CR LF. Some servers also accept an LF alone. They would
 * read on where this program does not, so the state becomes unknown then.
 */
static __always_inline void end_chunk(struct response *r, u8 c)
{
	if (c == '\r' && !r->digits) {
		r->digits = 1;
	} else if (c == '\n' && r->digits) {
		r->digits = 0;
		r->state = RESPONSE_CHUNK_SIZE;
	} else {
		r->state = RESPONSE_UNKNOWN;
	}
}

/*
 * The state behind the first byte of a trailer line, or of the empty line. To some servers an LF alone is the empty
 * line, so it is not followed.
 */
static __always_inline u8 begin_trailer(u8 c)
{
	if (c == '\n')
		return RESPONSE_UNKNOWN;
	return c == '\r' ? RESPONSE_TRAILER_END : RESPONSE_TRAILER;
}

/* Takes a byte that is not data of a chunk. The function is global, so that the verifier checks it by itself. */
__noinline int take_byte(struct response *r, u8 c)
{
	if (!r)
		return 0;
	switch (r->state) {
	case RESPONSE_CHUNK_SIZE:
		take_size(r, c);
		break;
	case RESPONSE_CHUNK_EXTENSION:
		if (c == '\n')
			end_size_line(r);
		break;
	case RESPONSE_CHUNK_END:
		end_chunk(r, c);
		break;
	case RESPONSE_TRAILER_BEGIN:
		r->state = begin_trailer(c);
		break;
	case RESPONSE_TRAILER:
		if (c == '\n')
			r->state = RESPONSE_TRAILER_BEGIN;
		break;
	case RESPONSE_TRAILER_END:
		r->state = c == '\n' ? RESPONSE_COMPLETE : RESPONSE_UNKNOWN;
		break;
	default:
		r->state = RESPONSE_UNKNOWN;
	}
	return 0;
}

#endif
