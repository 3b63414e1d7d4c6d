/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Chunked bodies of requests, whose length nobody says before: where they end is followed as they pass, for services
 * whose requests are for their pools alone (strict.h). What is inside of a chunk passes in any order. What is around chunks
 * must be read in its order: what comes before its turn is dropped, and TCP sends it again.
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
	struct chunk_data *chunk = &upload->chunk[WRAPPED(upload->chunks++, CHUNKS_NOTED)];

	upload->data = w->end - w->bytes;
	chunk->begin = upload->data;
	chunk->bytes = upload->body.left - LINE_END_BYTES;
}

static long take_upload(u32 index, struct upload_walk *w)
{
	struct response *body = &w->upload->body;
	u8 c;

	if (!w->bytes || body->state == RESPONSE_COMPLETE || body->state == RESPONSE_UNKNOWN)
		return 1;
	if (body->state == RESPONSE_CHUNK) {
		u32 here = body->left < w->bytes ? body->left : w->bytes;

		w->at += here;
		w->bytes -= here;
		body->left -= here;
		if (!body->left)
			body->state = RESPONSE_CHUNK_SIZE;
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
	return body->state != RESPONSE_CHUNK_SIZE || body->digits;
}

static __always_inline void note_cut(struct upload *upload)
{
	const struct response *body = &upload->body;

	if (!is_cut(body))
		return;
	struct upload_cut *cut = &upload->cut[WRAPPED(upload->cuts++, CUTS_NOTED)];

	cut->seq = upload->next;
	cut->left = body->left;
	cut->state = body->state;
	cut->digits = body->digits;
	cut->chunks = upload->chunks;
}

/*
 * Reads so many bytes of the body, which are `at` so many bytes of the frame, and end with sequence number `end`. How
 * many are left when it ends; 0 if it goes on, or ends with them. Global, so that it is verified by itself.
 */
__noinline u32 follow_upload(struct xdp_md *ctx, struct upload *upload, u32 at, u32 bytes, u32 end)
{
	if (!upload)
		return 0;
	struct upload_walk walk = { .ctx = ctx, .upload = upload, .at = at, .bytes = bytes, .end = end };
	struct response *body = &upload->body;

	upload->data = end;
	bpf_loop(UPLOAD_STEPS, take_upload, &walk, 0);
	if (walk.bytes && body->state != RESPONSE_COMPLETE)
		body->state = RESPONSE_UNKNOWN;
	upload->next = end - walk.bytes;
	if (body->state == RESPONSE_CHUNK) {
		upload->next += (u32)body->left;
		body->left = 0;
		body->state = RESPONSE_CHUNK_SIZE;
	} else {
		upload->data = upload->next;
	}
	return walk.bytes;
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

static __always_inline bool note_upload(struct packet *p, struct upload *upload)
{
	upload->first = upload->body;
	upload->first_bytes = p->frame.payload;
	upload->first_next = upload->next;
	note_cut(upload);
	return !bpf_map_update_elem(&uploads, &p->flow, upload, BPF_ANY);
}

/*
 * The body of a request that has been read begins behind its head. True if it ends in this packet, goes on behind it, or
 * has another request behind it; then `r` says so.
 */
static __noinline bool begin_upload(struct packet *p, struct request *r)
{
	struct upload *upload = blank_upload(p);
	u32 at = sizeof(struct ethhdr) + p->frame.ip_header + p->frame.tcp_header + r->end;
	u32 here = p->frame.payload - r->end, behind = 0;

	if (!upload)
		return false;
	upload->next = upload->data = upload->request_seq + r->end;
	if (p->frame.payload > r->end)
		behind = follow_upload(p->ctx, upload, at, here, upload->request_seq + p->frame.payload);
	if (upload->body.state == RESPONSE_UNKNOWN)
		return false;
	r->body = here - behind;
	if (upload->body.state == RESPONSE_COMPLETE)
		return true;
	r->goes_on = 1;
	return r->again ? is_as_before(p, upload) : note_upload(p, upload);
}

/* The same where the head goes on in packets that follow, and is so long. */
static __noinline bool expect_upload(struct packet *p, u32 head)
{
	struct upload *upload = blank_upload(p);

	if (!upload)
		return false;
	upload->next = upload->data = upload->request_seq + head;
	return note_upload(p, upload);
}

/* The body of the current request, which begins there, if it is followed. */
static __always_inline struct upload *upload_of(struct packet *p, u32 request_seq)
{
	struct upload *known = bpf_map_lookup_elem(&uploads, &p->flow);

	return known && known->request_seq == request_seq ? known : 0;
}

/*
 * More of it: what is new begins `seen` bytes into this packet. How many bytes are behind its end goes to `behind`;
 * nothing is noted then.
 */
static __noinline u32 go_on_with_upload(struct packet *p, struct upload *upload, u32 seen, u32 *behind)
{
	u32 at = sizeof(struct ethhdr) + p->frame.ip_header + p->frame.tcp_header + seen;
	u32 end = bpf_ntohl(p->frame.tcp->seq) + p->frame.payload;
	struct response before = upload->body;
	u32 next = upload->next, data = upload->data, chunks = upload->chunks;

	*behind = follow_upload(p->ctx, upload, at, p->frame.payload - seen, end);
	u32 state = upload->body.state;
	if (*behind) {
		upload->body = before;
		upload->next = next;
		upload->data = data;
		upload->chunks = chunks;
	} else {
		note_cut(upload);
	}
	return state;
}

#endif
