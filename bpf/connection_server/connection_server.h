/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The connection server: an XDP program, below the operating system. It receives everything that
 * clients send, holds no socket, and never sees a response.
 */
#ifndef BATON_CONNECTION_SERVER_H
#define BATON_CONNECTION_SERVER_H

#include "connection_server/begin/hold.h"
#include "connection_server/forwarder.h"
#include "connection_server/stages.h"
#include "connection_server/tcb.h"
#include "include/bounds.h"
#include "xdp/linear.h"
#include "xdp/packet.h"
#include "xdp/switch_header.h"

enum {
	/* States of an entry in which a packet may need more than forwarding to the owner. */
	TCB_UNUSUAL = TCB_FIN | TCB_RST | TCB_ADOPTING | TCB_RESUMING,
};

/* Whether the packet only needs forwarding to the owner as it is. Nearly all packets do. */
static __always_inline bool only_goes_on(const struct packet *p, const struct tcb *tcb, const struct data_server *owner)
{
	return !(tcb->state & TCB_UNUSUAL) && owner && hears(owner) && !(owner->flags & DATA_SERVER_ROUTED) && !is_merged(p);
}

/* Handles a packet that is not simply forwarded, by what admit_packet() finds it to be. Returns an XDP action. */
static __always_inline int admit(struct xdp_md *ctx, struct tcb *tcb)
{
	int admission = admit_packet(ctx, tcb);

	switch (admission) {
	case ADMIT_KNOWN:
		return go_on_with(ctx, tcb);
	case ADMIT_NEW:
		return begin_connection(ctx, tcb);
	case ADMIT_JUMP:
	case ADMIT_LATE:
		return receive_jump(ctx, tcb, admission == ADMIT_LATE);
	case ADMIT_STRAY:
	case ADMIT_ASKED_FIRST:
	case ADMIT_RESET:
	case ADMIT_PROBE:
	case ADMIT_HELD:
		return receive_stray_at_cs(ctx, admission);
	case ADMIT_NOT:
		return XDP_DROP;
	default:
		return admission;
	}
}

static __always_inline int receive_tcp(struct packet *p)
{
	struct frame *f = &p->frame;
	struct tcb_key flow; /* a local: with `p->flow` here, the compiler would have to keep `p` in memory */

	if (passes_on(p))
		return receive_for_next(p->ctx);
	if (f->tcp->syn)
		return receive_syn(p->ctx);
	name_flow(&flow, f->ip->saddr, f->tcp->source, f->ip->daddr, f->tcp->dest);
	struct tcb *tcb = bpf_map_lookup_elem(&tcbs, &flow);
	if (!tcb || !continues(tcb, f->tcp) || tcb->state & (TCB_FIN | TCB_RST))
		return admit(p->ctx, tcb);
	const struct data_server *owner = data_server(tcb->owner);
	if (only_goes_on(p, tcb, owner)) {
		note_packet(tcb, p);
		return forward_plain(p, owner);
	}
	return go_on_with(p->ctx, tcb);
}

SEC("xdp")
int baton_cs(struct xdp_md *ctx)
{
	u32 zero = 0;
	struct packet p = {
		.ctx = ctx,
		.settings = bpf_map_lookup_elem(&settings, &zero),
		.counters = counters_of_this_cpu(),
	};

	if (!p.settings || !p.counters)
		return XDP_ABORTED;
	u32 bytes = pull_headers(ctx);
	void *data = (void *)(long)ctx->data;
	void *data_end = (void *)(long)ctx->data_end;
	if (!is_for_us(p.settings, data, data_end))
		return XDP_PASS;
	READ_ANEW();
	if (!take_out(ctx, p.settings, &bytes))
		return drop(&p, COUNTER_BAD_IP);
	READ_ANEW();
	data = (void *)(long)ctx->data;
	data_end = (void *)(long)ctx->data_end;
	switch (parse_frame(data, data_end, bytes, p.settings->protocol, &p.frame)) {
	case FRAME_TCP:
		return receive_tcp(&p);
	case FRAME_ICMP:
		return receive_error(ctx);
	case FRAME_LCCP:
		return receive_message_at_cs(ctx);
	case FRAME_BAD_IP:
		return malformed(&p, COUNTER_BAD_IP);
	case FRAME_BAD_TCP:
		return malformed(&p, COUNTER_BAD_TCP);
	case FRAME_FRAGMENT:
		return fragment(&p);
	case FRAME_NOT_LINEAR:
		return receive_out_of_reach(ctx);
	default:
		return XDP_PASS;
	}
}

#endif
