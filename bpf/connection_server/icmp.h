/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ICMP errors about responses. A router that cannot pass a data server's packet on (too big, no route) tells the
 * packet's source. That is the cluster address, so the error comes here, but only the owner of the connection can act
 * on it. Without this, a path with a small MTU would swallow every full-sized response segment (RFC 1191).
 */
#ifndef BATON_CONNECTION_SERVER_ICMP_H
#define BATON_CONNECTION_SERVER_ICMP_H

#include "connection_server/forwarder.h"
#include "connection_server/tcb.h"
#include "xdp/icmp_error.h"
#include "xdp/packet.h"

static __noinline int receive_icmp(struct packet *p)
{
	if (!name_flow_in_error(p))
		return XDP_PASS;
	struct tcb *tcb = bpf_map_lookup_elem(&tcbs, &p->flow);
	if (!tcb)
		return XDP_PASS;
	const struct data_server *owner = data_server(tcb->owner);
	/*
	 * To reach an owner behind a router the error would have to travel inside a message, which carries TCP only. So
	 * such an owner hears of no path MTU.
	 */
	if (!owner || !(owner->flags & DATA_SERVER_PRESENT) || owner->flags & DATA_SERVER_ROUTED)
		return XDP_PASS;
	count(p->counters, COUNTER_CS_ICMP);
	address_frame(p->frame.eth, owner);
	return send(p->ctx, owner);
}

#endif
