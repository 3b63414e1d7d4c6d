/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads what a request asks for, and where it ends. It ends behind its header, which must be all in one segment, and
 * its body, whose length the header must say. A request whose end is not certain is marked as odd: if a body were
 * taken for a request, a server would answer it.
 */
#ifndef BATON_ROUTING_REQUEST_H
#define BATON_ROUTING_REQUEST_H

#include "include/bounds.h"
#include "include/flow.h"
#include "routing/chunks.h"

enum {
	TEXT_BYTES = 16384,        /* a power of two above what a segment of an MTU of 9000 holds */
	TEXT_SPARE = 128,          /* reads that begin in the text need no check of its end */
	REQUEST_MIN = 18,          /* "GET / HTTP/1.0", and two line ends */
	CONTENT_LENGTH = 14,       /* letters of that name */
	TRANSFER_ENCODING = 18,    /* letters of that name, and a colon */
	TARGET_MIN = 2,            /* a slash, and a blank */
	LINE_TAIL = 10,            /* "HTTP/1.1", and a line's end */
	LENGTH_DIGITS = 18,
	LARGE_BODY = 1 << 30,      /* bytes: 32-bit sequence numbers cannot safely count more */
	METHOD_MIN = 3,
	METHOD_MAX = 8,
	LEADING_MAX = 16,          /* line ends in front of a request that are passed over */
	TARGET_SPAN = 32,          /* a power of two above where any target begins */
	WORD = sizeof(u64),
};

/* What was read of the request in the text. Places are offsets in the text. */
struct request {
	u32 bytes;                 /* length of the text; 0: there is no text */
	u32 begin;                 /* where the method begins: behind empty lines, which servers pass over */
	u32 target;                /* where the request target begins; 0: this begins no request */
	u32 host;                  /* where the Host header's value begins; 0: there is none */
	u32 hosts;                 /* how many Host headers there are */
	u32 end;                   /* where the header's empty line ends; 0: not in this segment */
	u32 body;                  /* bytes of body that follow the header, if below LARGE_BODY */
	u32 lengths;               /* how many Content-Length headers there are */
	u32 odd;                   /* not 0: it is not certain where the next request begins */
	u32 careful;               /* not 0: its body must be followed, or the client waits for 100 Continue */
	u32 chunked;               /* not 0: its body is chunked, and says itself where it ends */
	u32 line;                  /* where its first line ends; 0: not in this segment */
	u32 old;                   /* not 0: its version of HTTP has no chunks */
	u32 loose;                 /* not 0: some lines are in an old style that servers read in different ways */
	u64 path;                  /* hash of the path as the agent has read it; 0: the agent has not read it */
	u64 large;                 /* bytes of body, if LARGE_BODY or more; else 0 */
};

/*
 * A segment's payload, copied to where it can be read at any offset, with zeros behind it. Also holds what is made of
 * the payload and is too large for the stack.
 */
struct text {
	u32 kept[4];               /* with the text behind it, a struct kept_request: see keep.h */
	u8 at[TEXT_BYTES + TEXT_SPARE];
	struct request request;
	struct host_key host;
	struct route_key route;
	struct lccp_header message; /* the message that is being made: see distributor.h */
	struct lccp_header received; /* the header of the message that has come: see receive_lccp.h */
	struct response body;      /* the body that is being read: see data_server/door/body.h */
	struct answer_key question; /* the question about the request: see data_server/door/dispatcher.h */
	/* The next function of stages.h gets this from the one before: */
	u32 tag;                   /* tag of the cookie in a packet that begins a connection */
};

MAP(texts, PERCPU_ARRAY, 1, u32, struct text);

static __always_inline struct text *text_of_this_cpu(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&texts, &zero);
}

static __always_inline const u8 *text_at(const struct text *text, u32 offset)
{
	return text->at + (__builtin_constant_p(offset) ? offset : WRAPPED(offset, TEXT_BYTES));
}

/* The request's target in the text. LEADING_MAX and METHOD_MAX keep its offset below TARGET_SPAN. */
static __always_inline const u8 *target_in(const struct text *text, u32 target)
{
	return text->at + WRAPPED(target, TARGET_SPAN);
}

static __always_inline u64 text_word(const struct text *text, u32 offset)
{
	return *(const u64 *)text_at(text, offset);
}

/* Eight letters, as they are in memory on a little-endian machine. */
#define LETTERS(a, b, c, d, e, f, g, h)                                                                \
	((u64)(a) | (u64)(b) << 8 | (u64)(c) << 16 | (u64)(d) << 24 | (u64)(e) << 32 | (u64)(f) << 40 |    \
	 (u64)(g) << 48 | (u64)(h) << 56)
#define EVERY_BYTE(b) LETTERS(b, b, b, b, b, b, b, b)
#define FIRST(n) (~0ULL >> (64 - 8 * (n)))  /* mask of a word's first n bytes */

/* Sets the highest bit of each byte that is zero. Bits of bytes behind the first zero may be set wrongly. */
static __always_inline u64 zero_bytes(u64 word)
{
	return (word - EVERY_BYTE(1)) & ~word & EVERY_BYTE(0x80);
}

/*
 * The bytes of the word before its first end; all of them if it has none. `ends` marks ends as zero_bytes() does. The
 * bytes before the end are all bits below the first one that is set.
 */
static __always_inline u64 before_end(u64 word, u64 ends)
{
	return ends ? word & (ends ^ (ends - 1)) >> 8 : word;
}

/* Marks where a path ends, at a blank or at its query, as zero_bytes() marks bytes. */
static __always_inline u64 path_ends(u64 word)
{
	return zero_bytes(word ^ EVERY_BYTE(' ')) | zero_bytes(word ^ EVERY_BYTE('?'));
}

/* The state of the walk over a header. */
struct header_walk {
	const struct text *text;
	struct request *request;
	u32 last;                  /* offset of the last byte that is here; what follows it is not known */
};

/*
 * Reads the version in the request line, which ends before `offset`. The request is loose unless the line ends with a
 * blank, a version that is HTTP/1, and a line's end.
 */
static __always_inline void read_version(const struct text *text, struct request *r, u32 offset)
{
	u64 version = text_word(text, offset - LINE_TAIL);
	u8 minor = (version >> 56) - '0';

	if (offset < r->target + TARGET_MIN + LINE_TAIL || *text_at(text, offset - LINE_TAIL - 1) != ' ' ||
	    (version & FIRST(7)) != LETTERS('H', 'T', 'T', 'P', '/', '1', '.', 0) || minor > 9)
		r->loose = 1;
	r->line = offset;
	r->old = !minor;
}

/*
 * Reads the value of Content-Length. Behind the name, at `offset`, there must be a colon, perhaps a blank, and digits.
 */
static __always_inline void read_length(const struct text *text, struct request *r, u32 offset)
{
	u64 body = 0;
	u32 digits = 0;

	if (*text_at(text, offset) != ':')
		r->odd = 1;
	offset++;
	if (*text_at(text, offset) == ' ')
		offset++;
	for (; digits < LENGTH_DIGITS; digits++) {
		u8 digit = *text_at(text, offset + digits) - '0';
		if (digit > 9)
			break;
		body = body * 10 + digit;
	}
	/* More digits, several lengths or other characters: such a request is odd, and the server judges it. */
	r->odd |= !digits || (u16)text_word(text, offset + digits) != 0x0a0d || r->lengths;
	r->lengths++;
	r->body = body < LARGE_BODY ? body : 0;
	r->large = body < LARGE_BODY ? 0 : body;
}

/* Reads the line of Transfer-Encoding at `offset`. Only "chunked", once, is understood; anything else is odd. */
static __always_inline void read_transfer(const struct text *text, struct request *r, u32 offset)
{
	u64 rest = text_word(text, offset + WORD) | EVERY_BYTE(0x20);
	u32 at = offset + TRANSFER_ENCODING;

	if (*text_at(text, at) == ' ')
		at++;
	u64 coding = text_word(text, at) | (EVERY_BYTE(0x20) & FIRST(7));
	/* The bit that makes letters lower case turns a bare CR into a hyphen, so the hyphen is compared without it. */
	bool is_exact = *text_at(text, offset + WORD) == '-' && *text_at(text, at + WORD) == '\n';
	r->odd |= r->chunked || !is_exact || rest != LETTERS('-', 'e', 'n', 'c', 'o', 'd', 'i', 'n') ||
		  (*text_at(text, offset + TRANSFER_ENCODING - 2) | 0x20) != 'g' ||
		  *text_at(text, offset + TRANSFER_ENCODING - 1) != ':' ||
		  coding != LETTERS('c', 'h', 'u', 'n', 'k', 'e', 'd', '\r');
	r->chunked = 1;
}

/*
 * Reads the header line, or the empty line, that begins at `offset`. The function is global, so that the verifier
 * checks it by itself.
 */
__noinline int read_line(const struct text *text, struct request *r, u32 offset)
{
	if (!text || !r)
		return 0;
	u64 word = text_word(text, offset);
	u64 small = word | EVERY_BYTE(0x20);

	/* Some servers end a line at a line feed alone. */
	r->odd |= *text_at(text, offset - 2) != '\r';
	if (!r->line)
		read_version(text, r, offset);
	switch ((u8)word) {
	case '\r':
		/* Its line feed may come in another packet. */
		if (!(u8)(word >> 8))
			return 0;
		r->end = offset + 2;
		r->odd |= (u16)word != 0x0a0d;
		return 0;
	case '\n':
	case ' ':
	case '\t':
		r->odd = 1;
		r->loose = 1;
		/* A bare line feed is an empty line all the same: what is behind it is no header. */
		if ((u8)word == '\n')
			r->end = offset + 1;
		return 0;
	}
	if ((small & FIRST(5)) == LETTERS('h', 'o', 's', 't', ':', 0, 0, 0)) {
		/* Two Host headers are an error, which the server has to report. */
		r->odd |= r->hosts++ != 0 || (u8)(word >> 32) != ':';
		r->host = offset + 5;
	} else if (small == LETTERS('c', 'o', 'n', 't', 'e', 'n', 't', '-')) {
		u64 rest = text_word(text, offset + WORD) | EVERY_BYTE(0x20);
		/* The bit that makes letters lower case may have turned another character into the hyphen. */
		r->odd |= word >> 56 != '-';
		if ((rest & FIRST(6)) == LETTERS('l', 'e', 'n', 'g', 't', 'h', 0, 0))
			read_length(text, r, offset + CONTENT_LENGTH);
	} else {
		/* What the client acknowledges after Expect may be 100 Continue, and not the response. */
		r->careful |= (small & FIRST(7)) == LETTERS('e', 'x', 'p', 'e', 'c', 't', ':', 0);
		if (small == LETTERS('t', 'r', 'a', 'n', 's', 'f', 'e', 'r'))
			read_transfer(text, r, offset);
		r->odd |= small == LETTERS('u', 'p', 'g', 'r', 'a', 'd', 'e', ':');
	}
	return 0;
}

/*
 * Sets the highest bit of each byte that is less than `least`, which is at most 0x80. Bits of bytes behind the first
 * such byte may be set wrongly.
 */
static __always_inline u64 low_bytes(u64 word, u8 least)
{
	return (word - EVERY_BYTE((u64)least)) & ~word & EVERY_BYTE(0x80);
}

/*
 * Reads the lines that begin behind the line ends of one word; 1 ends the walk. Servers read a CR or a NUL inside a
 * head in different ways, and also a blank before a colon. That blank is searched for in values as well, where it is
 * rare.
 */
static long read_word(u32 index, struct header_walk *w)
{
	struct request *r = w->request;
	u32 at = index * WORD;
	u64 word = text_word(w->text, at), next = text_word(w->text, at + 1);
	u64 stray = low_bytes(word, ' ' + 1) & zero_bytes(next ^ EVERY_BYTE(':'));

	if (!(low_bytes(word, '\r' + 1) | stray))
		return 0;
	for (u32 i = 0; i < WORD; i++)
		if ((u8)(word >> 8 * i) == '\n' && !r->end && at + i > r->target)
			read_line(w->text, r, at + i + 1);
	stray |= zero_bytes(word) | (zero_bytes(word ^ EVERY_BYTE('\r')) & ~zero_bytes(next ^ EVERY_BYTE('\n')));
	u32 end = r->end ? r->end : w->last;
	if (end < at + WORD)
		stray = end > at ? stray & FIRST(end - at) : 0;
	r->odd |= stray != 0;
	return r->end != 0;
}

/* Where the request begins: behind leading line ends, of which there are seldom any. */
static __always_inline u32 find_begin(const struct text *text)
{
	u32 begin = 0;

	for (; begin < LEADING_MAX; begin++) {
		u8 c = *text_at(text, begin);
		if (c != '\r' && c != '\n')
			break;
	}
	return begin;
}

/* Where the request target begins: behind a method of three to eight capitals; 0: this is no request. */
static __always_inline u32 find_target(const struct text *text, u32 begin)
{
	u32 length = 0;

	for (; length < METHOD_MAX; length++) {
		u8 c = *text_at(text, begin + length);
		if (c < 'A' || c > 'Z')
			break;
	}
	return length >= METHOD_MIN && *text_at(text, begin + length) == ' ' ? begin + length + 1 : 0;
}

/* Whether requests of this method have no body. */
static __always_inline bool is_bodyless(const struct text *text, u32 begin)
{
	u64 word = text_word(text, begin);

	return (word & FIRST(4)) == LETTERS('G', 'E', 'T', ' ', 0, 0, 0, 0) ||
	       (word & FIRST(5)) == LETTERS('H', 'E', 'A', 'D', ' ', 0, 0, 0) ||
	       word == LETTERS('O', 'P', 'T', 'I', 'O', 'N', 'S', ' ');
}

/*
 * Reads the request in this processor's text, which has the first `seen` bytes of a payload of `bytes` bytes. False if
 * it is not certain that a request begins there and where the next one begins; `r` then has what could be read. The
 * function is global, so that the verifier checks it by itself.
 */
__noinline int read_text(u32 bytes, u32 seen, struct request *r)
{
	struct text *text = text_of_this_cpu();

	if (!r || !text)
		return false;
	__builtin_memset(r, 0, sizeof(*r));
	__builtin_memset(text->at + WRAPPED(seen, TEXT_BYTES), 0, TEXT_SPARE);
	r->bytes = bytes;
	r->begin = find_begin(text);
	r->target = find_target(text, r->begin);
	if (!r->target || bytes < REQUEST_MIN)
		return false;
	struct header_walk walk = { .text = text, .request = r, .last = seen - 1 };
	bpf_loop(seen / WORD + 1, read_word, &walk, 0);
	/*
	 * Other methods may have a body. Without a length there is none (RFC 9112, 6.3), but not all servers follow
	 * that.
	 */
	r->careful |= r->chunked || r->large || (!r->lengths && !is_bodyless(text, r->begin));
	/*
	 * With chunks and a length, servers may disagree on which one counts (RFC 9112, 6.3). HTTP/1.0 has no chunks
	 * (6.1).
	 */
	r->odd |= r->chunked && (r->lengths || r->old);
	/* Bytes behind the body are a second request. */
	return r->end && !r->odd && (r->chunked || r->large || r->end + r->body >= bytes);
}

/* How many bytes of a payload are read. The beginning of a payload that is longer than the text says where it goes. */
static __always_inline u32 seen_of(u32 bytes)
{
	return bytes > TEXT_BYTES - WORD ? TEXT_BYTES - WORD : bytes;
}

/*
 * Copies a payload of `bytes` bytes, which the frame has from `at` on, to this processor's text, and reads it as
 * read_text() does. False also if the payload is longer than the text.
 */
__noinline int read_request(struct xdp_md *ctx, u32 at, u32 bytes, struct request *r)
{
	struct text *text = text_of_this_cpu();
	u32 seen = seen_of(bytes);

	if (!r || !text)
		return false;
	if (bytes < 1 || bpf_xdp_load_bytes(ctx, at, text->at, BOUNDED(seen, 1, TEXT_BYTES - WORD))) {
		__builtin_memset(r, 0, sizeof(*r));
		return false;
	}
	int is_whole = read_text(bytes, seen, r);
	r->odd |= bytes != seen;
	return is_whole && bytes == seen;
}

/* Whether all of the request is in its segment, and it is safe to ask it twice. */
static __always_inline bool may_move(const struct request *r)
{
	return r->end == r->bytes && !r->body && !r->lengths && !r->odd && !r->careful;
}

/* This processor's struct request, set to zeros, for a packet's request to be read into; 0 if there is none. */
static __always_inline struct request *blank_request(void)
{
	struct text *text = text_of_this_cpu();

	if (!text)
		return 0;
	__builtin_memset(&text->request, 0, sizeof(text->request));
	return &text->request;
}

#endif
