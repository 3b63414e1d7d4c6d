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

/* The headers of the client's packet in a message. */
struct carried {
	struct iphdr ip;
	struct tcphdr tcp;
};

/*
 * Reads the headers of the client's packet. False if it is not a whole TCP packet of the flow that the message names.
 */
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

/* The number of bytes of data that the carried packet has. */
static __always_inline u32 carried_payload(const struct carried *c)
{
	return bpf_ntohs(c->ip.tot_len) - (c->ip.ihl + c->tcp.doff) * 4;
}

/*
 * Whether the packet belongs to the entry's connection. A request may acknowledge all of a long response at once, so
 * the acknowledgement may be far ahead. What an aware client sends to its data server is not seen here, so its numbers
 * may differ by anything.
 */
static __always_inline bool is_of_entry(const struct tcb *tcb, const struct tcphdr *tcp)
{
	u32 seq = bpf_ntohl(tcp->seq) - tcb->last_seq + NEAR_SEQ;
	u32 ack = bpf_ntohl(tcp->ack_seq) - tcb->last_ack + NEAR_ACK;

	return (seq < 2 * NEAR_SEQ && ack < WINDOW_MAX) || tcb->options & LCCP_TCB_AWARE;
}

/*
 * Whether the packet is the request that the entry's owner was given last, or behind that, and its client has nothing
 * of the response. A late answer about an earlier request must not take the connection from its owner.
 */
static __always_inline bool is_of_last_request(const struct tcb *tcb, const struct tcphdr *tcp)
{
	return (int)(bpf_ntohl(tcp->seq) - tcb->request_seq) >= 0 && (int)(bpf_ntohl(tcp->ack_seq) - tcb->last_ack) >= 0;
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
