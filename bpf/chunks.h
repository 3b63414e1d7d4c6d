/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is around the chunks of a chunked body (RFC 9112, 7.1), byte by byte, wherever packets are cut. */
#ifndef BATON_CHUNKS_H
#define BATON_CHUNKS_H

#include "kernel.h"
#include "abi.h"

enum {
	CHUNK_DIGITS = 8,   /* of a size that is less than 4 GiB; zeros may be in front of them */
	LINE_END_BYTES = 2, /* behind a chunk */
	NO_DIGIT = 16,
	PIECE_BYTES = 1 << 29,     /* so far ahead all is known to be of the body: two of them still have an order */
	CHUNKS_NOTED = 256, /* a power of two; with their data, more than a client usually has under way */
	CUTS_NOTED = 8,     /* a power of two */
};

/* What is inside of a chunk: whatever it is, and in whatever order it comes, the framing is the same. */
struct chunk_data {
	u32 begin;                 /* sequence number */
	u32 bytes;
};

/* A packet that ended among what is around chunks, so that the next one begins there. */
struct upload_cut {
	u32 seq;                   /* where it ended, and how the body was then: */
	u32 left;
	u32 state;
	u32 digits;
	u32 chunks;                /* how many were noted then */
};

/*
 * A body that a client sends and that is followed: see cs/upload.h. `state` and `left` are those at `next`, which may be
 * behind data that is still to come.
 */
struct upload {
	struct response body;
	u32 request_seq;           /* where its request begins */
	u32 next;                  /* the next byte that is not inside of a chunk; up to there, from here on, it is: */
	u32 data;
	u32 first_bytes;           /* payload of the packet of the head; how the body was behind that: */
	struct response first;
	u32 first_next;
	u32 chunks;                /* how many were noted, one after the other; the last ones are here: */
	u32 cuts;                  /* and so many of these */
	struct upload_cut cut[CUTS_NOTED];
	struct chunk_data chunk[CHUNKS_NOTED];
};

/* Whether what comes next is data, whatever it is. */
static __always_inline bool is_inside(const struct response *body)
{
	return body->state == RESPONSE_CHUNK || body->state == RESPONSE_BODY;
}

/* All of a chunk, or of the body, has come, or is known to come next. */
static __always_inline void end_inside(struct response *body)
{
	body->state = body->state == RESPONSE_CHUNK ? RESPONSE_CHUNK_SIZE : RESPONSE_COMPLETE;
}

/* What of a body's data is among the next `bytes` bytes; they are of it now. */
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
	if (r->left)
		r->left += LINE_END_BYTES;
	r->digits = 0;
}

/* A byte that is in no chunk. Global, so that it is verified by itself. */
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
	case RESPONSE_TRAILER_BEGIN:
		r->state = c == '\r' ? RESPONSE_TRAILER_END : RESPONSE_TRAILER;
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
