/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Answers to the connection server of this very node. Its program is in front of this one, at the same interface, and
 * nothing that is sent from here ever reaches it. So what it would do to its entries on NONE, MOVED and REFUSED is done
 * here, and what it would send leaves from here.
 */
#ifndef BATON_DATA_SERVER_LOCAL_CONNECTION_SERVER_H
#define BATON_DATA_SERVER_LOCAL_CONNECTION_SERVER_H

#include "connection_server/find/enter.h"
#include "connection_server/find/none.h"
#include "connection_server/find/refused.h"
#include "data_server/packet.h"
#include "data_server/send.h"

static __always_inline bool is_own_cs(const struct data_server *asker)
{
	return is_also_cs && asker && asker->flags & DATA_SERVER_LOCAL;
}

static __always_inline struct tcb *own_entry(const struct lccp_header *h, struct tcb_key *flow)
{
	*flow = flow_of(h);
	return bpf_map_lookup_elem(&tcbs, flow);
}

static __always_inline bool is_this_node(u16 server)
{
	const struct data_server *found = data_server(server);

	return found && found->flags & DATA_SERVER_LOCAL;
}

/*
 * Returns data server `server` if it is another node that is there and can be reached; 0 otherwise, and for this node.
 */
static __always_inline const struct data_server *elsewhere(u16 server)
{
	const struct data_server *found = data_server(server);

	if (!found || !(found->flags & DATA_SERVER_PRESENT) || found->flags & DATA_SERVER_LOCAL)
		return 0;
	return found;
}

/*
 * Passes the message up to the daemon, which resets the client. Its source address becomes the client's, because the
 * kernel takes nothing from its own address. The key is the one that this node has for itself, because the client has
 * none.
 */
static __always_inline int pass_up(struct arrival *a, struct lccp_header *h, const struct inner *in,
				   const struct data_server *own_cs, u8 command, u32 why)
{
	const u32 ip_at = sizeof(struct ethhdr);
	__be32 own = unmap_address(a->settings->address), client = in->ip.saddr;

	h->receptor = LCCP_RECEPTOR_CS;
	h->command = command;
	h->be_data = bpf_htonl(why);
	seal_at_ds(a, own_cs->key, h, between(client, own), bpf_ntohs(in->ip.tot_len));
	if (!write_outer_at_ds(a, own_cs, own, h, bpf_ntohs(in->ip.tot_len)) ||
	    bpf_l3_csum_replace(a->skb, ip_at + __builtin_offsetof(struct iphdr, check), own, client, 4) ||
	    bpf_skb_store_bytes(a->skb, ip_at + __builtin_offsetof(struct iphdr, saddr), &client,
				sizeof(client), BPF_F_RECOMPUTE_CSUM))
		return TCX_DISCARD;
	return TCX_GO_ON;
}

/*
 * Handles NONE: see connection_server/find/none.h. No data server is asked from here: without the entry the client's
 * next packet is claimed.
 */
static __noinline int none_here(struct arrival *a, const struct lccp_header *h, const struct inner *in)
{
	struct tcb_key flow;
	struct tcb *tcb = own_entry(h, &flow);

	if (!tcb || !is_this_node(tcb->owner))
		return discard(a, COUNTER_DS_NO_SOCKET);
	count(a->counters, COUNTER_DS_NONE);
	if (!may_be_there(tcb, &in->tcp, payload_of(in) || in->tcp.fin))
		bpf_map_delete_elem(&tcbs, &flow);
	return discard(a, COUNTER_CS_NONE);
}

/* Handles NONE at the end of a CLAIM: see unclaimed() of connection_server/find/claim.h. */
static __noinline int unclaimed_here(struct arrival *a, const struct lccp_header *h)
{
	struct tcb_key flow = flow_of(h);
	struct stray *known = bpf_map_lookup_elem(&strays, &flow);
	if (known)
		known->unclaimed = 1;
	return discard(a, COUNTER_CS_UNCLAIMED);
}

/* The search for another data server than this one. */
struct other_search {
	struct tcb_key flow;
	u32 pool;
	u16 owner;                 /* this one */
	u16 found;
	u32 attempt;               /* how many have refused so far */
};

static long look_elsewhere(u32 index, struct other_search *s)
{
	if (++s->attempt >= ADOPT_ATTEMPTS)
		return 1;
	s->found = choose_other(s->pool, &s->flow, s->owner, s->attempt);
	return elsewhere(s->found) != 0;
}

/*
 * Handles REFUSED: see connection_server/find/refused.h. This node is not asked again, as other nodes are: its listener
 * will not have come meanwhile.
 */
static __noinline int refused_here(struct arrival *a, struct lccp_header *h, const struct inner *in,
				   const struct data_server *own_cs, enum lccp_refusal why)
{
	struct other_search search = { .attempt = h->tcb.attempt, .found = NO_DATA_SERVER };
	struct tcb *tcb = own_entry(h, &search.flow);

	if (!tcb || !is_this_node(tcb->owner) || !is_of_last_request(tcb, &in->tcp))
		return discard(a, COUNTER_LCCP_MISMATCH);
	count(a->counters, COUNTER_CS_REFUSED);
	search.pool = tcb->pool;
	search.owner = tcb->owner;
	bpf_loop(ADOPT_ATTEMPTS, look_elsewhere, &search, 0);
	h->tcb.attempt = search.attempt;
	const struct data_server *to = elsewhere(search.found);
	if (!to) {
		if (is_at_door(tcb))
			tally_request(tcb->route, tcb->pool);
		tally_unavailable(tcb->route, tcb->pool);
		bpf_map_delete_elem(&tcbs, &search.flow);
		count(a->counters, COUNTER_CS_REFUSED_BY_ALL);
		return pass_up(a, h, in, own_cs, LCCP_REFUSED, why);
	}
	if (!is_at_door(tcb))
		TALLY(server_tally(tcb->owner), taken_back);
	tally_connection(search.found, is_at_door(tcb));
	give_to(tcb, search.found, NO_DATA_SERVER);
	tcb->attempt = h->tcb.attempt;
	h->receptor = LCCP_RECEPTOR_DS;
	h->command = LCCP_ADOPT;
	h->be_data = unmap_address(a->settings->address);
	if (!make_message(a, h, in, to, unmap_address(to->address)))
		return TCX_DISCARD;
	return bpf_redirect(to->ifindex, 0);
}

#endif
