/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A response moves in its middle from an owner that drains to a data server that has the rest of it ready. The daemon
 * orders and times the steps. Until the move ends the entry names the next data server as owner, and the last owner as
 * `previous`. Its state has TCB_RESUMING, because the next one waits for the connection, and TCB_ADOPTING, because the
 * last one still has it. Only the last owner knows when it lets go. So every packet of the client goes to the last
 * owner, which sends it on to the next one once it has let go. If the daemon dies this stays correct: the packets
 * reach the one of the two that has the connection.
 */
#ifndef BATON_CONNECTION_SERVER_ORPHANS_MOVE_H
#define BATON_CONNECTION_SERVER_ORPHANS_MOVE_H

#include "connection_server/distributor.h"
#include "connection_server/orphans/keep.h"
#include "connection_server/tcb.h"
#include "routing/dispatcher.h"
#include "xdp/packet.h"

static __always_inline bool is_living(u16 server)
{
	const struct data_server *found = data_server(server);

	return found && (found->flags & (DATA_SERVER_PRESENT | DATA_SERVER_DEAD)) == DATA_SERVER_PRESENT;
}

/* Sends a client's packet to the last owner while the connection moves, with the address of the next one. */
static __always_inline int follow_move(struct packet *p, const struct tcb *tcb, const struct data_server *owner)
{
	const struct data_server *via = data_server(tcb->previous);

	if (!via || !fits_in_lccp(p))
		return drop(p, COUNTER_CS_TOO_BIG);
	count(p->counters, COUNTER_CS_MOVE_VIA);
	return distribute(p, via, LCCP_FORWARD, unmap_address(owner->address), &(struct lccp_tcb){});
}

/*
 * Whether the response may begin to move: the connection is in the middle of a response, as its owner has told, the
 * client has sent all of that request, and the entry is in no other state.
 */
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
