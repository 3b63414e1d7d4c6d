/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads the head of a response that is not whole in one packet, or is spelled otherwise than most. It is read byte by
 * byte, wherever packets are cut, in any form that RFC 9112 (sections 4, 5 and 6) lets servers write. What the RFC
 * forbids them to write (folded lines, a blank in front of a colon, two lengths) clients may read in different ways:
 * nobody can say where such a response ends.
 */
#ifndef BATON_DATA_SERVER_RESPONSE_RESPONSE_LINE_H
#define BATON_DATA_SERVER_RESPONSE_RESPONSE_LINE_H

#include "data_server/packet.h"

/* Where in a line of a head its next byte is. */
enum line_part {
	LINE_STATUS = 0,        /* in "HTTP/1.1 200 ": `matched` bytes of that have come */
	LINE_BEGIN,             /* a line begins, or the empty one */
	LINE_NAME_LENGTH,       /* in the name Content-Length: `matched` bytes of that have come */
	LINE_NAME_CODING,       /* in the name Transfer-Encoding, in the same way */
	LINE_NAME_CONNECTION,   /* in the name Connection, in the same way */
	LINE_LENGTH,            /* in front of a length, or in its digits: `matched` says whether there were any */
	LINE_LENGTH_END,        /* behind the digits of a length */
	LINE_CODING,            /* in codings: `matched` bytes of "chunked", or CODING_CHUNKED_END or CODING_OTHER */
	LINE_OPTIONS,           /* in options of the connection: `matched` bytes of "close", or OPTION_OTHER */
	LINE_REST,              /* in what says nothing of the length */
	LINE_EMPTY,             /* in the empty line */
};

/* What `matched` is in a list of codings. */
enum {
	CODING_CHUNKED = 7,     /* all bytes of "chunked" have come */
	CODING_CHUNKED_END,     /* "chunked" and blanks behind it have come */
	CODING_OTHER,
};

enum {
	OPTION_CLOSE = 5,       /* all bytes of "close" have come */
	OPTION_OTHER,
};

/* What the lines of a head have said of the body, and of the connection. */
enum head_said {
	SAID_LENGTH = 1,
	SAID_CHUNKED = 2,       /* the last coding is "chunked" */
	SAID_CODED = 4,         /* another coding: unless "chunked" is the last, the body ends with the connection */
	SAID_CLOSE = 8,         /* the connection ends with the response */
};

enum {
	VERSION_BYTES = 7,      /* "HTTP/1." */
	VERSION_END = 8,        /* the blank behind the digit */
	STATUS_DIGITS_END = 12,
	LENGTH_NAME_BYTES = 14,
	CODING_NAME_BYTES = 17,
	CONNECTION_NAME_BYTES = 10,
	SAME_NAME_BYTES = 3,    /* length of the beginning that Content-Length and Connection share */
	LENGTH_BITS = 56,       /* a length of so many bits can have one more digit */
};

static const char version_text[VERSION_BYTES] = "HTTP/1.";
static const char length_name[LENGTH_NAME_BYTES] = "content-length";
static const char coding_name[CODING_NAME_BYTES] = "transfer-encoding";
static const char connection_name[CONNECTION_NAME_BYTES] = "connection";
static const char close_text[OPTION_CLOSE] = "close";
static const char chunked_text[CODING_CHUNKED] = "chunked";

static __always_inline bool is_blank(u8 c)
{
	return c == ' ' || c == '\t';
}

static __always_inline bool is_digit(u8 c)
{
	return c >= '0' && c <= '9';
}

/* Whether `c` is the expected letter, in either case, or the expected hyphen. */
static __always_inline bool is_same_letter(u8 c, char expected)
{
	return expected == '-' ? c == '-' : (c | 0x20) == expected;
}

/* Passes this byte of a line that says nothing more, up to where the next line begins. */
static __always_inline void pass_line(struct response *r, u8 c)
{
	r->line = c == '\n' ? LINE_BEGIN : LINE_REST;
}

static __always_inline void take_status(struct response *r, u8 c)
{
	u32 at = r->matched;
	bool fits;

	if (at < VERSION_BYTES)
		fits = c == (u8)version_text[at];
	else if (at == VERSION_END)
		fits = c == ' ';
	else
		fits = is_digit(c);
	if (!fits) {
		r->state = RESPONSE_UNKNOWN;
		/* A response without a head ends with the connection (RFC 1945, 6). */
		r->closes |= at < VERSION_BYTES && r->asked != r->answered;
		return;
	}
	if (at > VERSION_END)
		r->status = r->status * 10 + (c - '0');
	r->matched = at + 1;
	if (r->matched == STATUS_DIGITS_END)
		r->line = LINE_REST;
}

static __always_inline void begin_line(struct response *r, u8 c)
{
	r->matched = 1;
	if (c == '\r')
		r->line = LINE_EMPTY;
	else if (c == '\n' || is_blank(c))
		r->state = RESPONSE_UNKNOWN;
	else if (is_same_letter(c, length_name[0]))
		r->line = LINE_NAME_LENGTH;
	else if (is_same_letter(c, coding_name[0]))
		r->line = LINE_NAME_CODING;
	else
		r->line = LINE_REST;
}

/*
 * Takes a byte of a name that is looked for, or the byte behind that name. `expected` is the byte of the name that
 * should come next; 0: all of them have come. `behind` is the part of the line that the colon begins.
 */
static __always_inline void take_name(struct response *r, u8 c, char expected, enum line_part behind)
{
	if (expected) {
		if (is_same_letter(c, expected))
			r->matched++;
		else
			pass_line(r, c);
		return;
	}
	r->matched = 0;
	if (c == ':' && !(behind == LINE_LENGTH && r->said & SAID_LENGTH))
		r->line = behind;
	else if (c == ':' || is_blank(c))
		r->state = RESPONSE_UNKNOWN;
	else
		pass_line(r, c);
}

static __always_inline void take_length(struct response *r, u8 c)
{
	if (is_digit(c) && r->line == LINE_LENGTH && !(r->left >> LENGTH_BITS)) {
		r->left = r->left * 10 + (c - '0');
		r->matched = 1;
	} else if (is_blank(c) && !r->matched) {
		return;
	} else if ((is_blank(c) || c == '\r') && r->matched) {
		r->line = LINE_LENGTH_END;
	} else if (c == '\n' && r->matched) {
		r->said |= SAID_LENGTH;
		r->line = LINE_BEGIN;
	} else {
		r->state = RESPONSE_UNKNOWN;
	}
}

static __always_inline bool is_chunked(const struct response *r)
{
	return r->matched == CODING_CHUNKED || r->matched == CODING_CHUNKED_END;
}

/*
 * Takes a byte of a list of codings. If the last of all codings is "chunked", it says where the body ends; "chunked"
 * may be in no other place.
 */
static __always_inline void take_coding(struct response *r, u8 c)
{
	u32 at = r->matched;

	if (c == '\n') {
		r->line = LINE_BEGIN;
		if (r->matched)
			r->said |= is_chunked(r) ? SAID_CHUNKED : SAID_CODED;
	} else if (c == ',') {
		if (is_chunked(r))
			r->state = RESPONSE_UNKNOWN;
		if (r->matched)
			r->said |= SAID_CODED;
		r->matched = 0;
	} else if (is_blank(c) || c == '\r') {
		if (at == CODING_CHUNKED)
			r->matched = CODING_CHUNKED_END;
		else if (at && at < CODING_CHUNKED)
			r->matched = CODING_OTHER;
	} else if (r->said & SAID_CHUNKED) {
		r->state = RESPONSE_UNKNOWN;
	} else {
		r->matched = at < CODING_CHUNKED && is_same_letter(c, chunked_text[at]) ? at + 1 : CODING_OTHER;
	}
}

/* Takes a byte of a list of options of the connection, and notes whether one of them is "close" (RFC 9112, 9.6). */
static __always_inline void take_option(struct response *r, u8 c)
{
	u32 at = r->matched;

	if (c == ',' || c == '\n') {
		if (at == OPTION_CLOSE)
			r->said |= SAID_CLOSE;
		r->matched = 0;
		if (c == '\n')
			r->line = LINE_BEGIN;
	} else if (is_blank(c) || c == '\r') {
		if (at && at < OPTION_CLOSE)
			r->matched = OPTION_OTHER;
	} else {
		r->matched = at < OPTION_CLOSE && is_same_letter(c, close_text[at]) ? at + 1 : OPTION_OTHER;
	}
}

/*
 * Takes the next byte of a head. True if it was the last one. The function is global, so that it is verified by itself.
 */
__noinline int take_head_byte(struct response *r, u8 c)
{
	if (!r)
		return 0;
	u32 at = r->matched;

	switch (r->line) {
	case LINE_STATUS:
		take_status(r, c);
		break;
	case LINE_BEGIN:
		begin_line(r, c);
		break;
	case LINE_NAME_LENGTH:
		if (at == SAME_NAME_BYTES && is_same_letter(c, connection_name[SAME_NAME_BYTES])) {
			r->line = LINE_NAME_CONNECTION;
			r->matched++;
			break;
		}
		take_name(r, c, at < LENGTH_NAME_BYTES ? length_name[at] : 0, LINE_LENGTH);
		break;
	case LINE_NAME_CODING:
		take_name(r, c, at < CODING_NAME_BYTES ? coding_name[at] : 0, LINE_CODING);
		break;
	case LINE_NAME_CONNECTION:
		take_name(r, c, at < CONNECTION_NAME_BYTES ? connection_name[at] : 0, LINE_OPTIONS);
		break;
	case LINE_LENGTH:
	case LINE_LENGTH_END:
		take_length(r, c);
		break;
	case LINE_CODING:
		take_coding(r, c);
		break;
	case LINE_OPTIONS:
		take_option(r, c);
		break;
	case LINE_EMPTY:
		if (c == '\n')
			return 1;
		r->state = RESPONSE_UNKNOWN;
		break;
	default:
		pass_line(r, c);
	}
	return 0;
}

#endif
