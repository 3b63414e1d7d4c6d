/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * If a dispatcher is asked about the first request of a connection (dispatcher.h), the connection has no socket yet:
 * the numbers of its ADOPT are kept here. The request comes again by itself, and the connection begins with these
 * numbers.
 */
#ifndef BATON_DATA_SERVER_DOOR_AWAITS_H
#define BATON_DATA_SERVER_DOOR_AWAITS_H

#include "data_server/agent/reader.h"
#include "data_server/door/doors.h"
#include "data_server/door/early.h"
#include "data_server/packet.h"

/* Keeps the numbers of the ADOPT, and has its request wait for the dispatcher's answer. */
static __noinline int await_word(struct arrival *a, const struct lccp_header *h, const struct inner *in)
{
	struct tcb_key flow = flow_of(h);
	struct passing on = {
		.door.request = bpf_ntohl(in->tcp.seq),
		.door.asker = h->be_data,
		.door.since = moment(),
		.tcb = h->tcb,
		.asks = 1,
		.clock = clock_echoed(a->skb, in),
		.ack = bpf_ntohl(in->tcp.ack_seq),
	};

	if (bpf_map_update_elem(&passing, &flow, &on, BPF_ANY))
		return TCX_DISCARD;
	return wait_for_word(a, 0);
}

/*
 * Judges the request, which has come again, as its ADOPT was. A packet that has waited gets the acknowledgement of that
 * ADOPT, and echoes the clock that the ADOPT echoed.
 */
static __noinline int begin_again(struct arrival *a, struct lccp_header *h, struct inner *in, const struct passing *on)
{
	if (!on)
		return TCX_DISCARD;
	if (has_waited(a, h) && !begin_as_now(a->skb, in, on->ack, on->clock))
		return discard(a, COUNTER_DS_DOOR_UNRENEWED);
	a->asker = on->door.asker;
	h->tcb = on->tcb;
	h->be_data = on->door.asker;
	return BEGINS_HERE;
}

#endif
