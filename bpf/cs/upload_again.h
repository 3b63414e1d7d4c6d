/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets of a chunked body that come again (upload.h). Such a packet is known if it is cut into the same chunks as before:
 * whatever is inside of them, the end of the body is then where it was.
 */
#ifndef BATON_CS_UPLOAD_AGAIN_H
#define BATON_CS_UPLOAD_AGAIN_H

#include "upload.h"

/* Where among the noted chunks a packet begins. */
struct upload_place {
	const struct upload *known;
	u32 seq;
	u32 rest;                  /* bytes of it that belong to a chunk that has begun before, with the end of line */
	u32 chunk;                 /* which one is the first that begins in it */
	u32 found;
};

/* Is called for every noted chunk; the oldest ones have given way to later ones. */
static long find_chunk(u32 back, struct upload_place *place)
{
	u32 index = place->known->chunks - 1 - back;
	const struct chunk_data *chunk = &place->known->chunk[WRAPPED(index, CHUNKS_NOTED)];
	u32 whole = chunk->bytes + LINE_END_BYTES, at = place->seq - chunk->begin;

	if (back >= place->known->chunks)
		return 1;
	if (at > whole)
		return 0;
	place->rest = whole - at;
	place->chunk = index + 1;
	place->found = 1;
	return 1;
}

/* Inside of a chunk, right behind one, or where the body begins. */
static __noinline bool find_place(struct upload_place *place, u32 body)
{
	bpf_loop(CHUNKS_NOTED, find_chunk, place, 0);
	if (!place->found && place->seq == body)
		place->found = place->known->chunks <= CHUNKS_NOTED;
	return place->found;
}

/* The number of the cut that was noted there, from 1 on; 0: none was. Global, so that it is verified by itself. */
__noinline u32 number_of_cut(const struct upload *known, u32 seq)
{
	if (!known)
		return 0;
	for (u32 i = 0; i < CUTS_NOTED; i++)
		if (known->cut[i].seq == seq && i < known->cuts)
			return i + 1;
	return 0;
}

static __always_inline const struct upload_cut *cut_at(const struct upload *known, u32 seq)
{
	u32 number = number_of_cut(known, seq);

	return number ? &known->cut[WRAPPED(number - 1, CUTS_NOTED)] : 0;
}

/* The packet was cut off there before: its first bytes go on with what was around a chunk. */
static __always_inline bool begin_at_cut(struct upload_place *place, struct upload *again)
{
	const struct upload_cut *cut = cut_at(place->known, place->seq);

	if (!cut)
		return false;
	again->body.state = cut->state;
	again->body.digits = cut->digits;
	again->body.left = cut->left;
	place->chunk = cut->chunks;
	return true;
}

struct comparison {
	const struct upload *known;
	const struct upload *again;
	u32 first;                 /* of the known chunks, the one that is to be the first again */
	u32 differ;
};

static long compare_chunk(u32 i, struct comparison *c)
{
	u32 index = c->first + i;
	const struct chunk_data *before = &c->known->chunk[WRAPPED(index, CHUNKS_NOTED)];
	const struct chunk_data *now = &c->again->chunk[WRAPPED(i, CHUNKS_NOTED)];

	c->differ = c->known->chunks - index - 1 >= CHUNKS_NOTED || index >= c->known->chunks ||
		    before->begin != now->begin || before->bytes != now->bytes;
	return c->differ;
}

/* Whether every chunk that begins in the packet did so before. Global, so that it is verified by itself. */
__noinline int are_same_chunks(const struct upload *known, const struct upload *again, u32 first)
{
	struct comparison c = { .known = known, .again = again, .first = first };

	if (!known || !again || again->chunks > CHUNKS_NOTED)
		return false;
	bpf_loop(again->chunks, compare_chunk, &c, 0);
	return !c.differ;
}

/* Whether what follows the packet will be read as it was before. */
static __always_inline bool ends_the_same(const struct upload *known, const struct upload *again, u32 end,
					  u32 next_request)
{
	const struct response *body = &again->body;

	if (body->state == RESPONSE_COMPLETE)
		return end == next_request;
	if (!is_cut(body))
		return true;
	const struct upload_cut *cut = cut_at(known, end);
	return cut && cut->state == body->state && cut->digits == body->digits && cut->left == body->left;
}

/* Whether it is sure that this packet of the body, which comes again, changes nothing. */
static __noinline bool is_same_upload(struct packet *p, const struct tcb *tcb)
{
	const struct upload *known = upload_of(p, tcb->request_seq);
	u32 end = bpf_ntohl(p->frame.tcp->seq) + p->frame.payload;
	struct upload_place place = { .known = known, .seq = bpf_ntohl(p->frame.tcp->seq) };

	if (!known)
		return false;
	struct upload *again = blank_upload(p);
	if (!again)
		return false;
	if (!find_place(&place, tcb->request_seq + tcb->head) && !begin_at_cut(&place, again))
		return false;
	if (place.rest >= p->frame.payload)
		return true;
	u32 at = sizeof(struct ethhdr) + p->frame.ip_header + p->frame.tcp_header + place.rest;
	u32 next = follow_upload(p->ctx, again, at, p->frame.payload - place.rest, end);

	return !bytes_behind(next, end) &&
	       are_same_chunks(known, again, place.chunk) && ends_the_same(known, again, end, tcb->next_request);
}

#endif
