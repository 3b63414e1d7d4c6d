/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Makes an entry for a connection that has begun elsewhere, or was forgotten here. The node that has its socket knows
 * the rest.
 */
#ifndef BATON_CONNECTION_SERVER_FIND_ENTER_H
#define BATON_CONNECTION_SERVER_FIND_ENTER_H

#include "connection_server/tcb.h"
#include "xdp/packet.h"

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

/* The index of the data server with this address, or NO_DATA_SERVER. */
static __always_inline u32 data_server_at(__be32 address)
{
	struct search search = { .address = address, .found = NO_DATA_SERVER };

	bpf_loop(MAX_DATA_SERVERS, compare_address, &search, 0);
	return search.found;
}

/*
 * Makes an entry for `p->flow` from the numbers of one of its packets. Returns an error if there is an entry already,
 * else 0.
 */
static __always_inline long enter(struct packet *p, const struct tcphdr *tcp, u32 payload, u32 owner,
				  const struct service *service, const struct lccp_tcb *part)
{
	u32 seq = bpf_ntohl(tcp->seq), ack = bpf_ntohl(tcp->ack_seq);
	struct tcb tcb = {
		.request_seq = seq,
		.last_seq = seq + payload,
		.last_ack = ack,
		.seen = tick_now(),
		.owner = owner,
		.previous = NO_DATA_SERVER,
		.pool = service->pool,
		.route = service->id, /* stands for no route: the request is not known */
		.counted = ack,
		.mss = bpf_ntohs(part->be_mss),
		.snd_wscale = part->snd_wscale,
		.rcv_wscale = part->rcv_wscale,
		.options = part->options,
		.state = state_at_door(service) | (tcp->fin ? TCB_FIN : 0),
	};
	long error = bpf_map_update_elem(&tcbs, &p->flow, &tcb, BPF_NOEXIST);

	if (!error)
		bpf_map_delete_elem(&strays, &p->flow);
	return error;
}

#endif
