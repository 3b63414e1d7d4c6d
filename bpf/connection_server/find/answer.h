/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Looks at a data server's message about a connection, and sends it on to another data server. */
#ifndef BATON_CONNECTION_SERVER_FIND_ANSWER_H
#define BATON_CONNECTION_SERVER_FIND_ANSWER_H

#include "connection_server/distributor.h"
#include "lccp/seal.h"
#include "xdp/packet.h"

/* The entry of the flow that the message names; 0 if there is none. Sets `p->flow` to that flow. */
static __always_inline struct tcb *answered_entry(struct packet *p, const struct lccp_header *h)
{
	__be32 cluster = unmap_address(h->flow.cluster);

	name_flow(&p->flow, unmap_address(h->flow.client), h->flow.be_client_port, cluster,
		  h->flow.be_cluster_port);
	return bpf_map_lookup_elem(&tcbs, &p->flow);
}

static __always_inline bool is_from(struct packet *p, u16 server)
{
	const struct data_server *sender = data_server(server);

	return sender && sender->flags & DATA_SERVER_PRESENT &&
	       unmap_address(sender->address) == p->frame.ip->saddr;
}

/* Turns the received message, with the client's packet that it carries, into another message, and sends it to `to`. */
static __always_inline int send_on(struct packet *p, struct lccp_header *h, const struct data_server *to,
				   enum lccp_command command, __be32 be_data)
{
	h->receptor = LCCP_RECEPTOR_DS;
	h->command = command;
	h->be_data = be_data;
	h->be_sequence = 0;
	u32 inner_bytes = p->frame.ip_bytes - LCCP_OVERHEAD_BYTES;
	struct lccp_carried carried;
	read_carried_words(&carried, p->ctx, true, inner_bytes);
	lccp_seal(p->settings, to->key, h, between(unmap_address(p->settings->address), unmap_address(to->address)),
		  &carried.ip, &carried.tcp);
	if (!write_outer(p->ctx, p->settings, to, h, inner_bytes))
		return drop(p, COUNTER_CS_NO_ROOM);
	return send(p->ctx, to);
}

#endif
