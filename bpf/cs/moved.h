/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * MOVED: a data server has the connection that was asked for, and has delivered the packet. A connection
 * that has begun on these ports meanwhile has its entry already. Or its owner has handed it to another one.
 */
#ifndef BATON_CS_MOVED_H
#define BATON_CS_MOVED_H

#include "answer.h"
#include "claim_budget.h"
#include "enter.h"
#include "go_on.h"
#include "moved_on.h"
#include "quiet_point.h"
#include "tcb.h"

/* The headers of the client's packet in a message. */
struct carried {
	struct iphdr ip;
	struct tcphdr tcp;
};

/* False if it is not a whole TCP packet of the flow that the message names. */
static __always_inline bool read_carried(struct packet *p, const struct lccp_header *h, struct carried *c)
{
	u32 at = sizeof(struct ethhdr) + LCCP_OVERHEAD_BYTES;

	if (bpf_xdp_load_bytes(p->ctx, at, &c->ip, sizeof(c->ip)) || c->ip.version != 4 ||
	    c->ip.ihl < sizeof(struct iphdr) / 4 || c->ip.protocol != IPPROTO_TCP ||
	    bpf_ntohs(c->ip.tot_len) + LCCP_OVERHEAD_BYTES != p->frame.ip_bytes)
		return false;
	if (bpf_xdp_load_bytes(p->ctx, at + c->ip.ihl * 4, &c->tcp, sizeof(c->tcp)) ||
	    c->tcp.doff < sizeof(struct tcphdr) / 4 || (c->ip.ihl + c->tcp.doff) * 4 > bpf_ntohs(c->ip.tot_len))
		return false;
	return is_mapped(h->flow.client, c->ip.saddr) && is_mapped(h->flow.cluster, c->ip.daddr) &&
	       c->tcp.source == h->flow.be_client_port && c->tcp.dest == h->flow.be_cluster_port;
}

/*
 * The owner has handed the connection on, with the request that the message carries; or it has it, and the connection is at
 * rest. Only the owner that the entry names is believed: word of an earlier one comes late, and the next packet brings it to
 * whoever has the connection.
 */
static __always_inline int moved_on(struct packet *p, const struct lccp_header *h, struct tcb *tcb)
{
	u32 next = data_server_at(h->be_data);
	struct carried c;

	if (!is_from(p, tcb->owner) || next == NO_DATA_SERVER || !read_carried(p, h, &c))
		return drop(p, COUNTER_LCCP_MISMATCH);
	if (next == tcb->owner) {
		note_quiet_point(p, tcb, &c.tcp);
		return XDP_DROP;
	}
	note_moved_on(tcb, next, h, &c.tcp);
	return drop(p, COUNTER_CS_MOVED_ON);
}

static __noinline int moved(struct packet *p, struct lccp_header *h)
{
	struct tcb *held = answered_entry(p, h);
	struct carried c;

	if (held && h->be_data)
		return moved_on(p, h, held);
	u32 owner = data_server_at(h->be_data ? h->be_data : p->frame.ip->saddr);
	if (held || owner == NO_DATA_SERVER || !read_carried(p, h, &c))
		return drop(p, COUNTER_LCCP_MISMATCH);
	const struct service *service = service_at(p->flow.cluster, p->flow.be_cluster_port);
	if (!service)
		return drop(p, COUNTER_LCCP_MISMATCH);

	u32 payload = bpf_ntohs(c.ip.tot_len) - (c.ip.ihl + c.tcp.doff) * 4;
	if (enter(p, &c.tcp, payload, owner, service, &h->tcb))
		return drop(p, COUNTER_LCCP_MISMATCH);
	believe(&p->flow);
	count(p->counters, COUNTER_CS_MOVED);
	/* What nobody has judged was not delivered: see ds/claim.h. */
	return service->flags & SERVICE_OWNER && payload && !h->be_data ? GO_ON_WITH_CARRIED : XDP_DROP;
}

#endif
