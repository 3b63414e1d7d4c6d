/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * When a data server does not seem to hear: the connection goes by the connection server again, which finds it
 * by CLAIM, and stays there. What this client sends has timeouts, of which its kernel tells. Its acknowledgements
 * have none; but if they are lost, what has come already comes again, and nothing new. And who only waits hears
 * the same silence from a data server that thinks as from one without power: so its kernel is to ask (SO_KEEPALIVE,
 * RFC 9293, section 3.8.4). Probes that are not answered go on by the connection server, which ends what nobody has.
 */
#ifndef BATON_AWARE_CLIENT_DOUBT_H
#define BATON_AWARE_CLIENT_DOUBT_H

#include "aware_client/maps.h"

enum {
	SOCKET_LEVEL = 1,              /* SOL_SOCKET and SO_KEEPALIVE of include/uapi/asm-generic/socket.h */
	KEEP_ALIVE = 9,
	PROBES_EACH = 1,               /* seconds */
	PROBES_DIRECT = 2,             /* one that is not answered may be lost */
	PROBES = 12,                   /* then the kernel itself ends the connection (ETIMEDOUT) */
	PROBE_MOST = 128,              /* bytes of a frame: headers with all options */
	COMES_AGAIN = 3,               /* segments */
	UNHEARD_NS = 1000000000,       /* for so long */
};

static __always_inline void back_to_connection_server(struct client_socket *socket)
{
	socket->server = 0;
	socket->is_back = 1;
	count_client(CLIENT_RETURNED);
}

/* Of a connection whose data server is known. A program that wants other times says so later. */
static __always_inline void ask_after_silence(struct bpf_sock_ops *ops)
{
	const struct client_settings *s = own_settings();
	int silence = s ? s->silence : 0, each = PROBES_EACH, probes = PROBES, on = 1;

	if (!silence)
		return;
	bpf_setsockopt(ops, IPPROTO_TCP, TCP_KEEPIDLE, &silence, sizeof(silence));
	bpf_setsockopt(ops, IPPROTO_TCP, TCP_KEEPINTVL, &each, sizeof(each));
	bpf_setsockopt(ops, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
	bpf_setsockopt(ops, SOCKET_LEVEL, KEEP_ALIVE, &on, sizeof(on));
}

/* The kernel asks whether the other end is there, or has room again: with a byte's number that it has acknowledged. */
static __always_inline bool is_probe(struct __sk_buff *skb, const struct bpf_tcp_sock *tcp)
{
	void *data = (void *)(long)skb->data, *data_end = (void *)(long)skb->data_end;
	struct iphdr *ip = data + sizeof(struct ethhdr);
	struct tcphdr *segment = (void *)(ip + 1);

	if (skb->len > PROBE_MOST || (void *)(segment + 1) > data_end || ip->version != 4 ||
	    ip->ihl != sizeof(*ip) / 4 || ip->protocol != IPPROTO_TCP)
		return false;
	return segment->seq == bpf_htonl(tcp->snd_una - 1);
}

/* Of several probes without anything between. */
static __always_inline bool is_silent(struct __sk_buff *skb, struct bpf_sock *sk, struct client_socket *socket)
{
	struct bpf_tcp_sock *tcp = bpf_tcp_sock(sk);

	if (!tcp || !is_probe(skb, tcp))
		return false;
	if (tcp->segs_in != socket->heard) {
		socket->heard = tcp->segs_in;
		socket->probes = 0;
	}
	return ++socket->probes > PROBES_DIRECT;
}

/* As this client sends. A hole that stays for so long is as good a reason as any. */
static __always_inline bool is_unheard(struct bpf_sock *sk, struct client_socket *socket)
{
	struct bpf_tcp_sock *tcp = bpf_tcp_sock(sk);
	u64 now = bpf_ktime_get_ns();

	if (!tcp)
		return false;
	if (tcp->rcv_nxt != socket->expected || !socket->since) {
		socket->expected = tcp->rcv_nxt;
		socket->segments = tcp->data_segs_in;
		socket->since = now;
		return false;
	}
	return tcp->data_segs_in - socket->segments >= COMES_AGAIN && now - socket->since > UNHEARD_NS;
}

#endif
