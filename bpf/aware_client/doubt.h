/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Decides when a data server no longer seems to get this client's packets. Then they go by the connection server
 * again, which finds the connection by CLAIM, and they stay on that way. There are three signs:
 *
 * Data of this client times out, which its kernel reports. Acknowledgements have no timeout; but if they are lost,
 * segments that have come already come again, and nothing new. A client that only waits cannot tell a data server that
 * is busy from one without power, so its kernel sends keep-alive probes (SO_KEEPALIVE, RFC 9293, section 3.8.4). If
 * they are not answered, the next probes go by the connection server, which ends a connection that nobody has.
 */
#ifndef BATON_AWARE_CLIENT_DOUBT_H
#define BATON_AWARE_CLIENT_DOUBT_H

#include "aware_client/maps.h"

enum {
	SOCKET_LEVEL = 1,              /* SOL_SOCKET and SO_KEEPALIVE of include/uapi/asm-generic/socket.h */
	KEEP_ALIVE = 9,
	PROBES_EACH = 1,               /* seconds between two probes */
	PROBES_DIRECT = 2,             /* unanswered probes that go to the data server: one may be lost */
	PROBES = 12,                   /* after these the kernel itself ends the connection (ETIMEDOUT) */
	PROBE_MOST = 128,              /* bytes of a probe's frame at most: headers with all options */
	COMES_AGAIN = 3,               /* so many segments with data come while the same byte is missing, */
	UNHEARD_NS = 1000000000,       /* for longer than this */
};

static __always_inline void back_to_connection_server(struct client_socket *socket)
{
	socket->server = 0;
	socket->is_back = 1;
	count_client(CLIENT_RETURNED);
}

/* Switches probes on for a connection whose data server is known. A program that wants other times sets them later. */
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

/*
 * Whether this packet is a probe, by which the kernel asks whether the other end is there, or has room again. Its
 * sequence number is that of a byte which the other end has acknowledged.
 */
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

/* Whether this packet is one of several probes between which nothing has come. Notes the probe. */
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

/*
 * Whether the data server seems to miss this client's acknowledgements: segments come, but the same byte is still
 * missing. It is asked whenever this client sends. A hole in the data that stays for so long is as good a reason.
 */
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
