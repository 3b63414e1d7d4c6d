/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ICMP errors about responses. A router that cannot pass a data server's packet on (too big, no way)
 * tells its source, the cluster address, and so us: but only the owner of the connection can heed it.
 * Without this, a path with a small MTU would swallow every full-sized response segment (RFC 1191).
 */
#ifndef BATON_CS_ICMP_H
#define BATON_CS_ICMP_H

#include "forwarder.h"
#include "packet.h"
#include "tcb.h"

enum {
	ICMP_UNREACHABLE = 3,
	ICMP_TIME_EXCEEDED = 11,
};

/* RFC 792: type, code, checksum, four bytes by type, then the IP header and 8 bytes of the packet. */
struct icmp_error {
	u8 type;
	u8 code;
	u16 checksum;
	u32 by_type;
	struct iphdr ip;
	__be16 source;
	__be16 dest;
	__be32 seq;
} __attribute__((packed));

/* True if the error is about a packet of a flow that has an entry; `p->flow` names it then. */
static __always_inline struct tcb *flow_in_error(struct packet *p, struct icmp_error *error)
{
	if (error->type != ICMP_UNREACHABLE && error->type != ICMP_TIME_EXCEEDED)
		return 0;
	/* Our servers send no IP options. */
	if (error->ip.version != 4 || error->ip.ihl != sizeof(struct iphdr) / 4 ||
	    error->ip.protocol != IPPROTO_TCP)
		return 0;
	name_flow(&p->flow, error->ip.daddr, error->dest, error->ip.saddr, error->source);
	return bpf_map_lookup_elem(&tcbs, &p->flow);
}

static __noinline int receive_icmp(struct packet *p)
{
	struct icmp_error error;
	u32 at = sizeof(struct ethhdr) + p->frame.ip_header;

	if (p->frame.ip_bytes < p->frame.ip_header + sizeof(error) ||
	    bpf_xdp_load_bytes(p->ctx, at, &error, sizeof(error)))
		return XDP_PASS;
	struct tcb *tcb = flow_in_error(p, &error);
	if (!tcb)
		return XDP_PASS;
	const struct data_server *owner = data_server(tcb->owner);
	/* Behind a router it would need wrapping, and what is wrapped is TCP: such errors end here. */
	if (!owner || !(owner->flags & DATA_SERVER_PRESENT) || owner->flags & DATA_SERVER_ROUTED)
		return XDP_PASS;
	count(p->counters, COUNTER_CS_ICMP);
	address_frame(p->frame.eth, owner);
	return send(p->ctx, owner);
}

#endif
