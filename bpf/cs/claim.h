/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CLAIM: a packet of a connection that has no entry here. It may have come by another connection server,
 * or the entry may be lost. The data servers of the service are asked, one after the other; whoever
 * has the connection delivers the packet and says so (MOVED, see moved.h), the last says NONE.
 */
#ifndef BATON_CS_CLAIM_H
#define BATON_CS_CLAIM_H

#include "answer.h"
#include "dispatcher.h"
#include "distributor.h"
#include "forwarder.h"
#include "own.h"
#include "packet.h"
#include "reply.h"
#include "../clock.h"

enum {
	/* ns: without an answer for so long, the question or the answer is lost. Clients send again later. */
	CLAIM_PATIENCE = 1 << 27,
	ASKED_FIRST = 8, /* so many are tried: they may be gone, or this very node */
};

/* Every one of them costs a walk through all data servers. */
static __always_inline bool may_claim(void)
{
	u32 zero = 0, now = tick_now();
	struct claims *c = bpf_map_lookup_elem(&claims, &zero);

	if (!c)
		return false;
	if (c->tick != now) {
		c->tick = now;
		c->sent = 0;
	}
	return c->sent++ < CLAIMS_PER_TICK;
}

/* The data server with which a walk begins: another one each time, should this one be dead. */
static __always_inline const struct data_server *first_asked(const struct service *service,
							     const struct tcb_key *flow, u32 walks)
{
	const struct pool *pool = pool_at(service->pool);
	u32 turn = hash_client(flow->client, flow->be_client_port) + walks;

	if (!pool || !pool->choices)
		return 0;
	for (int i = 0; i < ASKED_FIRST; i++) {
		u32 at = pool->first_choice + (turn + i) % pool->choices;
		u16 *choice = bpf_map_lookup_elem(&choices, &at);
		const struct data_server *first = choice ? data_server(*choice) : 0;
		if (first && (first->flags & (DATA_SERVER_PRESENT | DATA_SERVER_LOCAL)) == DATA_SERVER_PRESENT)
			return first;
	}
	return 0;
}

static __noinline int claim(struct packet *p, struct stray *stray, u64 now)
{
	const struct data_server *first = first_asked(p->service, &p->flow, stray->walks);

	if (found_here(p)) {
		struct tcb *tcb = bpf_map_lookup_elem(&tcbs, &p->flow);
		count(p->counters, COUNTER_CS_MOVED);
		return tcb ? follow(p, tcb) : XDP_DROP;
	}
	if (!first) {
		stray->unclaimed = 1;
		return drop(p, COUNTER_CS_STRAY);
	}
	if (!fits_in_lccp(p))
		return drop(p, COUNTER_CS_TOO_BIG);
	if (!may_claim())
		return drop(p, COUNTER_CS_CLAIM_LIMIT);
	stray->asked = now;
	stray->walks++;
	stray->unclaimed = 0;
	count(p->counters, COUNTER_CS_CLAIM);
	return distribute(p, first, LCCP_CLAIM, unmap_address(p->settings->address), &(struct lccp_tcb){});
}

/* The first packet of a flow nobody here knows. Without ACK it is no connection's. */
static __always_inline int new_stray(struct packet *p, u64 now)
{
	struct stray stray = { .first = now, .asked = now, .unclaimed = !p->frame.tcp->ack };

	bpf_map_update_elem(&strays, &p->flow, &stray, BPF_ANY);
	struct stray *kept = bpf_map_lookup_elem(&strays, &p->flow);
	if (!kept || kept->unclaimed)
		return drop(p, COUNTER_CS_STRAY);
	return claim(p, kept, now);
}

/*
 * Nobody here knows the connection. One walk through the data servers; then silence, because the
 * beginning of its request may be on its way behind this packet. What still comes after the grace is
 * asked for once more, because while a connection was handed over it may have been missed; and what
 * nobody has then gets a clear end.
 */
static __always_inline int stray(struct packet *p)
{
	u64 now = bpf_ktime_get_coarse_ns();
	u64 grace = p->settings->stray_grace_ns;
	struct stray *known = bpf_map_lookup_elem(&strays, &p->flow);

	if (!known)
		return new_stray(p, now);
	if (!known->unclaimed && now - known->asked >= CLAIM_PATIENCE)
		return claim(p, known, now);
	if (!known->unclaimed || now - known->first < grace)
		return drop(p, COUNTER_CS_STRAY);
	if (p->frame.tcp->ack && known->asked - known->first < grace)
		return claim(p, known, now);
	bpf_map_delete_elem(&strays, &p->flow);
	return reset(p, COUNTER_CS_STRAY_RESET);
}

/* The owner of an entry does not have the connection, and nobody had it before: the rest are asked. */
static __always_inline int claim_anew(struct packet *p, struct lccp_header *h)
{
	const struct service *service = service_at(p->flow.cluster, p->flow.be_cluster_port);
	const struct data_server *first = service ? first_asked(service, &p->flow, 0) : 0;

	bpf_map_delete_elem(&tcbs, &p->flow);
	if (!first || !may_claim())
		return XDP_DROP;
	h->tcb = (struct lccp_tcb){};
	count(p->counters, COUNTER_CS_CLAIM);
	return send_on(p, h, first, LCCP_CLAIM, unmap_address(p->settings->address));
}

/* The last that was asked has it not either. Also a late answer, to an earlier question: hence the two walks. */
static __always_inline int unclaimed(struct packet *p)
{
	struct stray *known = bpf_map_lookup_elem(&strays, &p->flow);

	if (known)
		known->unclaimed = 1;
	return drop(p, COUNTER_CS_UNCLAIMED);
}

#endif
