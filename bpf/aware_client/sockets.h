/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The TCP options that an aware client sends and reads (aware.h), on connections to the configured services only. It
 * sends its option in the first round trip. It reads options of data servers for as long as it sends to data servers,
 * because a connection may move from one to another, and the next one says so in the same way as the first one. The
 * kernel shows options of packets that it has found to fit the connection. The client believes an option if its packet
 * is exactly the next one and brings something new. So an option is as hard to forge as the data itself, and a late
 * packet of an earlier data server is not believed.
 */
#ifndef BATON_AWARE_CLIENT_SOCKETS_H
#define BATON_AWARE_CLIENT_SOCKETS_H

#include "aware_client/doubt.h"
#include "include/aware.h"

enum {
	AF_INET_FAMILY = 2,
	SYN_ACKED = 1, /* bytes: bpf_sock_ops.bytes_acked counts the SYN */
	TIMEOUTS_BEFORE = 1,
	SAYS = BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG,
	HEARS = BPF_SOCK_OPS_PARSE_UNKNOWN_HDR_OPT_CB_FLAG,
	DOUBTS = BPF_SOCK_OPS_RTO_CB_FLAG,
};

static __always_inline struct client_socket *client_socket(struct bpf_sock_ops *ops)
{
	return ops->sk ? bpf_sk_storage_get(&client_sockets, ops->sk, 0, 0) : 0;
}

static __always_inline void change_events(struct bpf_sock_ops *ops, u32 without, u32 with)
{
	bpf_sock_ops_cb_flags_set(ops, (ops->bpf_sock_ops_cb_flags & ~without) | with);
}

/* Prepares a connection that has just been established, if it is to a service. */
static __always_inline void begin(struct bpf_sock_ops *ops)
{
	const struct client_settings *s = own_settings();
	struct client_service service = { .address = ops->remote_ip4, .be_port = ops->remote_port >> 16 };

	if (ops->family != AF_INET_FAMILY || !s || s->netns != bpf_get_netns_cookie(ops) ||
	    !bpf_map_lookup_elem(&client_services, &service))
		return;
	if (!ops->sk || !bpf_sk_storage_get(&client_sockets, ops->sk, 0, BPF_SK_STORAGE_GET_F_CREATE))
		return;
	change_events(ops, 0, SAYS | HEARS);
	count_client(CLIENT_AWARE);
}

/*
 * Reserves room for the option until the first byte of data is acknowledged. Who has got that byte has got the option,
 * too, or does not know it.
 */
static __always_inline void make_room(struct bpf_sock_ops *ops)
{
	if (!client_socket(ops))
		return;
	if (ops->bytes_acked > SYN_ACKED)
		change_events(ops, SAYS, 0);
	else
		bpf_reserve_hdr_opt(ops, AWARE_BYTES, 0);
}

static __always_inline void say(struct bpf_sock_ops *ops)
{
	u8 option[AWARE_BYTES] = AWARE_OPTION;

	if (client_socket(ops))
		bpf_store_hdr_opt(ops, option, sizeof(option), 0);
}

/*
 * Whether the packet brings the next byte that is expected, or acknowledges data that is in flight from here. A data
 * server that has handed the connection on can do neither: before the handover this client had all that it had sent,
 * and it had acknowledged all that it had got.
 */
static __always_inline bool brings_news(struct bpf_sock_ops *ops)
{
	struct tcphdr *tcp = ops->skb_data;

	if ((void *)(tcp + 1) > ops->skb_data_end || !tcp->ack || bpf_ntohl(tcp->seq) != ops->rcv_nxt)
		return false;
	u32 acknowledged = bpf_ntohl(tcp->ack_seq) - ops->snd_una;
	return acknowledged <= ops->snd_nxt - ops->snd_una && (acknowledged || ops->skb_len > tcp->doff * 4);
}

static __always_inline bool is_believed(__be32 server)
{
	const struct client_settings *s = own_settings();
	u8 first = server & bpf_htonl(0xff000000) ? bpf_ntohl(server) >> 24 : 0;

	/*
	 * Addresses of this host or of several hosts are refused: 0/8, loopback, multicast and beyond (RFC 6890).
	 */
	return s && first && first != 127 && first < 224 && !((server ^ s->within) & s->within_mask);
}

/*
 * Sends the connection's packets to this data server: those of its socket, and those that the kernel sends once that
 * is closed.
 */
static __always_inline void go_to(struct bpf_sock_ops *ops, struct client_socket *socket, __be32 server)
{
	struct client_flow flow = {
		.client = ops->local_ip4,
		.cluster = ops->remote_ip4,
		.be_client_port = bpf_htons(ops->local_port),
		.be_cluster_port = ops->remote_port >> 16,
	};
	socket->server = server;
	bpf_map_update_elem(&client_flows, &flow, &server, BPF_ANY);
}

static __always_inline void hear(struct bpf_sock_ops *ops)
{
	u8 option[HERE_BYTES] = HERE_SEARCH;
	struct client_socket *socket = client_socket(ops);
	__be32 server;

	if (!socket || socket->is_back || bpf_load_hdr_opt(ops, option, sizeof(option), 0) != HERE_BYTES)
		return;
	__builtin_memcpy(&server, option + HERE_ADDRESS_AT, sizeof(server));
	/* The data server repeats its option in several packets. */
	if (server == socket->server)
		return;
	if (!brings_news(ops) || !is_believed(server)) {
		count_client(CLIENT_NOT_BELIEVED);
		return;
	}
	bool has_moved = socket->server;
	go_to(ops, socket, server);
	if (has_moved) {
		count_client(CLIENT_MOVED);
		return;
	}
	change_events(ops, SAYS, DOUBTS);
	ask_after_silence(ops);
	count_client(CLIENT_TOLD);
}

/*
 * Handles a timeout of a connection. One timeout may be a lost packet. After the second one the connection's packets
 * go by the connection server for good.
 */
static __always_inline void give_up(struct bpf_sock_ops *ops)
{
	struct client_socket *socket = client_socket(ops);

	if (!socket || !socket->server || ops->args[0] < TIMEOUTS_BEFORE)
		return;
	back_to_connection_server(socket);
	change_events(ops, DOUBTS | HEARS, 0);
}

SEC("sockops")
int client_events(struct bpf_sock_ops *ops)
{
	switch (ops->op) {
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
		begin(ops);
		break;
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
		make_room(ops);
		break;
	case BPF_SOCK_OPS_WRITE_HDR_OPT_CB:
		say(ops);
		break;
	case BPF_SOCK_OPS_PARSE_HDR_OPT_CB:
		hear(ops);
		break;
	case BPF_SOCK_OPS_RTO_CB:
		give_up(ops);
		break;
	}
	return 1;
}

#endif
