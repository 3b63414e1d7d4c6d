/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A data server's programs on this machine: bpf/data_server as it stands, with as much of a kernel around it as one
 * connection needs. There is only one connection, so a map by connections has one place.
 */
#include <string.h>

#include "door.h"

struct place_of {
	bool is_taken;
	union {
		struct door door;
		struct passing passing;
		struct given given;
		struct expected expected;
		struct kept kept;
		struct response response;
		struct have_read have_read;
		u32 word;
	};
};

/* A node: its maps, and its socket. */
struct node {
	struct settings settings;
	struct place_of doors_begun, passing, given, expected, keeping;
	struct place_of doors, responses, have_read, telling; /* these end with the socket */
	struct ring ring;
	u64 handovers, turns[POOLS], asking;
	struct model_socket socket;
	struct bpf_sock full;
	struct tcp_sock tcp;
	struct bpf_tcp_sock seen;
	bool is_deserted;
};

static _Thread_local struct node nodes[NODES], *here;
static _Thread_local struct pool all_pools[POOLS];
static _Thread_local struct service service;
static _Thread_local struct data_server servers[NODES], asker;
static _Thread_local struct counters counted;
static _Thread_local struct text text;
static _Thread_local struct scratch scratch;
static _Thread_local u64 scrap[64];
static _Thread_local u64 now_ns;
static _Thread_local u16 chosen[POOLS * NODES];
static _Thread_local struct bpf_sock listener = { .state = STATE_LISTEN }, reader = { .state = STATE_LISTEN };

/* The frame that the program handles. */
static _Thread_local struct {
	struct __sk_buff skb;
	u8 bytes[HEADROOM + FRAME_MOST];
	u32 begin;
	u32 assigned;
	u32 bound;
} frame;
static _Thread_local struct model_result *result;
static _Thread_local u32 redirected;
static _Thread_local u64 record[(sizeof(struct early) + EARLY_MERGED_BYTES) / sizeof(u64) + 1];

static u8 *frame_at(s32 at)
{
	return frame.bytes + frame.begin + at;
}

/* Maps. */

static void *route_of(const struct route_key *key)
{
	static u32 second = 1, two = 2;

	if (!memcmp(key->path, "/b", 2))
		return &second;
	return memcmp(key->path, "/c", 2) ? 0 : &two;
}

static void *peer_of(u32 address)
{
	switch (address) {
	case FIRST_NODE:
		return &servers[0];
	case SECOND_NODE:
		return &servers[1];
	case THIRD_NODE:
		return &servers[2];
	case CONNECTION_SERVER:
		return &asker;
	default:
		return 0;
	}
}

static void *nth(void *first, u32 size, u32 count, const void *key)
{
	u32 index = *(const u32 *)key;

	return index < count ? (u8 *)first + index * size : 0;
}

static void *service_of(const struct service_key *key)
{
	return key->cluster == CLUSTER && key->be_port == CLUSTER_PORT ? &service : 0;
}

static struct place_of *place_in(const void *map, size_t *size)
{
#define PLACE(name, type)                                                                    \
	if (map == &name) {                                                                  \
		*size = sizeof(type);                                                        \
		return &here->name;                                                          \
	}
	PLACE(doors_begun, struct door)
	PLACE(passing, struct passing)
	PLACE(given, struct given)
	PLACE(expected, struct expected)
	PLACE(keeping, struct kept)
	PLACE(doors, struct door)
	PLACE(responses, struct response)
	PLACE(have_read, struct have_read)
	PLACE(telling, u32)
#undef PLACE
	return 0;
}

void *bpf_map_lookup_elem(const void *map, const void *key)
{
	size_t size;

	if (map == &settings)
		return &here->settings;
	if (map == &counters)
		return &counted;
	if (map == &texts)
		return &text;
	if (map == &received)
		return &scratch;
	if (map == &services)
		return service_of(key);
	if (map == &pools)
		return nth(all_pools, sizeof(all_pools[0]), POOLS, key);
	if (map == &routes)
		return route_of(key);
	if (map == &choices)
		return nth(chosen, sizeof(chosen[0]), POOLS * NODES, key);
	if (map == &data_servers)
		return nth(servers, sizeof(servers[0]), NODES, key);
	if (map == &turns)
		return nth(here->turns, sizeof(here->turns[0]), POOLS, key);
	if (map == &peers)
		return peer_of(*(const u32 *)key);
	if (map == &rings)
		return &here->ring;
	if (map == &handovers)
		return &here->handovers;
	if (map == &door_tallies)
		return scrap;
	struct place_of *place = place_in(map, &size);
	return place && place->is_taken ? &place->door : 0;
}

long bpf_map_update_elem(const void *map, const void *key, const void *value, u64 flags)
{
	size_t size;
	struct place_of *place = place_in(map, &size);

	if (!place)
		return -1;
	memcpy(&place->door, value, size);
	place->is_taken = true;
	return 0;
}

long bpf_map_delete_elem(const void *map, const void *key)
{
	size_t size;
	struct place_of *place = place_in(map, &size);

	if (!place || !place->is_taken)
		return -1;
	place->is_taken = false;
	return 0;
}

void *bpf_sk_storage_get(const void *map, void *sk, void *value, u64 flags)
{
	size_t size;
	struct place_of *place = place_in(map, &size);

	if (!place || sk != &here->full)
		return 0;
	if (!place->is_taken && flags & BPF_SK_STORAGE_GET_F_CREATE) {
		memset(&place->door, 0, size);
		if (value)
			memcpy(&place->door, value, size);
		place->is_taken = true;
	}
	return place->is_taken ? &place->door : 0;
}

/* What comes too early. */

static struct model_frame *new_frame(u32 way)
{
	if (result->frames == FRAMES_MOST)
		__builtin_trap();
	struct model_frame *made = &result->frame[result->frames++];

	memset(made, 0, sizeof(*made));
	made->way = way;
	return made;
}

static void add_payload(struct model_frame *to, const void *bytes, u32 count)
{
	if (result->payload_bytes + count > FRAME_MOST)
		__builtin_trap();
	to->packet.bytes = count;
	to->payload_at = result->payload_bytes;
	memcpy(result->payloads + result->payload_bytes, bytes, count);
	result->payload_bytes += count;
}

void *bpf_ringbuf_reserve(const void *map, u64 size, u64 flags)
{
	return map == &early && size <= sizeof(record) ? record : 0;
}

void bpf_ringbuf_submit(void *data, u64 flags)
{
	const struct early *waits = data;
	struct model_frame *made = new_frame(WAY_EARLY);

	made->packet.seq = waits->seq;
	made->packet.ack = waits->ack;
	made->packet.fin = !!(waits->flags & EARLY_ENDS);
	made->packet.sent_in = EARLY_METADATA;
	add_payload(made, waits + 1, waits->bytes);
}

void bpf_ringbuf_discard(void *data, u64 flags)
{
}

/* Time and loops. */

u64 bpf_ktime_get_ns(void)
{
	return now_ns;
}

u64 bpf_ktime_get_coarse_ns(void)
{
	return now_ns;
}

u64 bpf_jiffies64(void)
{
	return now_ns / 4000000;
}

long bpf_loop(u32 times, void *callback, void *context, u64 flags)
{
	long (*call)(u32, void *) = callback;

	for (u32 i = 0; i < times; i++)
		if (call(i, context))
			return i + 1;
	return times;
}

/* Sockets. */

struct bpf_sock *bpf_skc_lookup_tcp(void *skb, struct bpf_sock_tuple *tuple, u32 bytes, u64 netns, u64 flags)
{
	if (tuple->ipv4.daddr == bpf_htonl(LOOPBACK))
		return tuple->ipv4.dport == bpf_htons(READER_PORT) ? &reader : 0;
	/* No connection has port 0. */
	if (here->socket.state && tuple->ipv4.sport)
		return &here->full;
	return here->is_deserted ? 0 : &listener;
}

struct tcp_sock *bpf_skc_to_tcp_sock(void *sk)
{
	/* A listener is a tcp_sock, too. */
	return sk == &here->full ? &here->tcp : sk;
}

struct tcp_timewait_sock *bpf_skc_to_tcp_timewait_sock(void *sk)
{
	return 0;
}

struct bpf_tcp_sock *bpf_tcp_sock(struct bpf_sock *sk)
{
	return sk == &here->full ? &here->seen : 0;
}

long bpf_sk_release(void *sk)
{
	return 0;
}

long bpf_sk_assign(void *skb, void *sk, u64 flags)
{
	frame.bound = true;
	return 0;
}

int bpf_sk_assign_tcp_reqsk(struct __sk_buff *skb, struct sock *sk, struct bpf_tcp_req_attrs *attrs, int size)
{
	frame.assigned = (void *)sk == &reader ? LISTENER_READER : LISTENER_SERVER;
	return 0;
}

/* Frames. */

long bpf_skb_load_bytes(const void *skb, u32 at, void *to, u32 bytes)
{
	if (at > frame.skb.len || bytes > frame.skb.len - at)
		return -1;
	memcpy(to, frame_at(at), bytes);
	return 0;
}

long bpf_skb_store_bytes(struct __sk_buff *skb, u32 at, const void *from, u32 bytes, u64 flags)
{
	if (at > frame.skb.len || bytes > frame.skb.len - at)
		return -1;
	memcpy(frame_at(at), from, bytes);
	return 0;
}

/* Checksums are not modelled: what comes is known to be right. */
void *bpf_cast_to_kern_ctx(void *context)
{
	static struct sk_buff behind = { .ip_summed = CHECKSUM_IS_PARTIAL };

	return &behind;
}

/* The room is made or taken away behind the Ethernet header. */
long bpf_skb_adjust_room(struct __sk_buff *skb, s32 bytes, u32 mode, u64 flags)
{
	if (bytes > (s32)frame.begin)
		return -1;
	memmove(frame_at(-bytes), frame_at(0), sizeof(struct ethhdr));
	frame.begin -= bytes;
	frame.skb.len += bytes;
	return 0;
}

long bpf_skb_change_tail(struct __sk_buff *skb, u32 bytes, u64 flags)
{
	if (bytes > frame.skb.len)
		return -1;
	frame.skb.len = bytes;
	return 0;
}

/* Adds the frame, as it is now, to the result, as one that goes this way. */
static struct model_frame *put_frame(u32 way)
{
	struct model_frame *made = new_frame(way);
	struct iphdr ip;
	struct tcphdr tcp;
	u32 at = sizeof(struct ethhdr);

	memcpy(&ip, frame_at(at), sizeof(ip));
	if (ip.protocol != IPPROTO_TCP) {
		/* The peer of a message that leaves is its receiver, and that of one that stays here is its sender. */
		made->packet.peer = way == WAY_OUT ? ip.daddr : ip.saddr;
		memcpy(&made->packet.header, frame_at(LCCP_AT), sizeof(made->packet.header));
		at = INNER_AT;
		memcpy(&ip, frame_at(at), sizeof(ip));
	}
	at += ip.ihl * 4;
	memcpy(&tcp, frame_at(at), sizeof(tcp));
	made->packet.seq = bpf_ntohl(tcp.seq);
	made->packet.ack = bpf_ntohl(tcp.ack_seq);
	made->packet.fin = tcp.fin;
	made->packet.rst = tcp.rst;
	made->packet.mark = frame.skb.mark;
	made->assigned = frame.assigned;
	made->bound = frame.bound;
	add_payload(made, frame_at(at + tcp.doff * 4), bpf_ntohs(ip.tot_len) - ip.ihl * 4 - tcp.doff * 4);
	return made;
}

static u32 way_to(u32 ifindex, u64 flags)
{
	return ifindex == OWN_INTERFACE && flags & BPF_F_INGRESS ? WAY_INGRESS : WAY_OUT;
}

long bpf_clone_redirect(struct __sk_buff *skb, u32 ifindex, u64 flags)
{
	put_frame(way_to(ifindex, flags));
	return 0;
}

enum {
	REDIRECT = 7, /* TCX_REDIRECT */
};

long bpf_redirect(u32 ifindex, u64 flags)
{
	redirected = way_to(ifindex, flags);
	return REDIRECT;
}

/* Helpers that are compiled with the programs and never run here. */
#define NEVER_RUNS(...) __VA_ARGS__ { __builtin_trap(); }

NEVER_RUNS(u32 bpf_get_prandom_u32(void))
NEVER_RUNS(u64 bpf_get_netns_cookie(void *ctx))
NEVER_RUNS(long bpf_xdp_load_bytes(struct xdp_md *ctx, u32 at, void *to, u32 bytes))
NEVER_RUNS(long bpf_xdp_store_bytes(struct xdp_md *ctx, u32 at, void *from, u32 bytes))
NEVER_RUNS(long bpf_xdp_adjust_head(struct xdp_md *ctx, int bytes))
NEVER_RUNS(long bpf_xdp_adjust_tail(struct xdp_md *ctx, int bytes))
NEVER_RUNS(u64 bpf_xdp_get_buff_len(struct xdp_md *ctx))
NEVER_RUNS(long bpf_setsockopt(void *ctx, int level, int option, void *value, int bytes))
NEVER_RUNS(long bpf_sock_ops_cb_flags_set(struct bpf_sock_ops *ops, int flags))
NEVER_RUNS(long bpf_store_hdr_opt(struct bpf_sock_ops *ops, const void *from, u32 bytes, u64 flags))
NEVER_RUNS(long bpf_load_hdr_opt(struct bpf_sock_ops *ops, void *to, u32 bytes, u64 flags))
NEVER_RUNS(long bpf_reserve_hdr_opt(struct bpf_sock_ops *ops, u32 bytes, u64 flags))

/* Functions that the model calls. */

static const __be32 addresses[NODES] = { FIRST_NODE, SECOND_NODE, THIRD_NODE };

static void make_tables(void)
{
	service = (struct service){ .id = 0, .pool = 0, .flags = SERVICE_OWNER | SERVICE_PATHS | SERVICE_TARGETS };
	for (u32 i = 0; i < NODES; i++) {
		servers[i] = (struct data_server){ .ifindex = OTHER_INTERFACE, .flags = DATA_SERVER_PRESENT, .key = { 1, 2 } };
		map_address(servers[i].address, addresses[i]);
	}
	for (u32 i = 0; i < POOLS; i++) {
		all_pools[i] = (struct pool){ .id = i + 1, .first_choice = i * NODES, .choices = 1, .members = { 1 << i } };
		chosen[i * NODES] = i;
	}
	all_pools[2].choices = 2;
	all_pools[2].members[0] = 1 << 1 | 1 << 2;
	chosen[2 * NODES] = 1;
	chosen[2 * NODES + 1] = 2;
	asker = (struct data_server){ .ifindex = OTHER_INTERFACE, .flags = DATA_SERVER_PRESENT, .key = { 1, 2 } };
}

/*
 * Begins everything anew. With `has_agent`, an agent reads what one packet does not decide, and what is too early
 * waits.
 */
void model_reset(u32 has_agent)
{
	make_tables();
	memset(nodes, 0, sizeof(nodes));
	memset(&counted, 0, sizeof(counted));
	for (u32 i = 0; i < NODES; i++) {
		struct settings *s = &nodes[i].settings;

		map_address(s->address, addresses[i]);
		s->protocol = 253;
		s->slot = i;
		s->reader_port = has_agent ? READER_PORT : 0;
		s->data_servers = NODES;
		nodes[i].ring = (struct ring){ .next = addresses[(i + 1) % NODES], .length = NODES };
	}
	/* The time is never 0, because 0 says that nothing has happened yet. */
	now_ns = 1ULL << 40;
}

void model_pass_time(u64 ns)
{
	now_ns += ns;
}

/*
 * Sets the numbers of the node's socket. With `is_new`, it is another socket than before, and nothing is known of it.
 */
void model_set_socket(u32 node, const struct model_socket *s, u32 is_new)
{
	struct node *n = &nodes[node];

	n->socket = *s;
	n->full.state = s->state;
	n->tcp.rcv_nxt = s->rcv_nxt;
	n->tcp.rcv_wup = s->rcv_wup;
	n->tcp.copied_seq = s->copied_seq;
	n->tcp.write_seq = n->tcp.snd_nxt = s->write_seq;
	n->tcp.snd_una = s->snd_una;
	n->tcp.snd_wnd = 65535;
	n->tcp.bytes_received = s->rcv_nxt - s->begin;
	n->tcp.rx_opt.mss_clamp = 1448;
	n->seen.bytes_acked = s->bytes_acked;
	n->seen.snd_una = s->snd_una;
	n->seen.rcv_nxt = s->rcv_nxt;
	if (is_new)
		n->doors.is_taken = n->responses.is_taken = n->have_read.is_taken = n->telling.is_taken = false;
	/* take_expected() of bpf/data_server/adopt/window.h does this when the socket is made. */
	if (is_new && s->state && n->expected.is_taken) {
		if (n->expected.expected.bodiless) {
			n->responses.is_taken = true;
			n->responses.response = (struct response){ .state = RESPONSE_FIRST, .bodiless = 1 };
		}
		n->expected.is_taken = false;
	}
}

/* The door of the node's connection, or 0. */
const struct door *model_door(u32 node)
{
	struct node *n = &nodes[node];

	if (n->doors.is_taken)
		return &n->doors.door;
	return n->doors_begun.is_taken && !(n->doors_begun.door.flags & DOOR_BORN) ? &n->doors_begun.door : 0;
}

/* Notes with the agent's socket what the agent has read, as the agent does. */
void model_set_read(u32 node, const struct have_read *read)
{
	nodes[node].have_read.is_taken = true;
	nodes[node].have_read.have_read = *read;
}

/* Up to where the agent knows that the connection's socket has what it keeps; 0: nothing says so. */
const struct kept *model_kept(u32 node)
{
	return nodes[node].keeping.is_taken ? &nodes[node].keeping.kept : 0;
}

void model_keep(u32 node, const struct kept *kept)
{
	nodes[node].keeping.is_taken = true;
	nodes[node].keeping.kept = *kept;
}

/* The length of the packet's options: those of an ACK that is made in the client's name are filled in by the program. */
static u32 options_of(const struct model_packet *p)
{
	return p->sent_in == LEAVE_METADATA ? TIMESTAMPS_ALONE_BYTES : 0;
}

static void write_packet(const struct model_packet *p, const u8 *payload, u32 at, struct iphdr *ip, struct tcphdr *tcp)
{
	*ip = (struct iphdr){
		.version = 4,
		.ihl = 5,
		.tot_len = bpf_htons(sizeof(*ip) + sizeof(*tcp) + options_of(p) + p->bytes),
		.ttl = 64,
		.protocol = IPPROTO_TCP,
		.saddr = CLIENT,
		.daddr = CLUSTER,
	};
	u32 option_bytes = options_of(p);

	*tcp = (struct tcphdr){
		.source = CLIENT_PORT,
		.dest = CLUSTER_PORT,
		.seq = bpf_htonl(p->seq),
		.ack_seq = bpf_htonl(p->ack),
		.doff = (sizeof(*tcp) + option_bytes) / 4,
		.ack = 1,
		.psh = 1,
		.fin = p->fin,
		.rst = p->rst,
		.window = 0xffff,
	};
	memcpy(frame_at(at), ip, sizeof(*ip));
	memcpy(frame_at(at + sizeof(*ip)), tcp, sizeof(*tcp));
	memset(frame_at(at + sizeof(*ip) + sizeof(*tcp)), 1 /* NOP */, option_bytes);
	memcpy(frame_at(at + sizeof(*ip) + sizeof(*tcp) + option_bytes), payload, p->bytes);
}

static void write_message(const struct model_packet *p, u32 inner_bytes)
{
	struct iphdr ip = {
		.version = 4,
		.ihl = 5,
		.tot_len = bpf_htons(OUTER_BYTES + inner_bytes),
		.protocol = here->settings.protocol,
		.saddr = p->peer,
		.daddr = unmap_address(here->settings.address),
	};

	memcpy(frame_at(sizeof(struct ethhdr)), &ip, sizeof(ip));
	memcpy(frame_at(LCCP_AT), &p->header, sizeof(p->header));
}

/*
 * Leads from one stage to the next as bpf/data_server/data_server.h does, once a packet is known to be whole and a
 * message to be authentic.
 */
static int run_stages(const struct model_packet *p, struct arrival *a, const struct iphdr *ip, const struct tcphdr *tcp)
{
	int verdict;

	take_mark(a);
	if (p->peer) {
		scratch.header = p->header;
		if (!read_inner(a->skb, frame.skb.len - sizeof(struct ethhdr) - OUTER_BYTES, &scratch.packet))
			__builtin_trap();
		a->sender = p->peer;
		leave_to(STAGE_MESSAGE, a, 0);
		verdict = receive_message(a->skb);
	} else {
		name_plain(ip, tcp, sizeof(*ip));
		a->sent_in = p->sent_in;
		a->sender = p->sent_in ? 0 : CONNECTION_SERVER;
		verdict = leave_to(STAGE_OWNED, a, a->sender);
	}
	if (verdict == STAGE_OWNED)
		verdict = receive_owned(a->skb);
	return verdict == STAGE_STRAY ? receive_stray(a->skb) : verdict;
}

/* Gives this node a packet. */
void model_receive(u32 node, const struct model_packet *p, const u8 *payload, struct model_result *r)
{
	struct iphdr ip;
	struct tcphdr tcp;
	u32 at = p->peer ? INNER_AT : sizeof(struct ethhdr);

	here = &nodes[node];
	result = r;
	r->frames = r->payload_bytes = 0;
	frame.begin = HEADROOM;
	frame.assigned = LISTENER_NONE;
	frame.bound = false;
	frame.skb = (struct __sk_buff){
		.len = at + sizeof(ip) + sizeof(tcp) + options_of(p) + p->bytes,
		.ifindex = OWN_INTERFACE,
		.ingress_ifindex = OWN_INTERFACE,
		.mark = p->mark,
	};
	write_packet(p, payload, at, &ip, &tcp);
	if (p->peer)
		write_message(p, sizeof(ip) + sizeof(tcp) + p->bytes);
	struct arrival a = { .skb = &frame.skb, .settings = &here->settings, .counters = &counted };
	int verdict = run_stages(p, &a, &ip, &tcp);
	if (verdict == TCX_GO_ON)
		put_frame(WAY_TCP);
	else if (verdict == REDIRECT)
		put_frame(redirected);
}

/* Says whether no server listens on this node. */
void model_desert(u32 node, u32 is_deserted)
{
	nodes[node].is_deserted = is_deserted;
}

/*
 * Says whether the node drains, in place of the one that did. In the last pool, the other member has its requests
 * meanwhile. The other pools have no other member, so they change nothing.
 */
void model_drain(u32 node, u32 drains)
{
	struct pool *last = &all_pools[2];
	u64 both = 1 << 1 | 1 << 2;

	last->members[0] = drains ? both & ~(1 << node) : both;
	last->choices = 0;
	for (u32 i = 1; i < NODES; i++)
		if (last->members[0] & 1 << i)
			chosen[2 * NODES + last->choices++] = i;
}

/* Lets a part of a response leave by this node's socket. */
void model_leave(u32 node, u32 seq, const u8 *payload, u32 bytes)
{
	struct iphdr ip = { .saddr = CLUSTER, .daddr = CLIENT };
	struct tcphdr tcp = { .source = CLUSTER_PORT, .dest = CLIENT_PORT, .seq = bpf_htonl(seq) };

	here = &nodes[node];
	frame.begin = HEADROOM;
	frame.skb = (struct __sk_buff){ .len = bytes };
	memcpy(frame_at(0), payload, bytes);
	struct leaving l = { .skb = &frame.skb, .bytes = bytes, .response = response_on(&here->full, &ip, &tcp) };
	if (l.response && l.response->state != RESPONSE_UNKNOWN)
		follow_response(&l, seq);
}
