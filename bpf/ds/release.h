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
#include "empty_ack.h"
#include "handover.h"
#include "packet.h"
#include "send.h"

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
	note_handover(a, h, in, next_address, 0);
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
