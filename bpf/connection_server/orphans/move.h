/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A response under way moves from an owner that drains to one that has the rest of it ready. The daemon orders
 * and times all that; here is what an entry says meanwhile: TCB_RESUMING, because its owner is one that waits for
 * the connection, and TCB_ADOPTING, because the one before has it still. Only that one knows when it lets go, so
 * every packet of the client goes by it, and from there to the next one if it has. Should the daemon die, all
 * this stays right: whoever of the two has the connection gets its packets.
 */
#ifndef BATON_CONNECTION_SERVER_ORPHANS_MOVE_H
#define BATON_CONNECTION_SERVER_ORPHANS_MOVE_H

#include "connection_server/begin/distributor.h"
#include "connection_server/orphans/keep.h"
#include "connection_server/tcb.h"
#include "routing/dispatcher.h"
#include "xdp/packet.h"

static __always_inline bool is_living(u16 server)
{
	const struct data_server *found = data_server(server);

	return found && (found->flags & (DATA_SERVER_PRESENT | DATA_SERVER_DEAD)) == DATA_SERVER_PRESENT;
}

/* Any packet of the client while its connection moves. */
static __always_inline int follow_move(struct packet *p, const struct tcb *tcb, const struct data_server *owner)
{
	const struct data_server *via = data_server(tcb->previous);

	if (!via || !fits_in_lccp(p))
		return drop(p, COUNTER_CS_TOO_BIG);
	count(p->counters, COUNTER_CS_MOVE_VIA);
	return distribute(p, via, LCCP_FORWARD, unmap_address(owner->address), &(struct lccp_tcb){});
}

/* In the middle of a response, as its owner has told, and in no other state; all of its request is sent. */
static __always_inline bool may_begin(const struct tcb_key *flow, const struct tcb *tcb)
{
	return tcb->state == TCB_AT_DOOR && is_kept(flow, tcb);
}

static __always_inline enum counter move_entry(const struct tcb_key *flow, struct tcb *tcb, const struct moving *m)
{
	if (m->step == MOVE_BEGIN) {
		if (tcb->owner != m->from || !may_begin(flow, tcb))
			return COUNTER_CS_MOVE_LATE;
		give_to(tcb, m->to, m->from);
		tcb->state |= TCB_RESUMING | TCB_ADOPTING;
		return COUNTER_CS_MOVE;
	}
	if (tcb->owner != m->to || tcb->previous != m->from || !is_moving(tcb))
		return COUNTER_CS_MOVE_LATE;
	if (m->step == MOVE_BACK)
		tcb->owner = m->from;
	tcb->previous = NO_DATA_SERVER;
	tcb->state &= ~TCB_ADOPTING;
	if (m->step == MOVE_ORPHANED)
		return COUNTER_CS_MOVE_ORPHANED;
	tcb->state &= ~TCB_RESUMING;
	if (m->step == MOVE_BACK)
		return COUNTER_CS_MOVE_BACK;
	tally_connection(m->to, true);
	return COUNTER_CS_MOVE_DONE;
}

SEC("syscall")
int baton_move(struct moving *move)
{
	struct moving m = *move;
	struct tcb *tcb = bpf_map_lookup_elem(&tcbs, &m.key);
	struct counters *counters = counters_of_this_cpu();
	enum counter what = COUNTER_CS_MOVE_LATE;

	if (tcb && tcb->request_seq == m.request_seq)
		what = move_entry(&m.key, tcb, &m);
	if (counters)
		count(counters, what);
	move->found = what != COUNTER_CS_MOVE_LATE;
	if (tcb)
		move->tcb = *tcb;
	return 0;
}

#endif
