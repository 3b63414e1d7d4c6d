/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * MOVED: a data server has the connection that was asked for, and has delivered the packet. The entry
 * is made anew, and pinned: where requests begin only who has seen all of them can know.
 */
#ifndef BATON_CS_MOVED_H
#define BATON_CS_MOVED_H

#include "answer.h"
#include "tcb.h"

struct search {
	__be32 address;
	u32 found;
};

static long compare_address(u32 index, struct search *search)
{
	const struct data_server *server = data_server(index);

	if (!server || !(server->flags & DATA_SERVER_PRESENT) ||
	    unmap_address(server->address) != search->address)
		return 0;
	search->found = index;
	return 1;
}

/* The data server that sent this message. */
static __always_inline u32 sender_index(struct packet *p)
{
	struct search search = { .address = p->frame.ip->saddr, .found = NO_DATA_SERVER };

	bpf_loop(MAX_DATA_SERVERS, compare_address, &search, 0);
	return search.found;
}

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

static __noinline int moved(struct packet *p, struct lccp_header *h)
{
	struct carried c;
	u32 owner = sender_index(p);

	if (answered_entry(p, h) || owner == NO_DATA_SERVER || !read_carried(p, h, &c))
		return drop(p, COUNTER_LCCP_MISMATCH);
	const struct service *service = service_at(p->flow.cluster, p->flow.be_cluster_port);
	if (!service)
		return drop(p, COUNTER_LCCP_MISMATCH);

	u32 seq = bpf_ntohl(c.tcp.seq), ack = bpf_ntohl(c.tcp.ack_seq);
	struct tcb tcb = {
		.request_seq = seq,
		.response_start = ack,
		.last_seq = seq + bpf_ntohs(c.ip.tot_len) - (c.ip.ihl + c.tcp.doff) * 4,
		.last_ack = ack,
		.seen = tick_now(),
		.owner = owner,
		.previous = NO_DATA_SERVER,
		.pool = service->pool,
		.mss = bpf_ntohs(h->tcb.be_mss),
		.snd_wscale = h->tcb.snd_wscale,
		.rcv_wscale = h->tcb.rcv_wscale,
		.options = h->tcb.options,
		.state = TCB_PINNED | (c.tcp.fin ? TCB_FIN : 0),
	};

	/* A connection that has begun on these ports meanwhile has its entry. */
	if (bpf_map_update_elem(&tcbs, &p->flow, &tcb, BPF_NOEXIST))
		return drop(p, COUNTER_CS_TCB_FULL);
	bpf_map_delete_elem(&strays, &p->flow);
	return drop(p, COUNTER_CS_MOVED);
}

#endif
