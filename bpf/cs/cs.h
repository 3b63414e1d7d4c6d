/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The connection server: an XDP program, below the operating system. It receives everything that
 * clients send, holds no socket, and never sees a response.
 */
#ifndef BATON_CS_H
#define BATON_CS_H

#include "admit.h"
#include "forwarder.h"
#include "go_on.h"
#include "hold.h"
#include "icmp.h"
#include "linear.h"
#include "packet.h"
#include "punt.h"
#include "receive_lccp.h"
#include "renew.h"
#include "syn.h"
#include "../bounds.h"
#include "../switched.h"

static __always_inline int not_ours(struct packet *p)
{
	if (service_at(p->frame.ip->saddr, p->frame.tcp->source))
		count_bytes(p->counters, COUNTER_CS_RESPONSE_BYTES, p->frame.ip_bytes);
	return XDP_PASS;
}

/* No entry, or one that this packet may not be of: the services are asked only now. */
static __always_inline int receive_unsure(struct packet *p, struct tcb *held)
{
	struct frame *f = &p->frame;

	p->service = service_at(f->ip->daddr, f->tcp->dest);
	if (p->service)
		return f->tcp->syn ? answer_syn(p) : admit(p, held);
	return held ? jump(p, held) : not_ours(p);
}

/* A packet that goes on with a connection, and maybe begins a request. */
static __always_inline int receive_known(struct packet *p, struct tcb *tcb)
{
	enum course course = COURSE_FOLLOW;
	struct request *r = 0;
	u16 next = NO_DATA_SERVER;

	bool strict = is_strict(tcb);
	if (tcb->state & TCB_PUNTED && !strict && waits_for_next(p, tcb))
		return XDP_DROP;
	if (strict ? may_be_request(p, tcb) : p->frame.payload && !(tcb->state & TCB_PINNED)) {
		if (is_of_next_request(p, tcb) && is_on_hold())
			return hold_back(p);
		r = blank_request();
	}
	/* User space sends a head again with what its client had got long ago. */
	if (strict && (r || (p->frame.payload && was_read(p))))
		renew_ack(p, tcb);
	if (r)
		course = set_course(p, tcb, r, &next);
	switch (course) {
	case COURSE_HAND_OVER:
		return hand_over(p, tcb, r, next);
	case COURSE_UNAVAILABLE:
	case COURSE_REFUSED:
		if (was_carried(p))
			return XDP_DROP;
		bpf_map_delete_elem(&tcbs, &p->flow);
		return answer_itself(p, course == COURSE_REFUSED);
	case COURSE_CLOSED:
		if (was_carried(p))
			return XDP_DROP;
		settle(tcb, bpf_ntohl(p->frame.tcp->ack_seq));
		bpf_map_delete_elem(&tcbs, &p->flow);
		return send_reset(p);
	case COURSE_PUNTED:
	case COURSE_WITHHELD:
		/* It may be the only one to say so, until it has got to its owner. */
		if (strict)
			note_ack(tcb, p->frame.tcp);
		return XDP_DROP;
	case COURSE_AGAIN:
		return ask_again(p, tcb);
	case COURSE_COME:
		return ask_what_has_come(p, tcb);
	default:
		note_packet(tcb, p);
		return follow(p, tcb);
	}
}

static __always_inline int receive_tcp(struct packet *p)
{
	struct frame *f = &p->frame;
	struct tcb *tcb = 0;

	if (passes_on(p))
		return pass_on_to_next(p);
	if (!f->tcp->syn) {
		name_flow(&p->flow, f->ip->saddr, f->tcp->source, f->ip->daddr, f->tcp->dest);
		tcb = bpf_map_lookup_elem(&tcbs, &p->flow);
		if (tcb && (continues(tcb, f->tcp) || continues_upload(p, tcb)) && !is_of_next_connection(p, tcb))
			return receive_known(p, tcb);
	}
	return receive_unsure(p, tcb);
}

static __always_inline int done_or_goes_on(struct packet *p, int verdict)
{
	return verdict == GO_ON_WITH_CARRIED ? go_on_with_carried(p) : verdict;
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
		return receive_icmp(&p);
	case FRAME_LCCP:
		return done_or_goes_on(&p, receive_lccp(&p));
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
