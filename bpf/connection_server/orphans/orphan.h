/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections whose data server is dead, or refuses all messages because its clock is wrong (DATA_SERVER_DEAF). A
 * request of which nothing was answered goes to another data server. In the middle of a response the daemon finds a
 * data server that has the rest (TCB_RESUMING); if there is none, the client gets a RST at once.
 */
#ifndef BATON_CONNECTION_SERVER_ORPHANS_ORPHAN_H
#define BATON_CONNECTION_SERVER_ORPHANS_ORPHAN_H

#include "connection_server/forwarder.h"
#include "connection_server/orphans/keep.h"
#include "connection_server/orphans/move.h"
#include "connection_server/orphans/quiet_point.h"
#include "connection_server/read_request.h"
#include "connection_server/reply.h"
#include "routing/dispatcher.h"

/*
 * Whether this packet's sequence number is directly behind the kept request. The agent's socket must begin there: it
 * would miss whatever else the client has sent behind the request.
 */
static __always_inline bool begins_behind_request(struct packet *p, const struct tcb *tcb)
{
	return bpf_ntohl(p->frame.tcp->seq) == tcb->last_seq && is_kept(&p->flow, tcb);
}

/*
 * Sends on a packet of a connection whose owner has the rest of the response ready. An empty acknowledgement directly
 * behind the request becomes ADOPT: it says exactly how much the client has, and the agent's socket begins there. Any
 * other packet is only forwarded, because a socket made of it would begin elsewhere. If the owner has no socket yet, it
 * sends the packet back in NONE, which is dropped (find/none.h), and the client sends it again. While the response moves,
 * packets go by way of the previous owner (move.h).
 */
static __always_inline int resume(struct packet *p, struct tcb *tcb, const struct data_server *owner)
{
	struct tcphdr *tcp = p->frame.tcp;
	struct lccp_tcb part = part_for_adopt(tcb);

	if (is_moving(tcb) && is_living(tcb->previous))
		return follow_move(p, tcb, owner);
	if (owner->flags & DATA_SERVER_DEAD)
		return drop(p, COUNTER_CS_ORPHAN_WAITS);
	if (p->frame.payload || tcp->fin || tcp->rst || !tcp->ack || !fits_in_lccp(p) || !begins_behind_request(p, tcb))
		return forward(p, owner);
	count(p->counters, COUNTER_CS_RESUME);
	return distribute(p, owner, ADOPT_RESUMED, unmap_address(p->settings->address), &part);
}

/*
 * Sends the current request as ADOPT to another data server. Call this only if the client has nothing of the response.
 * Of copies of the packet on several processors, one chooses that data server.
 */
static __noinline int adopt_orphan(struct packet *p, struct tcb *tcb)
{
	struct lccp_tcb part = part_for_adopt(tcb);
	u16 before = tcb->owner, other = choose_other(tcb->pool, &p->flow, before, 0);
	const struct data_server *owner = data_server(before), *to = data_server(other);

	if (owner && hears(owner))
		return adopt_again(p, tcb, owner);
	if (!to || !hears(to) || !give_from(tcb, before, other))
		return drop(p, COUNTER_CS_ORPHAN_WAITS);
	tally_connection(other, is_at_door(tcb));
	tcb->attempt = 0;
	count(p->counters, COUNTER_CS_ORPHAN_ADOPT);
	return distribute(p, to, LCCP_ADOPT, unmap_address(p->settings->address), &part);
}

/*
 * Whether this packet is the request with which the connection went to its owner, nothing of it was answered, and it may
 * be asked twice. What a TLS client says first only begins a handshake.
 */
static __always_inline bool may_ask_again(struct packet *p, const struct tcb *tcb)
{
	if (!repeats_request(tcb, &p->frame) || !fits_in_lccp(p))
		return false;
	if (is_tls(p->frame.ip->daddr, p->frame.tcp->dest))
		return true;
	struct request *r = blank_request();
	return r && read_request_of(p, r) && may_move(r);
}

/* Handles a packet of a connection whose owner is dead. No other data server has the rest of its response yet. */
static __always_inline int orphaned(struct packet *p, struct tcb *tcb)
{
	struct tcphdr *tcp = p->frame.tcp;
	const struct data_server *owner = data_server(tcb->owner);

	/*
	 * A RST needs no answer. And the dead owner may have handed the connection on, and its MOVED may be lost:
	 * nothing is decided while the other data servers are asked.
	 */
	if (tcp->rst || (owner && owner->flags & DATA_SERVER_ASKED_FOR))
		return drop(p, COUNTER_CS_ORPHAN_WAITS);
	if (rests_on(p, tcb))
		return drop(p, COUNTER_CS_ORPHAN_WAITS);
	if (may_ask_again(p, tcb))
		return adopt_orphan(p, tcb);
	/*
	 * A keep-alive probe gets no RST: if the connection is at rest, its next request goes to another data server.
	 * Nor does a client whose request is kept: the daemon looks for a data server that has the rest of the response.
	 */
	bool probes = !tcp->fin && bpf_ntohl(tcp->seq) == tcb->last_seq - 1;
	if (probes || is_kept(&p->flow, tcb))
		return drop(p, COUNTER_CS_ORPHAN_WAITS);
	/*
	 * A forged packet must not delete the entry. The RST that it causes has the forged numbers, and the client does
	 * not accept it.
	 */
	if (continues(tcb, tcp)) {
		settle(tcb, tcb->last_ack);
		bpf_map_delete_elem(&tcbs, &p->flow);
	}
	return reset(p, COUNTER_CS_ORPHAN_RESET);
}

/*
 * Sends on a packet of a connection whose owner refuses messages. The owner still takes clients' plain packets, so its
 * connections go on; behind a router they wait. A repeated request may not have reached it, because ADOPT is a message.
 * So the request goes to another data server if it may be done twice.
 */
static __always_inline int follow_deaf(struct packet *p, struct tcb *tcb, const struct data_server *owner)
{
	if (!may_ask_again(p, tcb))
		return forward(p, owner);
	count(p->counters, COUNTER_CS_DEAF);
	return adopt_orphan(p, tcb);
}

#endif
