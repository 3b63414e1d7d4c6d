/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the connection server does with a packet that needs more than forwarding. Each of these functions is global, so
 * the verifier checks it once, by itself, and not again for every path that leads to it. Each looks at the frame anew.
 * They are called one after the other, never inside each other, so their stacks do not add up.
 */
#ifndef BATON_CONNECTION_SERVER_STAGES_H
#define BATON_CONNECTION_SERVER_STAGES_H

#include "connection_server/begin/admit.h"
#include "connection_server/begin/syn.h"
#include "connection_server/go_on.h"
#include "connection_server/icmp.h"
#include "connection_server/receive_lccp.h"
#include "connection_server/send_to_owner.h"
#include "xdp/linear.h"
#include "xdp/packet.h"

static __always_inline bool look_at_service(struct packet *p, struct xdp_md *ctx)
{
	if (!look_at_tcp(p, ctx))
		return false;
	p->service = service_at(p->frame.ip->daddr, p->frame.tcp->dest);
	return true;
}

/*
 * Finds what a packet is that is not simply forwarded: an enum admission, or an XDP action if nothing more is to be
 * done. `held` is the entry of the packet's ports, or 0.
 */
__noinline int admit_packet(struct xdp_md *ctx, const struct tcb *held)
{
	struct text *text = text_of_this_cpu();
	struct packet p;

	if (!text || !look_at_service(&p, ctx))
		return XDP_ABORTED;
	const struct tcphdr *tcp = p.frame.tcp;
	if (held && (continues(held, tcp) || continues_upload(held, tcp)) && !is_of_next_connection(&p, held))
		return ADMIT_KNOWN;
	/* A packet near its entry needs no service, but all others do. */
	if (!p.service)
		return held ? ADMIT_JUMP : not_ours(&p);
	u32 cookie = bpf_ntohl(tcp->ack_seq) - 1;
	u32 tag = tag_of_first(&p);
	text->tag = tag;
	enum admission found = tag && !tcp->rst ? admit_first(&p, held, cookie, tag) : admit_other(&p, held, cookie, tag);
	return found == ADMIT_NEW && is_on_hold() ? ADMIT_HELD : found;
}

__noinline int begin_connection(struct xdp_md *ctx, struct tcb *held)
{
	struct text *text = text_of_this_cpu();
	struct packet p;

	if (!text || !look_at_service(&p, ctx) || !p.service)
		return XDP_ABORTED;
	if (held)
		settle(held, held->last_ack);
	return split(&p, held, bpf_ntohl(p.frame.tcp->ack_seq) - 1, text->tag);
}

__noinline int receive_jump(struct xdp_md *ctx, struct tcb *held, bool is_late)
{
	struct packet p;

	if (!held || !look_at_service(&p, ctx))
		return XDP_DROP;
	return is_late ? send_to_owner(&p, held) : jump(&p, held);
}

__noinline int receive_stray_at_cs(struct xdp_md *ctx, int admission)
{
	struct packet p;

	if (!look_at_service(&p, ctx) || !p.service)
		return XDP_ABORTED;
	switch (admission) {
	case ADMIT_STRAY:
		return stray(&p);
	case ADMIT_ASKED_FIRST:
		return claim_first(&p);
	case ADMIT_RESET:
		return claim_reset(&p);
	case ADMIT_PROBE:
		return answer_probe(&p);
	default:
		return hold_back(&p);
	}
}

/* Notes a packet of the connection with this entry, and sends it on. */
__noinline int go_on_with(struct xdp_md *ctx, struct tcb *tcb)
{
	struct packet p;

	if (!tcb || !look_at_tcp(&p, ctx))
		return XDP_ABORTED;
	note_packet(tcb, &p);
	return send_to_owner(&p, tcb);
}

__noinline int receive_syn(struct xdp_md *ctx)
{
	struct packet p;

	if (!look_at_service(&p, ctx))
		return XDP_ABORTED;
	return p.service ? answer_syn(&p) : not_ours(&p);
}

/* Sends the packet to the connection server that takes over. */
__noinline int receive_for_next(struct xdp_md *ctx)
{
	struct packet p;

	return look_at_tcp(&p, ctx) ? pass_on_to_next(&p) : XDP_ABORTED;
}

static __always_inline int done_or_goes_on(struct packet *p, int verdict)
{
	return verdict == GO_ON_WITH_CARRIED ? go_on_with_carried(p) : verdict;
}

__noinline int receive_message_at_cs(struct xdp_md *ctx)
{
	struct packet p;

	if (look_again(&p, ctx) != FRAME_LCCP)
		return XDP_ABORTED;
	return done_or_goes_on(&p, receive_lccp(&p));
}

__noinline int receive_error(struct xdp_md *ctx)
{
	struct packet p;

	return look_again(&p, ctx) == FRAME_ICMP ? receive_icmp(&p) : XDP_ABORTED;
}

__noinline int receive_out_of_reach(struct xdp_md *ctx)
{
	struct packet p;

	return look_again(&p, ctx) == FRAME_NOT_LINEAR ? headers_out_of_reach(&p) : XDP_ABORTED;
}

#endif
