/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a request asks for, and where it ends: behind its header, which must be all in one segment, and its body, whose length it
 * must say. What is not sure is said to be odd: a body that is taken for a request would be answered.
 */
#ifndef BATON_ROUTING_REQUEST_H
#define BATON_ROUTING_REQUEST_H

#include "include/bounds.h"
#include "include/flow.h"
#include "routing/chunks.h"

enum {
	TEXT_BYTES = 16384,        /* a power of two above what a segment of an MTU of 9000 holds */
	TEXT_SPARE = 128,          /* so that what begins in the text can be read without a look at its end */
	REQUEST_MIN = 18,          /* "GET / HTTP/1.0", and two line ends */
	CONTENT_LENGTH = 14,       /* letters of that name */
	TRANSFER_ENCODING = 18,    /* letters of that name, and a colon */
	TARGET_MIN = 2,            /* a slash, and a blank */
	LINE_TAIL = 10,            /* "HTTP/1.1", and a line's end */
	LENGTH_DIGITS = 18,
	LARGE_BODY = 1 << 30,      /* bytes: sequence numbers, of 32 bits, do not tell well of more */
	METHOD_MIN = 3,
	METHOD_MAX = 8,
	LEADING_MAX = 16,          /* line ends in front of a request that are passed over */
	TARGET_SPAN = 32,          /* a power of two above where any target begins */
	WORD = sizeof(u64),
};

/* What the text says; offsets in it. */
struct request {
	u32 bytes;                 /* of the text; 0: there is none */
	u32 begin;                 /* where the method does: behind empty lines, which servers pass over */
	u32 target;                /* where the request target begins; 0: this begins no request */
	u32 host;                  /* where the Host header's value begins; 0: there is none */
	u32 hosts;                 /* how many there are */
	u32 end;                   /* where the header's empty line ends; 0: not in this segment */
	u32 body;                  /* bytes of body that follow the header, */
	u32 lengths;               /* how often it said so */
	u32 odd;                   /* it is not sure where the next request begins */
	u32 careful;               /* it has a body that must be followed, or waits for leave to send that */
	u32 chunked;               /* its body says where it ends as it goes on */
	u32 line;                  /* where its first line ends; 0: not in this segment */
	u32 old;                   /* its version of HTTP has no chunks */
	u32 loose;                 /* it has lines in an old style, which servers read in different ways */
	u64 path;                  /* hash of the path as the agent has read it; 0: it has not */
	u64 large;                 /* or so many, which are LARGE_BODY at least */
};

/*
 * A segment's payload, copied to where it can be read at any offset, and zeros behind it; and what is made
 * of it, which is too large for the stack.
 */
struct text {
	u32 kept[4];               /* with the text behind it, a struct kept_request: see keep.h */
	u8 at[TEXT_BYTES + TEXT_SPARE];
	struct request request;
	struct host_key host;
	struct route_key route;
	struct lccp_header message; /* that is being made: see distributor.h */
	struct lccp_header received; /* that has come: see receive_lccp.h */
	struct response body;      /* that is being read: see data_server/door/body.h */
	struct answer_key question; /* that is asked about the request: see data_server/door/dispatcher.h */
	/* For the next function of stages.h: */
	u32 tag;                   /* of the cookie in a packet that begins a connection */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct text);
} texts SEC(".maps");

static __always_inline struct text *text_of_this_cpu(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&texts, &zero);
}

static __always_inline const u8 *text_at(const struct text *text, u32 offset)
{
	return text->at + (__builtin_constant_p(offset) ? offset : WRAPPED(offset, TEXT_BYTES));
}

/* Where the request's target is in the text: behind so many line ends and letters of a method at most. */
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
#define FIRST(n) (~0ULL >> (64 - 8 * (n)))  /* of a word's bytes */

/* The highest bit of each byte that is zero, and maybe of some behind the first of them. */
static __always_inline u64 zero_bytes(u64 word)
{
	return (word - EVERY_BYTE(1)) & ~word & EVERY_BYTE(0x80);
}

/* Of a word with an end in it, as zero_bytes() tells, the bytes before that: all bits below the first that is set. */
static __always_inline u64 before_end(u64 word, u64 ends)
{
	return ends ? word & (ends ^ (ends - 1)) >> 8 : word;
}

/* Where a path ends: at a blank, or at its query. */
static __always_inline u64 path_ends(u64 word)
{
	return zero_bytes(word ^ EVERY_BYTE(' ')) | zero_bytes(word ^ EVERY_BYTE('?'));
}

/* The walk over a header. */
struct header_walk {
	const struct text *text;
	struct request *request;
	u32 last;                  /* offset of the last byte that is here, of which nobody knows what follows */
};

/* The request line ends before `offset`: with a blank, a version that is HTTP/1, and a line's end. */
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

/* The value of Content-Length, behind the name at `offset`: a colon, perhaps a blank, and digits. */
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
	/* More digits, or several lengths, or other signs: the server's to judge. */
	r->odd |= !digits || (u16)text_word(text, offset + digits) != 0x0a0d || r->lengths;
	r->lengths++;
	r->body = body < LARGE_BODY ? body : 0;
	r->large = body < LARGE_BODY ? 0 : body;
}

/* The line of Transfer-Encoding at `offset`: "chunked", once, is understood and nothing else. */
static __always_inline void read_transfer(const struct text *text, struct request *r, u32 offset)
{
	u64 rest = text_word(text, offset + WORD) | EVERY_BYTE(0x20);
	u32 at = offset + TRANSFER_ENCODING;

	if (*text_at(text, at) == ' ')
		at++;
	u64 coding = text_word(text, at) | (EVERY_BYTE(0x20) & FIRST(7));
	/* A bare CR becomes a hyphen with the bit that makes letters small. */
	bool is_exact = *text_at(text, offset + WORD) == '-' && *text_at(text, at + WORD) == '\n';
	r->odd |= r->chunked || !is_exact || rest != LETTERS('-', 'e', 'n', 'c', 'o', 'd', 'i', 'n') ||
		  (*text_at(text, offset + TRANSFER_ENCODING - 2) | 0x20) != 'g' ||
		  *text_at(text, offset + TRANSFER_ENCODING - 1) != ':' ||
		  coding != LETTERS('c', 'h', 'u', 'n', 'k', 'e', 'd', '\r');
	r->chunked = 1;
}

/* A header line, or the empty one, begins at `offset`. Global, so that it is verified by itself. */
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
		/* An empty one all the same: what is behind it is no header. */
		if ((u8)word == '\n')
			r->end = offset + 1;
		return 0;
	}
	if ((small & FIRST(5)) == LETTERS('h', 'o', 's', 't', ':', 0, 0, 0)) {
		/* Two of them are an error, for the server to tell. */
		r->odd |= r->hosts++ != 0 || (u8)(word >> 32) != ':';
		r->host = offset + 5;
	} else if (small == LETTERS('c', 'o', 'n', 't', 'e', 'n', 't', '-')) {
		u64 rest = text_word(text, offset + WORD) | EVERY_BYTE(0x20);
		/* What is no letter may have been another sign. */
		r->odd |= word >> 56 != '-';
		if ((rest & FIRST(6)) == LETTERS('l', 'e', 'n', 'g', 't', 'h', 0, 0))
			read_length(text, r, offset + CONTENT_LENGTH);
	} else {
		/* After 100 Continue the client has acknowledged something, but not the response. */
		r->careful |= (small & FIRST(7)) == LETTERS('e', 'x', 'p', 'e', 'c', 't', ':', 0);
		if (small == LETTERS('t', 'r', 'a', 'n', 's', 'f', 'e', 'r'))
			read_transfer(text, r, offset);
		r->odd |= small == LETTERS('u', 'p', 'g', 'r', 'a', 'd', 'e', ':');
	}
	return 0;
}

/* The highest bit of each byte that is less than `least`, at most 0x80, and maybe of some behind the first of them. */
static __always_inline u64 low_bytes(u64 word, u8 least)
{
	return (word - EVERY_BYTE((u64)least)) & ~word & EVERY_BYTE(0x80);
}

/*
 * The lines that begin behind the line ends of one word; 1 ends the walk. A CR or a NUL in a head servers read in different ways,
 * and so a blank before a colon, which is searched for in values as well: there it is rare.
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

/* Where the request begins: behind line ends, of which there are seldom any. */
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
 * Reads the first `seen` bytes of `bytes` of payload, which are in this processor's text. False if that does not surely
 * begin a request and say where the next one begins; `r` then says what could be made out. Global, so that it is verified
 * by itself.
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
	/* Other methods have a body. Without a length there is none (RFC 9112, 6.3), which not all servers heed. */
	r->careful |= r->chunked || r->large || (!r->lengths && !is_bodyless(text, r->begin));
	/* Both, and servers may disagree about which one counts (RFC 9112, 6.3); or they may know no chunks (6.1). */
	r->odd |= r->chunked && (r->lengths || r->old);
	/* What is behind is a second request. */
	return r->end && !r->odd && (r->chunked || r->large || r->end + r->body >= bytes);
}

/* Of a longer payload, the beginning says where it goes. */
static __always_inline u32 seen_of(u32 bytes)
{
	return bytes > TEXT_BYTES - WORD ? TEXT_BYTES - WORD : bytes;
}

/* The same of what the frame has from `at` on, so many bytes of payload. */
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

/* Whether all of it is in its segment, and safe to be asked twice. */
static __always_inline bool may_move(const struct request *r)
{
	return r->end == r->bytes && !r->body && !r->lengths && !r->odd && !r->careful;
}

/* Where the request of a packet is read to: nothing yet. */
static __always_inline struct request *blank_request(void)
{
	struct text *text = text_of_this_cpu();

	if (!text)
		return 0;
	__builtin_memset(&text->request, 0, sizeof(text->request));
	return &text->request;
}

#endif
