/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The forwarder: keeps a client's packets flowing to the owner of its connection. */
#ifndef BATON_CONNECTION_SERVER_FORWARDER_H
#define BATON_CONNECTION_SERVER_FORWARDER_H

#include "connection_server/distributor.h"
#include "connection_server/tcb.h"
#include "xdp/packet.h"

static __always_inline void count_forwarded(struct packet *p)
{
	count(p->counters, COUNTER_CS_FORWARD);
	count_bytes(p->counters, COUNTER_CS_FORWARD_BYTES, p->frame.ip_bytes);
}

/* Forwards the packet as it is, to a data server that is not behind a router. */
static __always_inline int forward_plain(struct packet *p, const struct data_server *to)
{
	count_forwarded(p);
	address_frame(p->frame.eth, to);
	return send(p->ctx, to);
}

static __always_inline int forward(struct packet *p, const struct data_server *to)
{
	if (to->flags & DATA_SERVER_ROUTED && !fits_in_lccp(p))
		return drop(p, COUNTER_CS_TOO_BIG);
	if (is_merged(p)) {
		if (!(to->flags & DATA_SERVER_LOCAL) && to->ifindex != p->ctx->ingress_ifindex)
			return drop(p, COUNTER_CS_MERGED_LOST);
		count(p->counters, COUNTER_CS_MERGED);
	}
	if (!(to->flags & DATA_SERVER_ROUTED))
		return forward_plain(p, to);
	count_forwarded(p);
	return distribute(p, to, LCCP_FORWARD, 0, &(struct lccp_tcb){});
}

/*
 * Whether this is once more the request with which the connection went to its owner, and nothing of the response is
 * acknowledged yet. Its ADOPT may be lost.
 */
static __always_inline bool repeats_request(const struct tcb *tcb, const struct frame *f)
{
	return tcb->state & TCB_ADOPTING && f->tcp->seq == bpf_htonl(tcb->request_seq) &&
	       f->tcp->ack_seq == bpf_htonl(tcb->last_ack) && (f->payload || f->tcp->fin);
}

/* Whether the data server is there, is not dead, and takes messages. */
static __always_inline bool hears(const struct data_server *server)
{
	return (server->flags & (DATA_SERVER_PRESENT | DATA_SERVER_DEAD | DATA_SERVER_DEAF)) ==
	       DATA_SERVER_PRESENT;
}

/*
 * Sends the request to the owner as ADOPT once more, as the same attempt as before. If the first ADOPT has arrived, the
 * data server recognises the duplicate.
 */
static __always_inline int adopt_again(struct packet *p, const struct tcb *tcb, const struct data_server *owner)
{
	struct lccp_tcb part = part_for_adopt(tcb);

	if (!fits_in_lccp(p))
		return drop(p, COUNTER_CS_TOO_BIG);
	part.attempt = tcb->attempt;
	count(p->counters, COUNTER_CS_ADOPT_AGAIN);
	return distribute(p, owner, LCCP_ADOPT, unmap_address(p->settings->address), &part);
}

enum {
	/* More bytes than any client sends before it hears from its server (initial windows of 10 to 44 segments). */
	FIRST_FLIGHT = 64 << 10,
};

/*
 * Whether this packet comes closely behind the request that went as ADOPT, of whose response nothing is acknowledged
 * yet. It goes inside a message, so that it cannot overtake an ADOPT of this node: a card with several queues puts all
 * messages of this node into the same one, but a plain packet into any.
 */
static __always_inline bool is_behind_adopt(const struct tcb *tcb, const struct packet *p)
{
	return tcb->state & TCB_ADOPTING && tcb->previous == NO_DATA_SERVER && (p->frame.payload || p->frame.tcp->fin) &&
	       bpf_ntohl(p->frame.tcp->seq) - tcb->request_seq < FIRST_FLIGHT && fits_in_lccp(p);
}

static __noinline int forward_behind_adopt(struct packet *p, const struct data_server *owner)
{
	count(p->counters, COUNTER_CS_BEHIND_ADOPT);
	return distribute(p, owner, LCCP_FORWARD, 0, &(struct lccp_tcb){});
}

#endif
