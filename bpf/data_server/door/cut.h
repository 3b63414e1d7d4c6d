/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Cutting takes the end of a packet's payload off. What is delivered then is a packet as the client might have sent it.
 */
#ifndef BATON_DATA_SERVER_DOOR_CUT_H
#define BATON_DATA_SERVER_DOOR_CUT_H

#include "data_server/adopt/end.h"
#include "data_server/packet.h"
#include "data_server/plain.h"
#include "include/bounds.h"
#include "routing/request.h"

enum {
	SUM_BYTES = 512,           /* what bpf_csum_diff() takes on every kernel; a multiple of 4 */
	SUMS_MAX = 65536 / SUM_BYTES,
	FIN_AND_PSH = 0x09,
	URG_BIT = 0x20,
	FIN_BIT = 0x01,
};

/* The walk over the bytes that are summed. */
struct sum_walk {
	struct __sk_buff *skb;
	struct text *text;
	u32 at;
	u32 left;
	s64 sum;
};

static long sum_part(u32 index, struct sum_walk *w)
{
	u32 bytes = w->left < SUM_BYTES ? w->left : SUM_BYTES;

	if (!bytes)
		return 1;
	/* Zeros behind the bytes do not change their sum. */
	__builtin_memset(w->text->at, 0, SUM_BYTES);
	if (bpf_skb_load_bytes(w->skb, w->at, w->text->at, BOUNDED(bytes, 1, SUM_BYTES))) {
		w->sum = -1;
		return 1;
	}
	w->sum = bpf_csum_diff(0, 0, (__be32 *)w->text->at, SUM_BYTES, w->sum);
	w->at += bytes;
	w->left -= bytes;
	return w->sum < 0;
}

/*
 * Returns the ones' complement sum of `bytes` bytes from offset `at` on; negative if they cannot be read. `is_odd`: the
 * first byte is at an odd place of what the sum is used for.
 */
static __noinline s64 sum_of(struct __sk_buff *skb, u32 at, u32 bytes, bool is_odd)
{
	struct sum_walk walk = { .skb = skb, .text = text_of_this_cpu(), .at = at, .left = bytes };

	if (!walk.text)
		return -1;
	bpf_loop(SUMS_MAX, sum_part, &walk, 0);
	if (walk.sum < 0 || walk.left)
		return -1;
	u32 folded = (walk.sum & 0xffff) + ((u32)walk.sum >> 16);
	folded = (folded & 0xffff) + (folded >> 16);
	return is_odd ? (folded << 8 | folded >> 8) & 0xffff : folded;
}

/*
 * Cuts a packet without a message around it, whose TCP header is at `tcp_at`, to `kept` bytes of payload. False if that
 * fails.
 */
static __noinline bool cut(struct __sk_buff *skb, const struct inner *in, u32 tcp_at, u32 kept)
{
	u32 headers = in->tcp.doff * 4, check_at = tcp_at + CHECK_AT;
	u32 ip_at = tcp_at - in->ip.ihl * 4;
	u32 before = bpf_ntohs(in->ip.tot_len) - in->ip.ihl * 4, now = headers + kept;
	__be16 length = bpf_htons(in->ip.ihl * 4 + now), old_length = in->ip.tot_len;

	if (before <= now)
		return before == now;
	s64 sum = sum_of(skb, tcp_at + now, before - now, now & 1);
	if (sum < 0)
		return false;
	/*
	 * What the sum of the packet was: a card's own sum of all of it, where there is one, has lost what is taken
	 * off.
	 */
	bpf_csum_update(skb, sum);
	u16 flags = flags_of(in), new_flags = flags & ~bpf_htons(FIN_AND_PSH);
	if (bpf_l4_csum_replace(skb, check_at, 0, ~(u32)sum, 0) ||
	    bpf_l4_csum_replace(skb, check_at, bpf_htons(before), bpf_htons(now), BPF_F_PSEUDO_HDR | 2) ||
	    bpf_l4_csum_replace(skb, check_at, flags, new_flags, 2) ||
	    bpf_skb_store_bytes(skb, tcp_at + FLAGS_AT, &new_flags, sizeof(new_flags), 0) ||
	    bpf_l3_csum_replace(skb, ip_at + __builtin_offsetof(struct iphdr, check), old_length, length, 2) ||
	    bpf_skb_store_bytes(skb, ip_at + __builtin_offsetof(struct iphdr, tot_len), &length, sizeof(length), 0))
		return false;
	/*
	 * The kernel refuses this for a packet that it still marks as one inside another (direct.h). But the kernel
	 * itself cuts a packet to the length in its IP header (ip_rcv_core() in net/ipv4/ip_input.c), so nothing behind
	 * that gets to a socket.
	 */
	bpf_skb_change_tail(skb, tcp_at + now, 0);
	return true;
}

/*
 * Makes a packet without a message around it a RST at `seq`, without payload. With a payload beyond the window, a
 * socket whose program has not read everything would drop the RST (tcp_sequence() in net/ipv4/tcp_input.c).
 */
static __noinline bool become_bare_reset(struct __sk_buff *skb, struct inner *in, u32 seq)
{
	return become_reset(skb, in, in->tcp_at, seq) &&
	       !bpf_skb_load_bytes(skb, in->tcp_at, &in->tcp, sizeof(in->tcp)) && cut(skb, in, in->tcp_at, 0);
}

/*
 * Clears URG. TCP takes an urgent byte out of what programs read, so the server would read another request than the one
 * that was judged. Without the flag, the urgent pointer means nothing.
 */
static __noinline bool make_ordinary(struct __sk_buff *skb, struct inner *in)
{
	u16 flags = flags_of(in), new_flags = flags & ~bpf_htons(URG_BIT);

	if (flags == new_flags)
		return true;
	in->tcp.urg = 0;
	return !bpf_l4_csum_replace(skb, in->tcp_at + CHECK_AT, flags, new_flags, 2) &&
	       !bpf_skb_store_bytes(skb, in->tcp_at + FLAGS_AT, &new_flags, sizeof(new_flags), 0);
}

/* Sets FIN: the packet says that its client sends no more. */
static __noinline bool become_end(struct __sk_buff *skb, struct inner *in)
{
	return !bpf_skb_load_bytes(skb, in->tcp_at, &in->tcp, sizeof(in->tcp)) &&
	       write_seq(skb, in, in->tcp_at, bpf_ntohl(in->tcp.seq), flags_of(in) | bpf_htons(FIN_BIT));
}

/* Lets TCP have the packet: takes off the message around it, and cuts off what is not let in. */
static __noinline int pass_in(struct arrival *a, struct inner *in, enum counter how)
{
	if (!unwrap(a, in) || !make_ordinary(a->skb, in))
		return TCX_DISCARD;
	if (a->kept && !cut(a->skb, in, in->tcp_at, a->kept == NOTHING ? 0 : a->kept))
		return TCX_DISCARD;
	if (a->ends && !become_end(a->skb, in))
		return TCX_DISCARD;
	count(a->counters, how);
	return TCX_GO_ON;
}

#endif
