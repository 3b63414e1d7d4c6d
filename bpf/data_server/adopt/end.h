/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ending an older connection that still holds the ports of a new one: TIME_WAIT, or one whose client
 * vanished. The wrapped ADOPT goes back to the start of our own ingress, as a clone; this copy becomes
 * the RST that the old client would have sent, which ends the old socket without a word on the wire.
 */
#ifndef BATON_DATA_SERVER_ADOPT_END_H
#define BATON_DATA_SERVER_ADOPT_END_H

#include "data_server/packet.h"

enum {
	SEQ_AT = 4,
	ACK_AT = 8,
	FLAGS_AT = 12,
	WINDOW_AT = 14,
	CHECK_AT = 16,
	RST_BIT = 0x04,
	OTHER_FLAG_BITS = 0x0b, /* FIN, SYN, PSH; ACK may stay */
};

/* Returns the word of the TCP header that has its length and flags, as it is in the packet. */
static __always_inline u16 flags_of(const struct inner *in)
{
	return *(const u16 *)((const u8 *)&in->tcp + FLAGS_AT);
}

/* A packet without a message around it, whose TCP header is at `tcp_at`, gets this sequence number and these flags. */
static __always_inline bool write_seq(struct __sk_buff *skb, const struct inner *in, u32 tcp_at, u32 seq, u16 flags)
{
	__be32 new_seq = bpf_htonl(seq);

	return !bpf_l4_csum_replace(skb, tcp_at + CHECK_AT, in->tcp.seq, new_seq, 4) &&
	       !bpf_l4_csum_replace(skb, tcp_at + CHECK_AT, flags_of(in), flags, 2) &&
	       !bpf_skb_store_bytes(skb, tcp_at + SEQ_AT, &new_seq, 4, 0) &&
	       !bpf_skb_store_bytes(skb, tcp_at + FLAGS_AT, &flags, 2, 0);
}

/*
 * Makes the packet a RST. `seq` is what the old socket expects next: TCP believes a RST only there (RFC 9293, 3.5.3).
 */
static __always_inline bool become_reset(struct __sk_buff *skb, const struct inner *in, u32 tcp_at, u32 seq)
{
	return write_seq(skb, in, tcp_at, seq, (flags_of(in) & ~bpf_htons(OTHER_FLAG_BITS)) | bpf_htons(RST_BIT));
}

static __always_inline int end_older(struct arrival *a, const struct inner *in, u32 seq, enum counter why)
{
	struct __sk_buff *skb = a->skb;

	/* This message has come before, and may be of the older connection itself. */
	if (a->again)
		return discard(a, COUNTER_LCCP_REPEATED);
	/* The packet was requeued once, and the old socket was busy: the client's retransmission tries again. */
	if (a->mark)
		return discard(a, COUNTER_DS_NO_SOCKET);
	skb->mark = MARK_REQUEUED;
	if (bpf_clone_redirect(skb, skb->ifindex, BPF_F_INGRESS))
		return TCX_DISCARD;
	skb->mark = 0;
	if (!strip(skb) || !become_reset(skb, in, in->tcp_at - OUTER_BYTES, seq))
		return TCX_DISCARD;
	count(a->counters, why);
	return TCX_GO_ON;
}

#endif
