/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bodies of requests that are followed as they pass, for services whose requests are for their pools alone (strict.h):
 *
 * - Chunked ones, whose length nobody says before. What is inside of a chunk passes in any order. What is around chunks
 *   must be read in its order: what comes before its turn is dropped, and TCP sends it again.
 * - Those whose length is told, but more than sequence numbers can tell of: piece by piece. So are the chunks that are so long.
 * - Where only the head was read, because nobody can say what is behind that, the owner is asked from there on.
 */
#ifndef BATON_CS_UPLOAD_H
#define BATON_CS_UPLOAD_H

#include "packet.h"
#include "request.h"
#include "../chunks.h"

enum {
	UPLOADS = 8192,            /* of whom nothing is heard for longest is forgotten first; its owner is asked then */
	UPLOAD_STEPS = 4096,       /* enough for a segment of 9000 bytes in chunks of 10 */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, UPLOADS);
	__type(key, struct tcb_key);
	__type(value, struct upload);
} uploads SEC(".maps");

struct upload_walk {
	struct xdp_md *ctx;
	struct upload *upload;
	u32 at;                    /* of what has not been read yet, from the start of the frame, */
	u32 bytes;                 /* and how much that is */
	u32 end;                   /* sequence number behind that */
};

static __always_inline void note_chunk(struct upload_walk *w)
{
	struct upload *upload = w->upload;
	struct chunk_data *chunk = &upload->chunk[WRAPPED(upload->chunks, CHUNKS_NOTED)];

	upload->data = w->end - w->bytes;
	chunk->begin = upload->data;
	chunk->bytes = upload->body.left - LINE_END_BYTES;
	IN_THIS_ORDER();
	upload->chunks++;
}

static long take_upload(u32 index, struct upload_walk *w)
{
	struct response *body = &w->upload->body;
	u8 c;

	if (!w->bytes || body->state == RESPONSE_COMPLETE || body->state == RESPONSE_UNKNOWN)
		return 1;
	if (is_inside(body)) {
		u32 here = take_inside(body, w->bytes);

		w->at += here;
		w->bytes -= here;
		return 0;
	}
	if (bpf_xdp_load_bytes(w->ctx, w->at, &c, sizeof(c))) {
		body->state = RESPONSE_UNKNOWN;
		return 1;
	}
	take_byte(body, c);
	w->at++;
	w->bytes--;
	if (body->state == RESPONSE_CHUNK)
		note_chunk(w);
	return 0;
}

/* Whether a packet that ends here ends among what is around chunks: the next one does not begin with a size. */
static __always_inline bool is_cut(const struct response *body)
{
	return !is_inside(body) && (body->state != RESPONSE_CHUNK_SIZE || body->digits);
}

static __always_inline void note_cut(struct upload *upload)
{
	const struct response *body = &upload->body;

	if (!is_cut(body))
		return;
	struct upload_cut *cut = &upload->cut[WRAPPED(upload->cuts, CUTS_NOTED)];

	cut->seq = upload->next;
	cut->left = body->left;
	cut->state = body->state;
	cut->digits = body->digits;
	cut->chunks = upload->chunks;
	IN_THIS_ORDER();
	upload->cuts++;
}

/*
 * So much of the data that goes on at `next` is known to do so: where that is, then. Of a body whose length is told, what
 * came since `from` and this are noted as if they were a chunk.
 */
static __always_inline u32 take_piece(struct upload *upload, u32 from, u32 next)
{
	struct response *body = &upload->body;
	u32 piece = body->left < PIECE_BYTES ? body->left : PIECE_BYTES;

	next += piece;
	if (body->state == RESPONSE_BODY) {
		struct chunk_data *chunk = &upload->chunk[WRAPPED(upload->chunks, CHUNKS_NOTED)];

		chunk->begin = from;
		chunk->bytes = next - from - LINE_END_BYTES;
		IN_THIS_ORDER();
		upload->chunks++;
	}
	body->left -= piece;
	if (!body->left)
		end_inside(body);
	return next;
}

/*
 * Reads so many bytes of the body, which are `at` so many bytes of the frame, and end with sequence number `end`. The
 * sequence number from which on nothing is known: behind `end`, if data goes on there; before, if the body ends there or
 * what follows is no body. It is for the caller to note; until then what is noted says of no new byte that it is data.
 * Global, so that it is verified by itself.
 */
__noinline u32 follow_upload(struct xdp_md *ctx, struct upload *upload, u32 at, u32 bytes, u32 end)
{
	if (!upload)
		return end;
	struct upload_walk walk = { .ctx = ctx, .upload = upload, .at = at, .bytes = bytes, .end = end };
	struct response *body = &upload->body;

	if (!is_inside(body))
		upload->data = end;
	bpf_loop(UPLOAD_STEPS, take_upload, &walk, 0);
	if (walk.bytes && body->state != RESPONSE_COMPLETE)
		body->state = RESPONSE_UNKNOWN;
	u32 next = end - walk.bytes;
	if (is_inside(body))
		return take_piece(upload, end - bytes, next);
	upload->data = next;
	return next;
}

/* How many of the bytes before `end` are behind the body, of which nothing is known from `next` on. */
static __always_inline u32 bytes_behind(u32 next, u32 end)
{
	return (int)(end - next) > 0 ? end - next : 0;
}

/* Where a body is read that may not be noted. */
static __always_inline struct upload *blank_upload(struct packet *p)
{
	struct text *text = text_of_this_cpu();

	if (!text)
		return 0;
	__builtin_memset(&text->upload, 0, offsetof(struct upload, cut));
	text->upload.body.state = RESPONSE_CHUNK_SIZE;
	text->upload.request_seq = bpf_ntohl(p->frame.tcp->seq);
	return &text->upload;
}

/* The same of a body of so many bytes; 0: a chunked one. */
static __always_inline struct upload *blank_body(struct packet *p, u64 bytes)
{
	struct upload *upload = blank_upload(p);

	if (upload && bytes) {
		upload->body.state = RESPONSE_BODY;
		upload->body.left = bytes;
	}
	return upload;
}

static __always_inline bool is_same_body(const struct response *a, const struct response *b)
{
	return a->state == b->state && a->left == b->left && a->digits == b->digits;
}

/* Whether this is what the packet of the head said the first time. */
static __always_inline bool is_as_before(struct packet *p, const struct upload *upload)
{
	const struct upload *known = bpf_map_lookup_elem(&uploads, &p->flow);

	return known && known->request_seq == upload->request_seq && known->first_bytes == p->frame.payload &&
	       known->first_next == upload->next && is_same_body(&known->first, &upload->body);
}

/* How it is behind the first packet. It is noted with the request: see keep_upload(). */
static __always_inline void set_first(struct packet *p, struct upload *upload)
{
	upload->first = upload->body;
	upload->first_bytes = p->frame.payload;
	upload->first_next = upload->next;
	note_cut(upload);
}

/*
 * The body that was read last is that of the current request, whose turn it is. Nowhere else: a copy of the first packet on
 * another processor would have the body begin once more.
 */
static __noinline void keep_upload(struct packet *p)
{
	struct text *text = text_of_this_cpu();

	if (text)
		bpf_map_update_elem(&uploads, &p->flow, &text->upload, BPF_ANY);
}

/*
 * The body of a request that has been read begins behind its head. True if it ends in this packet, goes on behind it, or
 * has another request behind it; then `r` says so.
 */
static __noinline bool begin_upload(struct packet *p, struct request *r)
{
	struct upload *upload = blank_body(p, r->large);
	u32 at = sizeof(struct ethhdr) + p->frame.ip_header + p->frame.tcp_header + r->end;
	u32 here = p->frame.payload - r->end, end, behind;

	if (!upload)
		return false;
	end = upload->request_seq + p->frame.payload;
	upload->data = upload->request_seq + r->end;
	upload->next = follow_upload(p->ctx, upload, at, here, end);
	behind = bytes_behind(upload->next, end);
	if (upload->body.state == RESPONSE_UNKNOWN)
		return false;
	r->body = here - behind;
	if (upload->body.state == RESPONSE_COMPLETE)
		return true;
	r->goes_on = 1;
	if (r->again)
		return is_as_before(p, upload);
	set_first(p, upload);
	return true;
}

/*
 * The same where the head goes on in packets that follow, and is so long. A body of so many bytes follows that; 0: a chunked
 * one. `is_endless`: or nobody can say what.
 */
static __noinline bool expect_upload(struct packet *p, u32 head, u64 bytes, bool is_endless)
{
	struct upload *upload = blank_body(p, bytes);

	if (!upload)
		return false;
	if (is_endless)
		upload->body.state = RESPONSE_UNKNOWN;
	upload->next = upload->data = upload->request_seq + head;
	if (bytes)
		upload->next = take_piece(upload, upload->data, upload->data);
	set_first(p, upload);
	return true;
}

/* The body of the current request, which begins there, if it is followed. */
static __always_inline struct upload *upload_of(struct packet *p, u32 request_seq)
{
	struct upload *known = bpf_map_lookup_elem(&uploads, &p->flow);

	return known && known->request_seq == request_seq ? known : 0;
}

/* Data goes on behind a piece. How the body is behind the next one. */
static __always_inline u32 next_piece(struct upload *upload)
{
	u32 from = upload->next, next;

	if ((int)(from - PIECE_BYTES - upload->data) > 0)
		upload->data = from - PIECE_BYTES;
	next = take_piece(upload, from, from);
	IN_THIS_ORDER();
	upload->next = next;
	return upload->body.state;
}

/*
 * More of it, in its turn: what is new begins `seen` bytes into this packet. How many bytes are behind its end goes to
 * `behind`; nothing is noted then.
 */
static __noinline u32 go_on_with_upload(struct packet *p, struct upload *upload, u32 seen, u32 *behind)
{
	u32 at = sizeof(struct ethhdr) + p->frame.ip_header + p->frame.tcp_header + seen;
	u32 end = bpf_ntohl(p->frame.tcp->seq) + p->frame.payload;
	struct response before = upload->body;
	u32 data = upload->data, chunks = upload->chunks;
	u32 next = follow_upload(p->ctx, upload, at, p->frame.payload - seen, end);
	u32 state = upload->body.state;

	*behind = bytes_behind(next, end);
	if (*behind) {
		upload->body = before;
		upload->data = data;
		upload->chunks = chunks;
	} else {
		IN_THIS_ORDER();
		upload->next = next;
		note_cut(upload);
	}
	return state;
}

#endif
