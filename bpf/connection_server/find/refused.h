/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* REFUSED: a data server could make no socket for a connection, so another one is asked. */
#ifndef BATON_CONNECTION_SERVER_FIND_REFUSED_H
#define BATON_CONNECTION_SERVER_FIND_REFUSED_H

#include "connection_server/distributor.h"
#include "connection_server/find/answer.h"
#include "routing/dispatcher.h"

/*
 * Handles REFUSED: a data server has no listener for this service. Its ADOPT, which carries the client's packet, goes
 * to another one. When all have refused, the daemon resets the client. The program cannot, because this frame did not
 * come from the client, so only the kernel can find the way back.
 */
static __noinline int refused(struct packet *p, struct lccp_header *h)
{
	struct tcb *tcb = answered_entry(p, h);
	struct carried c;

	if (!tcb || !is_from(p, tcb->owner) || !read_carried(p, h, &c) || !is_of_last_request(tcb, &c.tcp))
		return drop(p, COUNTER_LCCP_MISMATCH);

	/*
	 * The data server has no agent. Another one does not have the rest of this response either, and the daemon
	 * handles that.
	 */
	if (tcb->state & TCB_RESUMING)
		return drop(p, COUNTER_CS_ORPHAN_WAITS);
	count(p->counters, COUNTER_CS_REFUSED);
	u16 owner = NO_DATA_SERVER;
	if (++h->tcb.attempt < ADOPT_ATTEMPTS)
		owner = choose_other(tcb->pool, &p->flow, tcb->owner, h->tcb.attempt);
	const struct data_server *to = data_server(owner);
	if (!to || !(to->flags & DATA_SERVER_PRESENT)) {
		if (is_at_door(tcb))
			tally_request(tcb->route, tcb->pool);
		tally_unavailable(tcb->route, tcb->pool);
		bpf_map_delete_elem(&tcbs, &p->flow);
		count(p->counters, COUNTER_CS_REFUSED_BY_ALL);
		return is_over_budget(p->frame.ip->saddr) ? drop(p, COUNTER_LCCP_OVER_BUDGET) : XDP_PASS;
	}
	if (!is_at_door(tcb))
		TALLY(server_tally(tcb->owner), taken_back);
	tally_connection(owner, is_at_door(tcb));
	give_to(tcb, owner, NO_DATA_SERVER);
	tcb->attempt = h->tcb.attempt;
	return send_on(p, h, to, LCCP_ADOPT, unmap_address(p->settings->address));
}

#endif
