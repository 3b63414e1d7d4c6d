/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An empty ACK is made in a client's name, and an idle connection goes to another data server with it. The owner's
 * socket knows the window and the time of the client's last packet, and these are written into the ACK here.
 */
#ifndef BATON_DATA_SERVER_HANDOVER_EMPTY_ACK_H
#define BATON_DATA_SERVER_HANDOVER_EMPTY_ACK_H

#include "data_server/adopt/assign.h"
#include "data_server/packet.h"

enum {
	NO_OPTIONS = 0x01010101, /* NOP NOP NOP NOP */
	WINDOW_FIELD_MAX = 0xffff,
};

static __noinline bool write_window_field(struct arrival *a, const struct inner *in, __be16 field)
{
	return !bpf_l4_csum_replace(a->skb, in->tcp_at + CHECK_AT, in->tcp.window, field, 2) &&
	       !bpf_skb_store_bytes(a->skb, in->tcp_at + WINDOW_AT, &field, sizeof(field), 0);
}

/* Returns the window that the socket's client announced last, as its packets say it. */
static __always_inline u16 window_of_client(const struct tcp_sock *sk)
{
	u32 window = sk->snd_wnd;

	if (BPF_CORE_READ_BITFIELD(sk, rx_opt.wscale_ok))
		window >>= BPF_CORE_READ_BITFIELD(sk, rx_opt.snd_wscale);
	return window < WINDOW_FIELD_MAX ? window : WINDOW_FIELD_MAX;
}

static __noinline bool write_window(struct arrival *a, const struct inner *in, const struct tcp_sock *sk)
{
	return write_window_field(a, in, bpf_htons(window_of_client(sk)));
}

/*
 * Writes the timestamps of the client's last packet to the socket `sk`. Without a socket the client's own timestamp is
 * `value`, or there are no timestamps if that is 0, and the caller writes the one that is echoed (echo_now()).
 */
static __noinline bool write_timestamps(struct arrival *a, const struct inner *in, const struct tcp_sock *sk, u32 value)
{
	u32 at = in->tcp_at + sizeof(struct tcphdr);
	__be32 now[TIMESTAMPS_ALONE_BYTES / 4] = { bpf_htonl(NO_OPTIONS), bpf_htonl(NO_OPTIONS),
						   bpf_htonl(NO_OPTIONS) };
	__be32 before[TIMESTAMPS_ALONE_BYTES / 4];

	if (bpf_skb_load_bytes(a->skb, at, before, sizeof(before)))
		return false;
	if (!sk && value) {
		now[0] = bpf_htonl(TIMESTAMPS_ALONE);
		now[1] = bpf_htonl(value);
	}
	if (sk && BPF_CORE_READ_BITFIELD(sk, rx_opt.tstamp_ok)) {
		now[0] = bpf_htonl(TIMESTAMPS_ALONE);
		now[1] = bpf_htonl(sk->rx_opt.ts_recent);
		/* The kernel keeps this timestamp without its own offset. */
		now[2] = bpf_htonl(sk->rx_opt.rcv_tsecr + (u32)sk->tsoffset);
	}
	long difference = bpf_csum_diff(before, sizeof(before), now, sizeof(now), 0);
	return difference >= 0 &&
	       !bpf_l4_csum_replace(a->skb, in->tcp_at + CHECK_AT, 0, difference, 0) &&
	       !bpf_skb_store_bytes(a->skb, at, now, sizeof(now), 0);
}

/* Whether the packet is an empty ACK with room for timestamps, as they are made in clients' names. */
static __always_inline bool is_made_ack(const struct inner *in)
{
	return in->tcp.ack && !(in->tcp.syn | in->tcp.fin | in->tcp.rst) && !payload_of(in) &&
	       in->tcp.doff * 4 == sizeof(struct tcphdr) + TIMESTAMPS_ALONE_BYTES;
}

#endif
