/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads from the head of a response how long its body is. Most heads are whole in the packet that they begin with,
 * because servers write them at once, and are read there a word at a time. All others are read byte by byte:
 * response_line.h.
 */
#ifndef BATON_DATA_SERVER_RESPONSE_RESPONSE_HEAD_H
#define BATON_DATA_SERVER_RESPONSE_RESPONSE_HEAD_H

#include "data_server/response/leaving.h"
#include "data_server/response/response_line.h"
#include "data_server/response/show_head.h"
#include "include/bounds.h"
#include "include/flow.h"
#include "routing/request.h"

enum {
	FIRST_LOOK = 1024,      /* what most heads fit in */
	STATUS_AT = 9,          /* behind "HTTP/1.1 " */
	BODY_DIGITS = 18,       /* most digits of a length */
	CODING_AT = 18,         /* behind "Transfer-Encoding:" */
	CONNECTION_VALUE = 11,  /* behind "Connection:" */
	STATUS_SWITCHING = 101, /* what follows is another protocol */
	STATUS_FINAL = 200,     /* those below announce another response to the same request */
	STATUS_NO_CONTENT = 204,
	STATUS_NOT_MODIFIED = 304,
};

MAP(response_texts, PERCPU_ARRAY, 1, u32, struct text);

/* What a head says. */
struct response_head {
	u64 length;
	u32 lengths;            /* how often it said a length */
	u32 end;                /* where the empty line ends; 0: not in this packet */
	u32 chunked;
	u32 closes;             /* the connection ends with the response */
	u32 odd;                /* servers and clients may read it in different ways */
};

struct response_walk {
	const struct text *text;
	struct response_head *head;
};

/* Reads the value of Content-Length. Behind the name, at `offset`, are a colon, perhaps a blank, and digits. */
static __always_inline void read_body_length(const struct text *text, struct response_head *head, u32 offset)
{
	u64 length = 0;
	u32 digits = 0;

	if (*text_at(text, offset) != ':')
		head->odd = 1;
	offset++;
	if (*text_at(text, offset) == ' ')
		offset++;
	for (; digits < BODY_DIGITS; digits++) {
		u8 digit = *text_at(text, offset + digits) - '0';
		if (digit > 9)
			break;
		length = length * 10 + digit;
	}
	head->odd |= !digits || *text_at(text, offset + digits) != '\r' || head->lengths;
	head->lengths++;
	head->length = length;
}

/* Reads the value of Transfer-Encoding. Only "chunked" alone is understood. */
static __always_inline void read_coding(const struct text *text, struct response_head *head, u32 offset)
{
	/* Clients do not agree about a name with a blank behind it. */
	if (*text_at(text, offset - 1) != ':')
		head->odd = 1;
	if (*text_at(text, offset) == ' ')
		offset++;
	u64 coding = text_word(text, offset);

	if ((coding | (EVERY_BYTE(0x20) & FIRST(7))) != LETTERS('c', 'h', 'u', 'n', 'k', 'e', 'd', '\r') ||
	    head->chunked)
		head->odd = 1;
	head->chunked = 1;
}

/* Whether the value of Connection, behind its colon, says "close" alone or as the first of several options. */
static __always_inline bool says_close(const struct text *text, u32 offset)
{
	if (*text_at(text, offset) == ' ')
		offset++;
	u64 value = text_word(text, offset) | (EVERY_BYTE(0x20) & FIRST(5));
	u8 behind = value >> 40;

	return (value & FIRST(5)) == LETTERS('c', 'l', 'o', 's', 'e', 0, 0, 0) && (behind == '\r' || behind == ',');
}

/* Reads the line that begins at `offset`, which may be the empty one. */
static __noinline void read_response_line(const struct text *text, struct response_head *head, u32 offset)
{
	u64 word = text_word(text, offset);
	u64 small = word | EVERY_BYTE(0x20);
	u64 rest = text_word(text, offset + WORD) | EVERY_BYTE(0x20);

	switch ((u8)word) {
	case '\r':
		head->end = offset + 2;
		head->odd |= (u16)word != 0x0a0d;
		return;
	case '\n':
	case ' ':
	case '\t':
		head->odd = 1;
		return;
	}
	if (small == LETTERS('c', 'o', 'n', 't', 'e', 'n', 't', '-')) {
		if ((rest & FIRST(6)) == LETTERS('l', 'e', 'n', 'g', 't', 'h', 0, 0))
			read_body_length(text, head, offset + CONTENT_LENGTH);
	} else if (small == LETTERS('t', 'r', 'a', 'n', 's', 'f', 'e', 'r') &&
		   rest == LETTERS('-', 'e', 'n', 'c', 'o', 'd', 'i', 'n') &&
		   (*text_at(text, offset + 2 * WORD) | 0x20) == 'g') {
		read_coding(text, head, offset + CODING_AT);
	} else if (small == LETTERS('c', 'o', 'n', 'n', 'e', 'c', 't', 'i') &&
		   (rest & FIRST(2)) == LETTERS('o', 'n', 0, 0, 0, 0, 0, 0)) {
		if (*text_at(text, offset + CONNECTION_VALUE - 1) == ':')
			head->closes |= says_close(text, offset + CONNECTION_VALUE);
		else
			head->odd = 1;
	}
}

static long read_response_word(u32 index, struct response_walk *w)
{
	u64 word = text_word(w->text, index * WORD);

	if (!zero_bytes(word ^ EVERY_BYTE('\n')))
		return 0;
	for (u32 i = 0; i < WORD; i++)
		if ((u8)(word >> 8 * i) == '\n' && !w->head->end)
			read_response_line(w->text, w->head, index * WORD + i + 1);
	return w->head->end != 0;
}

/* Returns the status; 0 if it is not three digits. */
static __always_inline u32 status_in(const struct text *text)
{
	u8 a = *text_at(text, STATUS_AT) - '0', b = *text_at(text, STATUS_AT + 1) - '0',
	   c = *text_at(text, STATUS_AT + 2) - '0';

	return a > 9 || b > 9 || c > 9 ? 0 : a * 100 + b * 10 + c;
}

/*
 * Reads the head that begins at offset `at` of the frame. Returns its status, or 0 if the next `bytes` bytes are no
 * whole head, or one that is odd. The function is global, so that it is verified by itself.
 */
__noinline int read_response_head(struct __sk_buff *skb, u32 at, u32 bytes, struct response_head *head)
{
	u32 zero = 0;
	struct text *text = bpf_map_lookup_elem(&response_texts, &zero);

	if (!head || !text)
		return 0;
	__builtin_memset(head, 0, sizeof(*head));
	if (bytes < 1 || bytes > TEXT_BYTES - WORD ||
	    bpf_skb_load_bytes(skb, at, text->at, BOUNDED(bytes, 1, TEXT_BYTES - WORD)))
		return 0;
	__builtin_memset(text->at + WRAPPED(bytes, TEXT_BYTES), 0, TEXT_SPARE);
	if ((text_word(text, 0) & FIRST(7)) != LETTERS('H', 'T', 'T', 'P', '/', '1', '.', 0))
		return 0;
	struct response_walk walk = { .text = text, .head = head };
	bpf_loop(bytes / WORD + 1, read_response_word, &walk, 0);
	return head->end && head->end <= bytes && !head->odd ? status_in(text) : 0;
}

/* Returns the state of the response behind its head (enum response_state). `bodiless`: the response is to HEAD. */
static __always_inline u8 state_behind(const struct response_head *head, u32 status, bool bodiless)
{
	if (bodiless || status == STATUS_NO_CONTENT || status == STATUS_NOT_MODIFIED)
		return RESPONSE_COMPLETE;
	if (head->chunked)
		return RESPONSE_CHUNK_SIZE;
	/* Without a length, the response ends with the connection. */
	if (head->lengths != 1)
		return RESPONSE_UNKNOWN;
	return head->length ? RESPONSE_BODY : RESPONSE_COMPLETE;
}

/* Notes that a response that is no interim one has begun at `start`. */
static __always_inline void begin_response(struct response *r, u32 start)
{
	r->start = start;
	r->answered = r->asked;
	r->responses++;
}

/* Ends the head: what it said of the body counts from here on. */
static __always_inline void end_head(struct leaving *l, const struct response_head *head, u32 status)
{
	struct response *r = l->response;

	if (status < 100) {
		r->state = RESPONSE_UNKNOWN;
	} else if (status == STATUS_SWITCHING) {
		r->state = RESPONSE_TUNNEL;
		l->bytes = 0;
	} else if (status < STATUS_FINAL) {
		r->state = RESPONSE_COMPLETE;
	} else {
		r->left = head->chunked ? 0 : head->length;
		r->state = state_behind(head, status, r->bodiless);
		r->closes |= head->closes | (r->state == RESPONSE_UNKNOWN);
		r->bodiless = 0;
	}
}

/* Ends a head that was read byte by byte. */
static __always_inline void end_read_head(struct leaving *l)
{
	struct response *r = l->response;
	struct response_head head = {
		.length = r->left,
		.lengths = !(r->said & SAID_CODED) && r->said & SAID_LENGTH,
		.chunked = !!(r->said & SAID_CHUNKED),
		.closes = !!(r->said & SAID_CLOSE),
	};

	end_head(l, &head, r->status);
}

/*
 * Takes the status of a head that is read byte by byte, which has come up to what has not been read yet. The head is
 * shown to the daemon if it begins in this packet.
 */
static __always_inline void take_whole_status(struct leaving *l)
{
	struct response *r = l->response;

	if (r->status < STATUS_FINAL)
		return;
	if (l->at - l->begin >= STATUS_DIGITS_END) {
		struct leaving from_start = *l;

		from_start.at -= STATUS_DIGITS_END;
		from_start.bytes += STATUS_DIGITS_END;
		show_head(&from_start);
	}
	begin_response(r, r->head_start);
}

/* Reads more of a head that is read byte by byte; eight bytes at once where a line says nothing of the length. */
static __always_inline void take_of_head(struct leaving *l)
{
	struct response *r = l->response;
	bool in_status = r->line == LINE_STATUS;
	u64 word;
	u8 c;

	if (r->line == LINE_REST && l->bytes >= WORD && !bpf_skb_load_bytes(l->skb, l->at, &word, WORD) &&
	    !zero_bytes(word ^ EVERY_BYTE('\n'))) {
		l->at += WORD;
		l->bytes -= WORD;
		return;
	}
	if (bpf_skb_load_bytes(l->skb, l->at, &c, sizeof(c))) {
		r->state = RESPONSE_UNKNOWN;
		return;
	}
	l->at++;
	l->bytes--;
	if (take_head_byte(r, c))
		end_read_head(l);
	else if (in_status && r->line == LINE_REST)
		take_whole_status(l);
}

static __always_inline void begin_head(struct response *r, u32 start)
{
	r->state = RESPONSE_HEAD;
	r->line = LINE_STATUS;
	r->head_start = start;
	r->left = 0;
	r->matched = 0;
	r->said = 0;
	r->status = 0;
}

/* Reads the head of the next response, which begins here. */
static __noinline void take_head(struct leaving *l)
{
	struct response *r = l->response;
	u32 bytes = l->bytes, most = bytes < TEXT_BYTES - WORD ? bytes : TEXT_BYTES - WORD, status;
	struct response_head head;

	status = read_response_head(l->skb, l->at, bytes < FIRST_LOOK ? bytes : FIRST_LOOK, &head);
	if (!status && bytes > FIRST_LOOK)
		status = read_response_head(l->skb, l->at, most, &head);
	if (status < 100) {
		begin_head(r, r->next - bytes);
		return;
	}
	if (status >= STATUS_FINAL) {
		show_head(l);
		begin_response(r, r->next - bytes);
	}
	l->at += head.end;
	l->bytes -= head.end;
	end_head(l, &head, status);
}

#endif
