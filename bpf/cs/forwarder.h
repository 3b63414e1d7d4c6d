/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The forwarder: keeps a client's packets flowing to the owner of its connection. */
#ifndef BATON_CS_FORWARDER_H
#define BATON_CS_FORWARDER_H

#include "distributor.h"
#include "packet.h"
#include "reply.h"
#include "tcb.h"

static __always_inline int forward(struct packet *p, const struct data_server *to)
{
	if (to->flags & DATA_SERVER_ROUTED && !fits_in_lccp(p))
		return drop(p, COUNTER_CS_TOO_BIG);
	count(p->counters, COUNTER_CS_FORWARD);
	count_bytes(p->counters, COUNTER_CS_FORWARD_BYTES, p->frame.ip_bytes);
	if (to->flags & DATA_SERVER_ROUTED)
		return distribute(p, to, LCCP_FORWARD, &(struct lccp_tcb){});
	address_frame(p->frame.eth, to);
	return send(p->ctx, to);
}

/*
 * The request that made the entry comes again: its ADOPT may be lost. The data server knows a
 * duplicate when it sees one.
 */
static __always_inline bool is_adopted_packet(const struct tcb *tcb, const struct frame *f)
{
	return f->tcp->seq == bpf_htonl(tcb->adopt_seq) && f->tcp->ack_seq == bpf_htonl(tcb->adopt_ack) &&
	       (f->payload || f->tcp->fin);
}

/* A packet of a known connection, noted in its entry. */
static __noinline int follow(struct packet *p, struct tcb *tcb)
{
	const struct data_server *owner = data_server(tcb->owner);

	if (!owner || !(owner->flags & DATA_SERVER_PRESENT)) {
		bpf_map_delete_elem(&tcbs, &p->flow);
		return reset(p, COUNTER_CS_OWNER_GONE);
	}
	if (is_adopted_packet(tcb, &p->frame)) {
		struct lccp_tcb part = travelling_part(tcb);

		if (!fits_in_lccp(p))
			return drop(p, COUNTER_CS_TOO_BIG);
		count(p->counters, COUNTER_CS_ADOPT_AGAIN);
		return distribute(p, owner, LCCP_ADOPT, &part);
	}
	return forward(p, owner);
}

#endif
