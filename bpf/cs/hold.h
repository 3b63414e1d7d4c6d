/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Just before another connection server takes over, requests are held back: what begins one is dropped, and
 * its client sends it again, to the other. So no entry changes after it has been copied for the last time
 * but in what the next packet says anyway, and the other one knows where each next request begins. What
 * begins no request goes on: acknowledgements of downloads, bodies, pinned connections.
 */
#ifndef BATON_CS_HOLD_H
#define BATON_CS_HOLD_H

#include "packet.h"
#include "tcb.h"

/* The daemon says until when, so that nothing is held back for long by a daemon that has died. */
static __always_inline bool holds_requests(void)
{
	u32 zero = 0;
	u64 *until = bpf_map_lookup_elem(&holds, &zero);

	return until && *until && bpf_ktime_get_coarse_ns() < *until;
}

/* Whether a packet of a connection with an entry has data of its next request, and is to wait. */
static __always_inline bool is_held(const struct packet *p, const struct tcb *tcb)
{
	u32 end = bpf_ntohl(p->frame.tcp->seq) + p->frame.payload;

	return (int)(end - tcb->last_seq) > 0 && (int)(end - tcb->next_request) > 0 && holds_requests();
}

#endif
