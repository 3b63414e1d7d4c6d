/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sends an aware client's packets from this interface to the data server itself, once that is known. Their destination
 * remains the cluster address. To a data server on this LAN they only go to another neighbour. To one behind a router
 * they travel inside a packet to its own address (RFC 2003). That header is the smallest one, and cards and the kernel
 * can segment such packets.
 */
#ifndef BATON_AWARE_CLIENT_WAY_H
#define BATON_AWARE_CLIENT_WAY_H

#include "aware_client/doubt.h"
#include "include/checksum.h"

enum {
	MARK_SENT = 0x62746e31, /* a packet with this mark comes here again once its next hop is known */
	AF_INET_NEXT_HOP = 2,
	DONT_FRAGMENT = 0x4000,
	OUTER_TTL = 64,
};

/* Not inline: the compiler would take the address of a field of `skb`, which the verifier refuses. */
static __noinline void set_mark(struct __sk_buff *skb, u32 mark)
{
	skb->mark = mark;
}

static __always_inline bool wrap(struct __sk_buff *skb, __be32 server)
{
	struct iphdr ip, outer = {
		.version = 4,
		.ihl = sizeof(struct iphdr) / 4,
		.frag_off = bpf_htons(DONT_FRAGMENT),
		.ttl = OUTER_TTL,
		.protocol = IPPROTO_IPIP,
		.daddr = server,
	};

	if (bpf_skb_load_bytes(skb, sizeof(struct ethhdr), &ip, sizeof(ip)))
		return false;
	outer.tos = ip.tos;
	outer.saddr = ip.saddr;
	outer.tot_len = bpf_htons(bpf_ntohs(ip.tot_len) + sizeof(outer));
	outer.check = checksum_fold(checksum_words((u32 *)&outer, 5));
	return !bpf_skb_adjust_room(skb, sizeof(outer), BPF_ADJ_ROOM_MAC,
				    BPF_F_ADJ_ROOM_ENCAP_L3_IPV4 | BPF_F_ADJ_ROOM_FIXED_GSO) &&
	       !bpf_skb_store_bytes(skb, sizeof(struct ethhdr), &outer, sizeof(outer), 0);
}

static __always_inline int send_to(struct __sk_buff *skb, __be32 server)
{
	const struct client_settings *s = own_settings();
	struct bpf_redir_neigh next = { .nh_family = AF_INET_NEXT_HOP, .ipv4_nh = server };

	if (!s)
		return TCX_GO_ON;
	set_mark(skb, MARK_SENT);
	if (!((server ^ s->lan) & s->lan_mask)) {
		count_client(CLIENT_DIRECT);
		return bpf_redirect_neigh(skb->ifindex, &next, sizeof(next), 0);
	}
	if (!wrap(skb, server)) {
		count_client(CLIENT_NO_ROOM);
		return TCX_DISCARD;
	}
	count_client(CLIENT_WRAPPED);
	return bpf_redirect_neigh(skb->ifindex, 0, 0, 0);
}

/*
 * The data server of a packet that the kernel sends for a connection whose socket is closed; 0: not known. Such
 * packets are the last ACK, and RSTs that answer late packets. They leave from no socket, from one in TIME_WAIT or
 * from one of the kernel's own.
 */
static __always_inline __be32 server_of_flow(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data, *data_end = (void *)(long)skb->data_end;
	struct iphdr *ip = data + sizeof(struct ethhdr);
	struct tcphdr *tcp = (void *)(ip + 1);

	if ((void *)(tcp + 1) > data_end || skb->protocol != bpf_htons(ETH_P_IP) || ip->version != 4 ||
	    ip->ihl != sizeof(*ip) / 4 || ip->protocol != IPPROTO_TCP || tcp->syn)
		return 0;
	struct client_flow flow = {
		.client = ip->saddr,
		.cluster = ip->daddr,
		.be_client_port = tcp->source,
		.be_cluster_port = tcp->dest,
	};
	__be32 *server = bpf_map_lookup_elem(&client_flows, &flow);
	return server ? *server : 0;
}

/*
 * The data server to which this packet goes; 0: none. Packets of sockets that are not of a service, which most are,
 * cost one look-up.
 */
static __always_inline __be32 server_of(struct __sk_buff *skb, struct bpf_sock *sk)
{
	struct client_socket *socket = sk ? bpf_sk_storage_get(&client_sockets, sk, 0, 0) : 0;

	if (socket && socket->server && (is_unheard(sk, socket) || is_silent(skb, sk, socket)))
		back_to_connection_server(socket);
	if (socket)
		return socket->server;
	return sk && sk->state != STATE_CLOSE ? 0 : server_of_flow(skb);
}

SEC("tcx/egress")
int client_way(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;

	if (sk)
		sk = bpf_sk_fullsock(sk);
	if (skb->mark == MARK_SENT) {
		set_mark(skb, sk ? sk->mark : 0);
		return TCX_GO_ON;
	}
	__be32 server = server_of(skb, sk);
	return server ? send_to(skb, server) : TCX_GO_ON;
}

#endif
