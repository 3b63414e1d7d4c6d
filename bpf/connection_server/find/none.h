/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* NONE: a connection is not where the connection server believed it to be. */
#ifndef BATON_CONNECTION_SERVER_FIND_NONE_H
#define BATON_CONNECTION_SERVER_FIND_NONE_H

#include "connection_server/find/answer.h"
#include "connection_server/find/claim.h"

enum {
	TCB_NOT_SURELY_THERE = TCB_ADOPTING | TCB_RESUMING | TCB_FIN | TCB_RST,
	AWAITED_TICKS = 5,         /* of 1.07 s each */
};

/*
 * Whether the packet may have come to its owner ahead of the ADOPT, as more of the first request does if another
 * processor there has it. It is sent there once more. The owner sends no second NONE for it.
 */
static __always_inline bool came_ahead(const struct tcb *tcb)
{
	return (tcb->state & (TCB_ADOPTING | TCB_RESUMING)) == TCB_ADOPTING;
}

/*
 * Whether the client must send the packet again until somebody has the connection, which is being adopted: it is the
 * request, or data (or a FIN) behind it.
 */
static __always_inline bool must_come_again(const struct tcb *tcb, const struct tcphdr *tcp, bool has_data)
{
	return has_data && is_of_last_request(tcb, tcp) && (is_of_entry(tcb, tcp) || continues_upload(tcb, tcp));
}

/*
 * Whether the connection has been awaited for too long at its owner, which has said in more than AWAITED_TICKS ticks
 * that it is not there. Then its ADOPT is lost for good, or its owner has lost it. To be called for packets that must
 * come again. They are further and further apart, so this takes 13 to 27 s if the first comes again after 0.2 s.
 */
static __always_inline bool was_awaited_too_long(struct tcb *tcb)
{
	u8 tick = tick_now() & 0xf, ticks = tcb->nones & 0xf;

	if (ticks && tcb->nones >> 4 == tick)
		return false;
	if (ticks >= AWAITED_TICKS)
		return true;
	tcb->nones = tick << 4 | (ticks + 1);
	return false;
}

/* Whether the owner that says NONE may have the connection soon, or has had it to its end. */
static __always_inline bool may_be_there(struct tcb *tcb, const struct tcphdr *tcp, bool has_data)
{
	if (came_ahead(tcb))
		return !must_come_again(tcb, tcp, has_data) || !was_awaited_too_long(tcb);
	return tcb->state & TCB_NOT_SURELY_THERE;
}

/*
 * Handles NONE. If it comes from the entry's owner, the connection has gone on, and CLAIM finds out where. There is no
 * CLAIM while the owner may be about to have the connection, and none after the client has ended it.
 */
static __noinline int none(struct packet *p, struct lccp_header *h)
{
	struct tcb *tcb = answered_entry(p, h);
	struct carried c;

	if (h->tcb.attempt)
		return unclaimed(p);
	if (!tcb || !is_from(p, tcb->owner) || !read_carried(p, h, &c))
		return drop(p, COUNTER_LCCP_MISMATCH);
	const struct data_server *owner = data_server(tcb->owner);
	bool is_awaited = may_be_there(tcb, &c.tcp, carried_payload(&c) || c.tcp.fin);
	if (owner && is_awaited && came_ahead(tcb)) {
		h->tcb.attempt = 1;
		count(p->counters, COUNTER_CS_AHEAD);
		return send_on(p, h, owner, LCCP_FORWARD, 0);
	}
	count(p->counters, COUNTER_CS_NONE);
	return is_awaited ? XDP_DROP : claim_anew(p, h);
}

#endif
