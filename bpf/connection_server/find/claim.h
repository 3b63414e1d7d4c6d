/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CLAIM: asks for the owner of a connection that has no entry here. The connection may have begun at another
 * connection server, or its entry may be lost. The data servers of the service are asked one after the other, with the
 * client's packet. The one that has the connection answers MOVED (see moved.h); if none has it, the last one answers
 * NONE.
 */
#ifndef BATON_CONNECTION_SERVER_FIND_CLAIM_H
#define BATON_CONNECTION_SERVER_FIND_CLAIM_H

#include "connection_server/distributor.h"
#include "connection_server/find/answer.h"
#include "connection_server/find/claim_budget.h"
#include "connection_server/find/local_data_server.h"
#include "connection_server/go_on.h"
#include "connection_server/reply.h"
#include "include/bounds.h"
#include "include/clock.h"
#include "routing/dispatcher.h"
#include "xdp/packet.h"

enum {
	/*
	 * ns: without an answer for so long, the question or the answer counts as lost. Clients retransmit later than
	 * that.
	 */
	CLAIM_PATIENCE = 1 << 27,
	ASKED_FIRST = 8, /* how many choices are tried: some may be gone, or this very node */
	CLAIM_OF_HEADERS = LCCP_CLAIM | LCCP_FLAG_HEADERS << 8, /* as distribute() takes a command with flags */
};

/*
 * The data server with which a walk begins, or 0 if there is none to ask. Each walk begins with another one, in case
 * the one before is dead. Where the policy chooses by the client's address, the first walk begins with the data server
 * chosen for this client.
 */
static __always_inline const struct data_server *first_asked(const struct service *service,
							     const struct tcb_key *flow, u32 walks)
{
	const struct pool *pool = pool_at(service->pool);

	if (!pool || !pool->choices)
		return 0;
	u32 port = pool->policy == POLICY_CLIENT ? 0 : flow->be_client_port;
	u32 turn = walks + hash_client(flow->client, pool->hash_seed ^ port);
	for (int i = 0; i < ASKED_FIRST; i++) {
		u32 at = pool->first_choice + (turn + i) % pool->choices;
		u16 *choice = bpf_map_lookup_elem(&choices, &at);
		const struct data_server *first = choice ? data_server(*choice) : 0;
		if (first && (first->flags & (DATA_SERVER_PRESENT | DATA_SERVER_LOCAL)) == DATA_SERVER_PRESENT)
			return first;
	}
	return 0;
}

/*
 * Cuts the data off the client's packet. Lengths and the IP header's checksum are corrected. The TCP checksum is left
 * as it was, because nobody delivers such a packet.
 */
static __noinline bool cut_data(struct packet *p)
{
	u32 left = p->frame.ip_header + p->frame.tcp_header;
	long less = (long)(sizeof(struct ethhdr) + left) - (long)bpf_xdp_get_buff_len(p->ctx);

	if (less < 0 && bpf_xdp_adjust_tail(p->ctx, less))
		return false;
	struct iphdr *ip = (void *)(long)p->ctx->data + sizeof(struct ethhdr);
	struct tcphdr *tcp = (void *)ip + BOUNDED(p->frame.ip_header, sizeof(*ip), 60);
	if ((void *)(ip + 1) > (void *)(long)p->ctx->data_end || (void *)(tcp + 1) > (void *)(long)p->ctx->data_end)
		return false;
	/* Changing the frame has invalidated the pointers to its headers, so they are set anew. */
	p->frame.eth = (void *)(long)p->ctx->data;
	p->frame.ip = ip;
	p->frame.tcp = tcp;
	u32 sum = (u16)~ip->check + (u16)~ip->tot_len + bpf_htons(left);
	ip->tot_len = bpf_htons(left);
	ip->check = checksum_fold(sum);
	p->frame.ip_bytes = left;
	p->frame.payload = 0;
	return true;
}

/* Passes the packet up, because this very node has its connection. */
static __always_inline int pass_found(struct packet *p)
{
	count(p->counters, COUNTER_CS_MOVED);
	count(p->counters, COUNTER_CS_FORWARD);
	count_bytes(p->counters, COUNTER_CS_FORWARD_BYTES, p->frame.ip_bytes);
	if (is_merged(p))
		count(p->counters, COUNTER_CS_MERGED);
	return pass_to_own(p->ctx);
}

/* Sends the CLAIM to `first`. `how` says whether the client's data goes with it. */
static __always_inline int send_claim(struct packet *p, const struct data_server *first, int how)
{
	u32 command = LCCP_CLAIM;

	if (how == CLAIM_HEADERS && p->frame.payload) {
		if (!cut_data(p))
			return drop(p, COUNTER_CS_NO_ROOM);
		count(p->counters, COUNTER_CS_CLAIM_CUT);
		command = CLAIM_OF_HEADERS;
	}
	count(p->counters, COUNTER_CS_CLAIM);
	return distribute(p, first, command, unmap_address(p->settings->address), &(struct lccp_tcb){});
}

static __noinline void note_asked_now(struct packet *p, struct stray *stray, u64 now, bool begins)
{
	struct stray asked = { .first = now, .asked = now, .walks = 1, .begins = begins };

	if (!stray) {
		bpf_map_update_elem(&strays, &p->flow, &asked, BPF_ANY);
		return;
	}
	stray->asked = now;
	stray->walks++;
	stray->unclaimed = 0;
	stray->begins = begins;
}

/*
 * Asks the data servers for the connection of this packet. `stray` is what is known of its flow, or 0 if this is the
 * flow's first packet: a flow is remembered once it has been asked for. `begins` says that the packet begins a
 * connection if nobody has it.
 */
static __noinline int claim(struct packet *p, struct stray *stray, u64 now, bool begins)
{
	const struct data_server *first = first_asked(p->service, &p->flow, stray ? stray->walks : 0);

	if (found_here(p))
		return pass_found(p);
	if (!first) {
		if (stray)
			stray->unclaimed = 1;
		return drop(p, COUNTER_CS_STRAY);
	}
	if (!fits_in_lccp(p))
		return drop(p, COUNTER_CS_TOO_BIG);
	int how = may_claim(p);
	if (how > CLAIM_WHOLE)
		return drop(p, BOUNDED(how, 1, COUNTER_MAX - 1));
	note_asked_now(p, stray, now, begins && how == CLAIM_WHOLE);
	return send_claim(p, first, how);
}

/*
 * Asks the data servers for the connection of a RST that has no entry here. The owner must get the RST, or its socket
 * would stay for minutes. A client sends a RST only once, so it does not wait for the answer to an earlier CLAIM.
 * Nothing is remembered of it, and nobody answers (see data_server/claim.h).
 */
static __noinline int claim_reset(struct packet *p)
{
	const struct data_server *first = first_asked(p->service, &p->flow, 0);

	if (found_here(p))
		return pass_found(p);
	if (!first)
		return drop(p, COUNTER_CS_RST);
	if (!fits_in_lccp(p))
		return drop(p, COUNTER_CS_TOO_BIG);
	int how = may_claim(p);
	if (how > CLAIM_WHOLE)
		return drop(p, BOUNDED(how, 1, COUNTER_MAX - 1));
	/* TCP stacks send no RST with data. */
	if (how == CLAIM_HEADERS && p->frame.payload)
		return drop(p, COUNTER_CS_CLAIM_CUT);
	count(p->counters, COUNTER_CS_CLAIM);
	return distribute(p, first, LCCP_CLAIM, unmap_address(p->settings->address), &(struct lccp_tcb){});
}

/*
 * Handles the first packet of a flow that nobody here knows. A packet without ACK belongs to no connection, so nobody
 * is asked and the flow counts as unclaimed.
 */
static __always_inline int new_stray(struct packet *p, u64 now)
{
	struct stray stray = { .first = now, .asked = now, .unclaimed = 1 };

	if (p->frame.tcp->ack)
		return claim(p, 0, now, false);
	bpf_map_update_elem(&strays, &p->flow, &stray, BPF_ANY);
	return drop(p, COUNTER_CS_STRAY);
}

/*
 * Handles a packet of a connection that nobody here knows. The data servers are asked in one walk. If nobody has the
 * connection, its packets are dropped at first, because the beginning of its request may be on its way behind this
 * packet. A packet after the grace period starts one more walk, because the first may have missed a connection that
 * was being handed over. If nobody has it then, the client gets a RST.
 */
static __always_inline int stray(struct packet *p)
{
	u64 now = bpf_ktime_get_coarse_ns();
	u64 grace = p->settings->stray_grace_ns;
	struct stray *known = bpf_map_lookup_elem(&strays, &p->flow);

	if (!known)
		return new_stray(p, now);
	if (!known->unclaimed && now - known->asked >= CLAIM_PATIENCE)
		return claim(p, known, now, false);
	if (!known->unclaimed || now - known->first < grace)
		return drop(p, COUNTER_CS_STRAY);
	if (p->frame.tcp->ack && known->asked - known->first < grace)
		return claim(p, known, now, false);
	bpf_map_delete_elem(&strays, &p->flow);
	return reset(p, COUNTER_CS_STRAY_RESET);
}

/*
 * Asks the data servers for the connection of first data. The connection server that was in front before may have sent
 * the same data to a data server, which may have carried out the request. The connection begins here only if nobody
 * has it.
 */
static __always_inline int claim_first(struct packet *p)
{
	u64 now = bpf_ktime_get_coarse_ns();
	struct stray *known = bpf_map_lookup_elem(&strays, &p->flow);

	if (known && now - known->asked < CLAIM_PATIENCE)
		return drop(p, COUNTER_CS_STRAY);
	return claim(p, known, now, true);
}

/*
 * Whether the data servers were asked for the connection that this packet begins, and none has it. True also if there
 * is nobody to ask.
 */
static __noinline bool is_nobodys(struct packet *p)
{
	const struct stray *known = bpf_map_lookup_elem(&strays, &p->flow);

	if (!known || !known->unclaimed)
		return !first_asked(p->service, &p->flow, 0);
	bpf_map_delete_elem(&strays, &p->flow);
	return true;
}

/*
 * Deletes an entry whose owner does not have the connection, and asks the data servers, beginning with the first of a
 * walk.
 */
static __always_inline int claim_anew(struct packet *p, struct lccp_header *h)
{
	const struct service *service = service_at(p->flow.cluster, p->flow.be_cluster_port);
	const struct data_server *first = service ? first_asked(service, &p->flow, 0) : 0;

	bpf_map_delete_elem(&tcbs, &p->flow);
	if (!first || !may_claim_known(p->settings))
		return XDP_DROP;
	h->tcb = (struct lccp_tcb){};
	count(p->counters, COUNTER_CS_CLAIM);
	return send_on(p, h, first, LCCP_CLAIM, unmap_address(p->settings->address));
}

/*
 * Handles NONE from the last data server of a walk: nobody has the connection. The answer may be late and belong to an
 * earlier CLAIM, which is why there are two walks.
 */
static __always_inline int unclaimed(struct packet *p)
{
	struct stray *known = bpf_map_lookup_elem(&strays, &p->flow);

	count(p->counters, COUNTER_CS_UNCLAIMED);
	if (!known)
		return XDP_DROP;
	known->unclaimed = 1;
	return known->begins ? GO_ON_WITH_CARRIED : XDP_DROP;
}

#endif
