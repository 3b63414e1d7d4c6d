/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The switch: an XDP program in front of several connection servers. To clients it is the cluster
 * address; each of their frames goes on to one connection server, and nothing comes back this way.
 */
#ifndef BATON_SWITCH_SWITCH_H
#define BATON_SWITCH_SWITCH_H

#include "switch/maglev_slot.h"
#include "switch/receive_lccp.h"
#include "xdp/add_switch_header.h"
#include "xdp/icmp_error.h"
#include "xdp/linear.h"
#include "xdp/packet.h"
#include "xdp/switch_header.h"

/*
 * Sends a frame as it is, because it is too large to travel inside another one. The connection server forwards it all
 * the same, but cannot answer it.
 */
static __always_inline int send_plain(struct packet *p, const struct data_server *to)
{
	count(p->counters, COUNTER_SWITCH_PLAIN);
	address_frame(p->frame.eth, to);
	return send(p->ctx, to);
}

static __always_inline int send_to_connection_server(struct packet *p, struct direction direction)
{
	const struct data_server *to = data_server(direction.server);

	if (!to || !(to->flags & DATA_SERVER_PRESENT))
		return drop(p, COUNTER_SWITCH_NOBODY);
	count(p->counters, direction.why);
	if (!fits_in_frame(p))
		return send_plain(p, to);
	return put_inside(p, to) ? send(p->ctx, to) : drop(p, COUNTER_SWITCH_NO_ROOM);
}

static __always_inline int spread_tcp(struct packet *p)
{
	struct frame *f = &p->frame;

	if (!service_at(f->ip->daddr, f->tcp->dest))
		return XDP_PASS;
	name_flow(&p->flow, f->ip->saddr, f->tcp->source, f->ip->daddr, f->tcp->dest);
	const struct maglev_slot *place = place_of(p);
	if (!place)
		return drop(p, COUNTER_SWITCH_NOBODY);
	return send_to_connection_server(p, f->tcp->syn ? where_it_begins(p, place) : where_it_is(p, place));
}

/*
 * Sends an ICMP error to the connection server that has the connection which the error is about. That one knows the
 * owner.
 */
static __always_inline int spread_icmp(struct packet *p)
{
	if (!name_flow_in_error(p) || !service_at(p->flow.cluster, p->flow.be_cluster_port))
		return XDP_PASS;
	const struct maglev_slot *place = place_of(p);
	if (!place)
		return drop(p, COUNTER_SWITCH_NOBODY);
	struct direction direction = where_it_is(p, place);
	direction.why = COUNTER_SWITCH_ICMP;
	return send_to_connection_server(p, direction);
}

SEC("xdp")
int baton_switch(struct xdp_md *ctx)
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
	switch (parse_frame(data, data_end, bytes, p.settings->protocol, &p.frame)) {
	case FRAME_TCP:
		return spread_tcp(&p);
	case FRAME_ICMP:
		return spread_icmp(&p);
	case FRAME_LCCP:
		return receive_lccp_at_switch(&p);
	case FRAME_BAD_IP:
		return malformed(&p, COUNTER_BAD_IP);
	case FRAME_BAD_TCP:
		return malformed(&p, COUNTER_BAD_TCP);
	case FRAME_FRAGMENT:
		return fragment(&p);
	case FRAME_NOT_LINEAR:
		return headers_out_of_reach(&p);
	default:
		return XDP_PASS;
	}
}

#endif
