/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* LCCP that comes back to the connection server: REFUSED, and what is for the daemon. */
#ifndef BATON_CS_REFUSED_H
#define BATON_CS_REFUSED_H

#include "dispatcher.h"
#include "distributor.h"
#include "packet.h"
#include "../lccp.h"

/* A data server other than the one that refused; after a few tries whatever comes. */
static __always_inline u16 choose_other(const struct service *service, const struct tcb_key *flow,
					u16 refuser, u32 attempt)
{
	u16 other = refuser;

	for (int i = 0; i < 4 && other == refuser; i++)
		other = choose(service, flow, attempt + i);
	return other;
}

/*
 * A data server has no listener for this service: its ADOPT, which carries the client's packet, goes
 * to another one. When all have refused, the daemon resets the client: this frame did not come from
 * it, so the way back is the kernel's to find.
 */
static __always_inline int refused(struct packet *p, struct lccp_header *h)
{
	__be32 cluster = unmap_address(h->flow.cluster);
	struct service *service = service_at(cluster, h->flow.be_cluster_port);

	if (!service)
		return drop(p, COUNTER_LCCP_MISMATCH);
	name_flow(&p->flow, unmap_address(h->flow.client), h->flow.be_client_port, cluster,
		  h->flow.be_cluster_port);

	struct tcb *tcb = bpf_map_lookup_elem(&tcbs, &p->flow);
	if (!tcb)
		return drop(p, COUNTER_LCCP_MISMATCH);
	const struct data_server *refuser = data_server(tcb->owner);
	if (!refuser || unmap_address(refuser->address) != p->frame.ip->saddr)
		return drop(p, COUNTER_LCCP_MISMATCH);

	count(p->counters, COUNTER_CS_REFUSED);
	u16 owner = NO_DATA_SERVER;
	if (++h->tcb.attempt < ADOPT_ATTEMPTS)
		owner = choose_other(service, &p->flow, tcb->owner, h->tcb.attempt);
	const struct data_server *to = data_server(owner);
	if (!to || !(to->flags & DATA_SERVER_PRESENT)) {
		bpf_map_delete_elem(&tcbs, &p->flow);
		count(p->counters, COUNTER_CS_REFUSED_BY_ALL);
		return XDP_PASS;
	}
	tcb->owner = owner;
	count_adoption(owner);
	h->receptor = LCCP_RECEPTOR_DS;
	h->command = LCCP_ADOPT;
	h->be_data = 0;
	lccp_seal(p->settings, h);
	if (!write_outer(p->ctx, p->settings, to, h, p->frame.ip_bytes - LCCP_OVERHEAD_BYTES))
		return XDP_ABORTED;
	return send(p->ctx, to);
}

static __always_inline int receive_lccp(struct packet *p)
{
	struct frame *f = &p->frame;
	struct lccp_header h;

	if (f->ip_header != sizeof(struct iphdr) || f->ip_bytes < LCCP_OVERHEAD_BYTES ||
	    bpf_xdp_load_bytes(p->ctx, sizeof(struct ethhdr) + sizeof(struct iphdr), &h, sizeof(h)))
		return drop(p, COUNTER_LCCP_SHORT);
	if (h.receptor == LCCP_RECEPTOR_DAEMON) {
		count(p->counters, COUNTER_LCCP_TO_DAEMON);
		return XDP_PASS;
	}
	/* Verified once, where it is consumed: on this node that is the DS program. */
	if (h.receptor == LCCP_RECEPTOR_DS && p->settings->roles & ROLE_DS)
		return XDP_PASS;
	if (!lccp_verify(p->settings, p->counters, &h))
		return XDP_DROP;
	if (h.receptor != LCCP_RECEPTOR_CS || h.command != LCCP_REFUSED)
		return drop(p, COUNTER_LCCP_UNKNOWN);
	return refused(p, &h);
}

#endif
