/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RELEASE (DM2): this data server drains, and its connection server takes the connection for idle. If it is at a
 * quiet point, another data server adopts it, and it ends here without a word on the wire: a HANDOVER whose
 * request is only an empty ACK. That was made in the client's name by somebody who does not know what the
 * client's last packet said of its window and time: the owner's socket does.
 */
#ifndef BATON_DS_RELEASE_H
#define BATON_DS_RELEASE_H

#include "adopt.h"
#include "handover.h"
#include "packet.h"
#include "send.h"

enum {
	WINDOW_AT = 14,
	NO_OPTIONS = 0x01010101, /* NOP NOP NOP NOP */
	WINDOW_FIELD_MAX = 0xffff,
};

static __noinline bool write_window(struct arrival *a, const struct inner *in, const struct tcp_sock *sk)
{
	u32 window = sk->snd_wnd;

	if (BPF_CORE_READ_BITFIELD(sk, rx_opt.wscale_ok))
		window >>= BPF_CORE_READ_BITFIELD(sk, rx_opt.snd_wscale);
	__be16 field = bpf_htons(window < WINDOW_FIELD_MAX ? window : WINDOW_FIELD_MAX);
	return !bpf_l4_csum_replace(a->skb, in->tcp_at + CHECK_AT, in->tcp.window, field, 2) &&
	       !bpf_skb_store_bytes(a->skb, in->tcp_at + WINDOW_AT, &field, sizeof(field), 0);
}

static __noinline bool write_timestamps(struct arrival *a, const struct inner *in,
					const struct tcp_sock *sk)
{
	u32 at = in->tcp_at + sizeof(struct tcphdr);
	__be32 now[TIMESTAMPS_ALONE_BYTES / 4] = { bpf_htonl(NO_OPTIONS), bpf_htonl(NO_OPTIONS),
						   bpf_htonl(NO_OPTIONS) };
	__be32 before[TIMESTAMPS_ALONE_BYTES / 4];

	if (bpf_skb_load_bytes(a->skb, at, before, sizeof(before)))
		return false;
	if (BPF_CORE_READ_BITFIELD(sk, rx_opt.tstamp_ok)) {
		now[0] = bpf_htonl(TIMESTAMPS_ALONE);
		now[1] = bpf_htonl(sk->rx_opt.ts_recent);
		/* The kernel keeps it without its own offset. */
		now[2] = bpf_htonl(sk->rx_opt.rcv_tsecr + (u32)sk->tsoffset);
	}
	long difference = bpf_csum_diff(before, sizeof(before), now, sizeof(now), 0);
	return difference >= 0 &&
	       !bpf_l4_csum_replace(a->skb, in->tcp_at + CHECK_AT, 0, difference, 0) &&
	       !bpf_skb_store_bytes(a->skb, at, now, sizeof(now), 0);
}

/* An empty ACK, with room for timestamps. */
static __always_inline bool is_made_ack(const struct inner *in)
{
	return in->tcp.ack && !(in->tcp.syn | in->tcp.fin | in->tcp.rst) && !payload_of(in) &&
	       in->tcp.doff * 4 == sizeof(struct tcphdr) + TIMESTAMPS_ALONE_BYTES;
}

/* The connection server has the entry at the next one already: it takes it back. */
static __always_inline int refuse_release(struct arrival *a, struct lccp_header *h, const struct inner *in)
{
	const struct data_server *asker = peer(a->sender);

	count(a->counters, COUNTER_DS_RELEASE_REFUSED);
	if (is_own_cs(asker))
		kept_here(a, h, LCCP_KEEP_BUSY);
	if (!asker || is_own_cs(asker))
		return TCX_DISCARD;
	h->receptor = LCCP_RECEPTOR_CS;
	h->command = LCCP_KEEP;
	h->be_data = bpf_htonl(LCCP_KEEP_BUSY);
	if (!make_message(a, h, in, asker, a->sender))
		return TCX_DISCARD;
	return bpf_redirect(asker->ifindex, 0);
}

static __always_inline int let_go(struct arrival *a, struct lccp_header *h, const struct inner *in,
				  const struct bpf_sock *held)
{
	struct tcp_sock *sk = bpf_skc_to_tcp_sock((void *)held);
	const struct data_server *next = peer(h->be_data);
	__be32 next_address = h->be_data;

	if (!sk || !next)
		return refuse_release(a, h, in);
	if (!write_window(a, in, sk) || !write_timestamps(a, in, sk))
		return TCX_DISCARD;
	note_handover(h, in, next_address);
	h->command = LCCP_ADOPT;
	h->be_data = a->sender;
	if (!send_copy(a, h, in, next, next_address))
		return TCX_DISCARD;
	if (!strip(a->skb) || !become_reset(a->skb, in, in->tcp_at - OUTER_BYTES, bpf_ntohl(in->tcp.seq)))
		return TCX_DISCARD;
	count(a->counters, COUNTER_DS_RELEASED);
	return TCX_GO_ON;
}

static __always_inline int release(struct arrival *a, struct lccp_header *h, const struct inner *in)
{
	if (!is_made_ack(in))
		return discard(a, COUNTER_LCCP_MISMATCH);
	if (a->again)
		return discard(a, COUNTER_LCCP_REPEATED);
	struct bpf_sock *sk = lookup(a->skb, in->ip.saddr, in->ip.daddr, in->tcp.source, in->tcp.dest);
	int verdict;

	/* It has gone by an earlier RELEASE, or its server has closed it: another one may adopt it. */
	if (!is_connection(sk))
		verdict = discard(a, COUNTER_DS_RELEASE_GONE);
	else if (not_quiet(sk, h, in))
		verdict = refuse_release(a, h, in);
	else
		verdict = let_go(a, h, in, sk);
	if (sk)
		bpf_sk_release(sk);
	return verdict;
}

#endif
