/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Just before another connection server takes over, what begins a request waits: user space keeps it until
 * the other one has all entries, and runs it through this program again, which passes it on there; from then
 * on it passes on by itself what comes. So no entry changes after it has been copied for the last time but in
 * what the next packet says anyway, and the other one knows where each next request begins. What begins no
 * request goes on as ever: acknowledgements of downloads, bodies, pinned connections.
 */
#ifndef BATON_CS_HOLD_H
#define BATON_CS_HOLD_H

#include "copy.h"
#include "inside.h"
#include "packet.h"
#include "tcb.h"

/* The daemon says until when, so that nothing is held back for long by a daemon that has died. 0: not now. */
static __always_inline const struct hold *hold_now(void)
{
	u32 zero = 0;
	const struct hold *hold = bpf_map_lookup_elem(&holds, &zero);

	return hold && hold->until && bpf_ktime_get_coarse_ns() < hold->until ? hold : 0;
}

/* Whether a packet of a connection with an entry has data of its next request, which may have to wait. */
static __always_inline bool is_of_next_request(const struct packet *p, const struct tcb *tcb)
{
	u32 end = bpf_ntohl(p->frame.tcp->seq) + p->frame.payload;

	return (int)(end - tcb->last_seq) > 0 && (int)(end - tcb->next_request) > 0;
}

static __always_inline int pass_request_on(struct packet *p, const struct data_server *to)
{
	count(p->counters, COUNTER_CS_PASSED_ON);
	if (!fits_in_frame(p))
		address_frame(p->frame.eth, to);
	else if (!put_inside(p, to))
		return drop(p, COUNTER_CS_NO_ROOM);
	return send(p->ctx, to);
}

static __noinline int hold_back(struct packet *p, const struct hold *hold)
{
	u32 bytes = sizeof(struct ethhdr) + p->frame.ip_bytes;
	struct punted *record = 0;

	if (hold->passes_on)
		return pass_request_on(p, &hold->to);
	if (bytes >= sizeof(struct ethhdr) && bytes <= PUNT_FRAME_BYTES)
		record = copy_frame(p, bytes, &held);
	if (!record)
		return drop(p, COUNTER_CS_HELD_LOST);
	record->key.hash = 0;
	record->service = 0;
	bpf_ringbuf_submit(record, 0);
	return drop(p, COUNTER_CS_HELD);
}

#endif
