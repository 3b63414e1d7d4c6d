/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RELEASE (DM2): an idle connection leaves an owner that drains, without waiting for a request. The daemon runs
 * this program on an empty ACK that it has made in the client's name; what becomes of it is the message to the
 * owner. From then on the entry says that the connection is its next owner's, as after a HANDOVER, and packets
 * go by the last one. A second later the message is sent once more, in case the first was lost, and packets go
 * straight: the last owner may then be switched off. Should all that be lost, the client's next request is
 * adopted instead. Attached nowhere, so that it costs the packet path nothing.
 */
#ifndef BATON_CS_RELEASE_H
#define BATON_CS_RELEASE_H

#include "dispatcher.h"
#include "distributor.h"
#include "idle.h"
#include "packet.h"

static __always_inline int send_release(struct packet *p, const struct tcb *tcb, const struct data_server *from,
					const struct data_server *to)
{
	struct lccp_tcb part = travelling_part(tcb);

	return distribute(p, from, LCCP_RELEASE, unmap_address(to->address), &part);
}

static __always_inline int release_again(struct packet *p, struct tcb *tcb)
{
	const struct data_server *previous = data_server(tcb->previous);
	const struct data_server *owner = data_server(tcb->owner);

	tcb->state = TCB_RELEASED;
	if (!previous || !owner || !(previous->flags & owner->flags & DATA_SERVER_PRESENT))
		return drop(p, COUNTER_CS_RELEASE_NOBODY);
	count(p->counters, COUNTER_CS_RELEASE_AGAIN);
	return send_release(p, tcb, previous, owner);
}

static __always_inline int release_entry(struct packet *p, struct tcb *tcb)
{
	const struct pool *pool = pool_at(tcb->pool);
	const struct data_server *owner = data_server(tcb->owner);

	if (!pool || !owner || is_member(pool, tcb->owner))
		return drop(p, COUNTER_CS_RELEASE_LATE);
	u16 next = choose(pool, tcb->pool, &p->flow, 0, 0);
	const struct data_server *to = data_server(next);
	if (!to || !(to->flags & owner->flags & DATA_SERVER_PRESENT) || next == tcb->owner)
		return drop(p, COUNTER_CS_RELEASE_NOBODY);
	settle(tcb, tcb->last_ack);
	give_to(tcb, next, tcb->owner, 0);
	tcb->generation = pool->generation;
	tcb->state = TCB_ADOPTING | TCB_RELEASED;
	/* Where whatever comes next begins, of which nothing is known: it is not the last request again. */
	tcb->request_seq = tcb->last_seq;
	tcb->head = 0;
	TALLY(server_tally(next), connections);
	count(p->counters, COUNTER_CS_RELEASE);
	return send_release(p, tcb, owner, to);
}

SEC("xdp")
int baton_release(struct xdp_md *ctx)
{
	u32 zero = 0;
	struct packet p = {
		.ctx = ctx,
		.settings = bpf_map_lookup_elem(&settings, &zero),
		.counters = counters_of_this_cpu(),
	};

	if (!p.settings || !p.counters)
		return XDP_ABORTED;
	void *data = (void *)(long)ctx->data;
	void *data_end = (void *)(long)ctx->data_end;
	if (parse_frame(data, data_end, data_end - data, p.settings->protocol, &p.frame) != FRAME_TCP)
		return drop(&p, COUNTER_BAD_TCP);
	struct tcphdr *tcp = p.frame.tcp;
	name_flow(&p.flow, p.frame.ip->saddr, tcp->source, p.frame.ip->daddr, tcp->dest);
	struct tcb *tcb = bpf_map_lookup_elem(&tcbs, &p.flow);
	if (!tcb || tcp->seq != bpf_htonl(tcb->last_seq) || tcp->ack_seq != bpf_htonl(tcb->last_ack))
		return drop(&p, COUNTER_CS_RELEASE_LATE);
	if (is_being_released(tcb))
		return release_again(&p, tcb);
	return is_idle(tcb) ? release_entry(&p, tcb) : drop(&p, COUNTER_CS_RELEASE_LATE);
}

#endif
