/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One packet at the data server. */
#ifndef BATON_DATA_SERVER_PACKET_H
#define BATON_DATA_SERVER_PACKET_H

#include "include/count.h"
#include "include/frame.h"

enum {
	HEADERS_MAX = sizeof(struct ethhdr) + 60 + 60, /* Ethernet, longest IPv4, longest TCP */
	OUTER_BYTES = LCCP_OVERHEAD_BYTES,
	INNER_AT = sizeof(struct ethhdr) + OUTER_BYTES,
	LCCP_AT = sizeof(struct ethhdr) + sizeof(struct iphdr),
};

/*
 * Set before loading if this node is also a connection server: only then are a connection server's maps here, and the
 * code that uses them.
 */
const volatile u32 is_also_cs = 0;

enum {
	NOTHING = ~0U,
};

struct arrival {
	struct __sk_buff *skb;
	const struct settings *settings;
	struct counters *counters;
	bool again;    /* this message has come before; since then its connection may have moved on */
	bool keeps_out; /* the packet's data does not get in, or only later; what it acknowledges does */
	bool broken;   /* it goes to the agent as DOOR_BROKEN */
	bool ends;     /* it is delivered as a FIN */
	bool deserted; /* no server listens here, so another data server is to answer, if there is one */
	u32 sent_in;   /* AGENT_, LEAVE_, EARLY_, QUIET_ or MOVE_METADATA: this node's daemon or agent sent it in; else 0 */
	u32 mark;      /* of a packet that was here before (enum mark); else 0 */
	u32 end;       /* sequence number that the packet's socket expected when it was looked at: the socket is ended
			  with that, or the keeper of the packet's data is told. If the socket has accepted more since
			  then, it does not end, and nothing is lost: the kernel believes a RST only with the number
			  that it expects at that moment (RFC 9293, 3.5.3) */
	u32 kept;      /* so many bytes of its payload are delivered; 0: all, NOTHING: none */
	__be32 sender; /* short address of the node that sent this message */
	__be32 keeper; /* short address of the keeper of its data, which sends it until RECEIVED; 0: its client does */
	__be32 asker;  /* short address of the connection server that sent this packet; 0: another data server did */
	__be32 next;   /* short address of the data server that this packet's connection goes to */
	u16 route;     /* route of the request that begins with this packet, to be counted */
	u16 pool;      /* pool of that request, to be counted; NO_POOL: there is none */
};

static __always_inline int discard(struct arrival *a, enum counter why)
{
	count(a->counters, why);
	return TCX_DISCARD;
}

/* The headers of the client's packet, inside a message or plain: where its TCP header is, and what says whose it is. */
struct inner {
	struct iphdr ip;
	struct tcphdr tcp;
	u32 tcp_at; /* from the start of the frame */
};

/* Returns the length of the payload of a packet whose headers have been checked. */
static __always_inline u32 payload_of(const struct inner *in)
{
	return bpf_ntohs(in->ip.tot_len) - (in->ip.ihl + in->tcp.doff) * 4;
}

static __always_inline u32 payload_at(const struct inner *in)
{
	return in->tcp_at + in->tcp.doff * 4;
}

/*
 * A message that has come, or is made of a packet, and the packet. They are here because the stack has no room for
 * them.
 */
struct scratch {
	struct lccp_header header;
	struct inner packet;
	u32 bytes;                 /* length of the packet inside a message, or of its body */
	/* As struct arrival has them, for the next stage: */
	__be32 sender;
	__be32 asker;
	u32 mark;
	u32 again;
	u32 sent_in;
};

MAP(received, PERCPU_ARRAY, 1, u32, struct scratch);

static __always_inline struct scratch *scratch_of_this_cpu(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&received, &zero);
}

/*
 * The stage that a packet goes to next. Stages are global functions: the verifier walks each of them once, by itself,
 * and not once more for each way that may lead to it.
 */
enum stage {
	STAGE_LCCP = 199,          /* verify_message() */
	STAGE_MESSAGE = 200,       /* receive_message() */
	STAGE_OWNED = 201,         /* receive_owned() */
	STAGE_STRAY = 202,         /* receive_stray() */
	STAGE_DIRECT = 203,        /* receive_direct() */
};

/*
 * Leaves the packet to the next stage. `asker` is the connection server that sent the packet, if that is known; else 0.
 */
static __always_inline int leave_to(enum stage stage, const struct arrival *a, __be32 asker)
{
	struct scratch *s = scratch_of_this_cpu();

	if (!s)
		return TCX_DISCARD;
	s->sender = a->sender;
	s->asker = asker;
	s->mark = a->mark;
	s->again = a->again;
	s->sent_in = a->sent_in;
	return stage;
}

/* Takes up the packet in the next stage. False if this node has no settings or counters. */
static __always_inline bool resume_arrival(struct arrival *a, struct __sk_buff *skb, const struct scratch *s)
{
	u32 zero = 0;

	*a = (struct arrival){
		.skb = skb,
		.settings = bpf_map_lookup_elem(&settings, &zero),
		.counters = counters_of_this_cpu(),
		.sender = s->sender,
		.asker = s->asker,
		.mark = s->mark,
		.again = s->again,
		.sent_in = s->sent_in,
		.pool = NO_POOL,
	};
	return a->settings && a->counters;
}

/* Takes off the mark of a packet that was here before: a socket would inherit it (tcp_fwmark_accept). */
static __always_inline void take_mark(struct arrival *a)
{
	u32 mark = a->skb->mark;

	if (mark - MARK_BEHIND_BATCH > MARK_REQUEUED - MARK_BEHIND_BATCH)
		return;
	a->mark = mark;
	a->skb->mark = 0;
}

/* Returns how often the packet was put behind the batch that it came in. */
static __always_inline u32 rounds_of(const struct arrival *a)
{
	if (a->mark == MARK_BEHIND_AGAIN)
		return 2;
	return a->mark == MARK_BEHIND_BATCH;
}

/* Returns the mark for a packet that is put behind what is before it (once more). */
static __always_inline u32 mark_behind(const struct arrival *a)
{
	return rounds_of(a) ? MARK_BEHIND_AGAIN : MARK_BEHIND_BATCH;
}

/* Whether the agent of this node has made this packet. */
static __always_inline bool is_of_agent(const struct arrival *a)
{
	return a->sent_in == AGENT_METADATA || a->mark == MARK_OF_AGENT;
}

/*
 * Returns what this node says of a frame that it sends in itself; 0 for any other frame: none that has come by a card
 * has such metadata, and no client's can.
 */
static __always_inline u32 sent_in_as(const struct __sk_buff *skb)
{
	const u32 *meta = (void *)(long)skb->data_meta;

	if ((void *)(meta + 1) > (void *)(long)skb->data)
		return 0;
	u32 as = *meta;
	return (as >= AGENT_METADATA && as <= QUIET_METADATA) || as >> 16 == MOVE_METADATA >> 16 ? as : 0;
}

/* Whether the agent has a connection of its own move with this packet. */
static __always_inline bool is_move(const struct arrival *a)
{
	return a->sent_in >> 16 == MOVE_METADATA >> 16;
}

/* Returns whatever holds these ports here: connection, TIME_WAIT or listener; 0: nothing. The caller releases it. */
static __always_inline struct bpf_sock *lookup(struct __sk_buff *skb, __be32 client, __be32 cluster,
					       __be16 client_port, __be16 cluster_port)
{
	struct bpf_sock_tuple tuple = {
		.ipv4.saddr = client,
		.ipv4.daddr = cluster,
		.ipv4.sport = client_port,
		.ipv4.dport = cluster_port,
	};

	return bpf_skc_lookup_tcp(skb, &tuple, sizeof(tuple.ipv4), BPF_F_CURRENT_NETNS, 0);
}

/* Returns the key of the connection that a message is about. */
static __always_inline struct tcb_key flow_of(const struct lccp_header *h)
{
	struct tcb_key flow = {
		.cluster = unmap_address(h->flow.cluster),
		.be_client_port = h->flow.be_client_port,
		.be_cluster_port = h->flow.be_cluster_port,
	};

	__builtin_memcpy(flow.client, h->flow.client, 16);
	return flow;
}

/* Takes the outer IP and LCCP headers off. */
static __always_inline bool strip(struct __sk_buff *skb)
{
	return bpf_skb_adjust_room(skb, -OUTER_BYTES, BPF_ADJ_ROOM_MAC, BPF_F_ADJ_ROOM_FIXED_GSO) == 0;
}

#endif
