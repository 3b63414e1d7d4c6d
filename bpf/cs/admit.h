/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A packet of a connection without a (sure) entry: the split point, if its cookie is valid. */
#ifndef BATON_CS_ADMIT_H
#define BATON_CS_ADMIT_H

#include "aware.h"
#include "claim.h"
#include "dispatcher.h"
#include "distributor.h"
#include "forwarder.h"
#include "hold.h"
#include "keep.h"
#include "packet.h"
#include "punt.h"
#include "tcb.h"
#include "unavailable.h"
#include "../cookie.h"

/* The cookie is our ISN: the client's first data, and only that, has ISN + 1 on both sides. */
static __always_inline bool has_valid_cookie(struct packet *p, u32 *cookie)
{
	struct tcphdr *tcp = p->frame.tcp;
	struct cookie_flow flow = {
		.client = p->frame.ip->saddr,
		.cluster = p->frame.ip->daddr,
		.client_port = tcp->source,
		.cluster_port = tcp->dest,
		.client_isn = bpf_ntohl(tcp->seq) - 1,
	};

	*cookie = bpf_ntohl(tcp->ack_seq) - 1;
	return cookie_valid(p->settings, &flow, *cookie);
}

/* The data server for a new connection, whose first packet asks for this pool by this route. */
static __always_inline struct choice dispatch(struct packet *p, struct request *r, u32 index, u16 route)
{
	const struct pool *pool = pool_at(index);

	if (!pool)
		return (struct choice){ .owner = NO_DATA_SERVER, .pool = index, .route = route };
	return (struct choice){
		.owner = pick(p, pool, index, r),
		.pool = index,
		.generation = pool->generation,
		.route = route,
	};
}

/* The split: an entry here, DM1 to the data server that the dispatcher names. */
static __noinline int split(struct packet *p, u32 cookie)
{
	struct request *r = blank_request();
	u8 state = TCB_PINNED;

	if (!r)
		return XDP_ABORTED;
	if (!fits_in_lccp(p))
		return drop(p, COUNTER_CS_TOO_BIG);
	if (p->service->flags & (SERVICE_HANDOVER | SERVICE_PATHS) && read_request_of(p, r) &&
	    p->service->flags & SERVICE_HANDOVER && !p->frame.tcp->fin)
		state = 0;

	struct lccp_tcb part = {};
	if (p->service->flags & SERVICE_DIRECT && is_aware(p)) {
		part.options = LCCP_TCB_AWARE;
		state = TCB_PINNED;
	}

	u16 route;
	u32 pool = find_pool(p, r, &route);
	struct choice choice = { .owner = SERVER_PUNTED };
	if (pool != POOL_PUNTED)
		choice = dispatch(p, r, pool, route);
	if (choice.owner == SERVER_PUNTED) {
		note_punted_flow(p);
		return XDP_DROP;
	}
	tally_request(choice.route, choice.pool);
	if (p->service->flags & SERVICE_HANDOVER && state)
		count(p->counters, COUNTER_CS_PINNED);
	const struct data_server *to = data_server(choice.owner);

	if (!to || !(to->flags & DATA_SERVER_PRESENT)) {
		tally_unavailable(choice.route, choice.pool);
		return nobody_answers(p, r);
	}

	cookie_open(cookie, p->settings->rcv_wscale, &part);
	if (!create_tcb(p, &choice, state, r->end + r->body, &part))
		return drop(p, COUNTER_CS_TCB_FULL);

	if (!(state & TCB_PINNED))
		keep_request(p, r);
	tally_connection(choice.owner);
	if (part.options & LCCP_TCB_AWARE)
		count(p->counters, COUNTER_CS_AWARE);
	count(p->counters, COUNTER_CS_ADOPT);
	return distribute(p, to, LCCP_ADOPT, unmap_address(p->settings->address), &part);
}

static __noinline int jump(struct packet *p, struct tcb *tcb)
{
	note_jump(tcb, p);
	return follow(p, tcb);
}

/* `held` is an entry for these ports that the packet does not seem to go on with. */
static __always_inline int admit(struct packet *p, struct tcb *held)
{
	struct tcphdr *tcp = p->frame.tcp;
	u32 cookie;

	if (!tcp->ack || tcp->rst || !has_valid_cookie(p, &cookie)) {
		if (!tcp->rst && waits_for_first(p))
			return XDP_DROP;
		if (held)
			return jump(p, held);
		if (tcp->rst)
			return drop(p, COUNTER_CS_RST);
		return stray(p);
	}
	if (held && is_adopted_packet(held, &p->frame))
		return jump(p, held);
	if (!p->frame.payload && !tcp->fin && !(p->service->flags & SERVICE_SPLIT_AT_ACK))
		return drop(p, COUNTER_CS_HANDSHAKE_ACK);
	if (is_on_hold())
		return hold_back(p);
	if (held)
		settle(held, held->last_ack);
	return split(p, cookie);
}

#endif
