/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What comes too early waits in user space: a request for another data server while the response before it is under
 * way, what is behind a request that goes elsewhere, or what is behind something that TCP has not seen. It comes again
 * a moment later (crates/core/src/early.rs), and is looked at as if its client had sent it only then. If it were
 * dropped, it would come again too, but not before its client's timeout, which is 200 ms at least.
 */
#ifndef BATON_DATA_SERVER_DOOR_EARLY_H
#define BATON_DATA_SERVER_DOOR_EARLY_H

#include "data_server/adopt/assign.h"
#include "data_server/agent/reader.h"
#include "data_server/door/cut.h"
#include "data_server/handover/empty_ack.h"
#include "data_server/packet.h"
#include "data_server/plain.h"
#include "include/bounds.h"
#include "include/checksum.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, EARLY_RING_BYTES);
} early SEC(".maps");

/*
 * Copies a record and its data into the ring. False if there is no room. Room is asked for in one of two sizes: the
 * verifier wants `room` to be a constant.
 */
static __always_inline bool copy_early(struct __sk_buff *skb, u32 at, const u32 room, const struct early *as)
{
	struct early *record = bpf_ringbuf_reserve(&early, sizeof(*record) + room, 0);

	if (!record)
		return false;
	if (bpf_skb_load_bytes(skb, at, record + 1, BOUNDED(as->bytes, 1, room))) {
		bpf_ringbuf_discard(record, 0);
		return false;
	}
	*record = *as;
	bpf_ringbuf_submit(record, 0);
	return true;
}

/*
 * Whether the packet's TCP checksum is right. Data that waits comes again in new frames with new checksums, so nobody
 * can find it broken after this. What the kernel knows to be right is not summed here, because TCP believes the kernel
 * as well. But what a card says about a message, it does not say about the packet inside.
 */
static __noinline bool is_sound(struct __sk_buff *skb, const struct inner *in)
{
	const struct sk_buff *kernel_skb = bpf_cast_to_kern_ctx(skb);
	u32 summed = BPF_CORE_READ_BITFIELD(kernel_skb, ip_summed);

	if (summed == CHECKSUM_IS_PARTIAL || (summed == CHECKSUM_IS_UNNECESSARY && !is_wrapped(in)))
		return true;
	u32 bytes = in->tcp.doff * 4 + payload_of(in);
	u32 pseudo_header[] = { in->ip.saddr, in->ip.daddr, bpf_htonl(IPPROTO_TCP << 16 | bytes) };
	s64 sum = sum_of(skb, in->tcp_at, bytes, false);
	return sum >= 0 && !checksum_fold(checksum_words(pseudo_header, 3) + sum);
}

/*
 * Copies the packet's data behind the first `from` bytes into the ring. This is a function of its own because the stack
 * has no room for the record beside what reads a checksum.
 */
static __noinline bool copy_data(struct __sk_buff *skb, struct scratch *s, u32 from, u32 flags)
{
	struct counters *counters = counters_of_this_cpu();
	const struct text *text = text_of_this_cpu();
	struct bpf_tcp_req_attrs stamps = {};

	if (!counters || !text)
		return false;
	const struct inner *in = &s->packet;
	u32 bytes = payload_of(in);
	if (from >= bytes || bytes > EARLY_MERGED_BYTES || !read_timestamps(skb, in, &stamps))
		return false;
	struct early as = {
		.flow = flow_of(&s->header),
		.seq = bpf_ntohl(in->tcp.seq) + from,
		.ack = bpf_ntohl(in->tcp.ack_seq),
		.tsval = stamps.rcv_tsval,
		.be_window = in->tcp.window,
		.flags = (stamps.tstamp_ok ? EARLY_STAMPED : 0) | (in->tcp.fin ? EARLY_ENDS : 0) | flags,
		.bytes = bytes - from,
	};
	if (flags & EARLY_ASKS)
		as.asks = text->question;
	bool has_room = as.bytes > EARLY_BYTES ? copy_early(skb, payload_at(in) + from, EARLY_MERGED_BYTES, &as)
					       : copy_early(skb, payload_at(in) + from, EARLY_BYTES, &as);
	count(counters, has_room ? COUNTER_DS_DOOR_WAITS : COUNTER_DS_DOOR_NO_ROOM);
	return has_room;
}

/*
 * Has the packet's data behind the first `from` bytes wait; `flags` are those of enum early_flag that say what it waits
 * for. True if it waits; false if its checksum is wrong or there is no room. The function is global, so that it is
 * verified by itself.
 */
__noinline int let_wait(struct __sk_buff *skb, u32 from, u32 flags)
{
	struct scratch *s = scratch_of_this_cpu();

	if (!s)
		return false;
	/* Frames that this node sends in itself have right checksums. */
	if (s->sent_in || is_sound(skb, &s->packet))
		return copy_data(skb, s, from, flags);
	struct counters *counters = counters_of_this_cpu();
	if (counters)
		count(counters, COUNTER_DS_DOOR_BROKEN);
	return false;
}

/*
 * Has the packet's data behind the first `from` bytes wait, if this node has an agent: without one, nobody has it come
 * again.
 */
static __always_inline void wait_from(struct arrival *a, u32 from, u32 flags)
{
	if (a->settings->reader_port)
		let_wait(a->skb, from, flags);
}

/* Keeps the packet's data out. What it acknowledges may get in (at_door()). */
static __always_inline int keep_out(struct arrival *a, enum counter why)
{
	a->keeps_out = true;
	return discard(a, why);
}

/* Has the packet's data wait, and keeps it out for the time being. `flags` say what it waits for (enum early_flag). */
static __always_inline int wait_for(struct arrival *a, u32 flags, enum counter why)
{
	wait_from(a, 0, flags);
	return keep_out(a, why);
}

static __always_inline int wait(struct arrival *a, enum counter why)
{
	return wait_for(a, 0, why);
}

/*
 * Has the packet's data wait, because a dispatcher is to be asked whose the request is that begins with it. What the
 * agent has sent, the agent itself sends again: `flags` say so (EARLY_ONLY_ASKS).
 */
static __noinline int wait_for_word(struct arrival *a, u32 flags)
{
	let_wait(a->skb, 0, EARLY_ASKS | flags);
	return keep_out(a, COUNTER_DS_DOOR_ASKS);
}

/*
 * Whether the packet comes later than its client has sent it: it has waited here, or at the data server before, or the
 * agent has read it.
 */
static __always_inline bool has_waited(const struct arrival *a, const struct lccp_header *h)
{
	return a->sent_in || a->mark == MARK_OF_AGENT || (h->command == LCCP_FORWARD && h->tcb.attempt) ||
	       is_adopt_again(h);
}

/*
 * Makes a packet that has waited say what its client would say at this moment. It acknowledges all that the client has
 * acknowledged meanwhile, and has the window that the client announced last. Its timestamp is not behind what TCP has
 * seen of the client (PAWS, RFC 7323, 5), and it echoes our newest one. If an older packet's window were counted from a
 * newer acknowledgement, it would reach beyond the room that there is: the client drops what does not fit. False if
 * that fails.
 */
static __noinline bool renew(struct arrival *a, struct inner *in, const struct tcp_sock *tcp)
{
	/* A message around it would no longer match the packet. */
	if (!unwrap(a, in))
		return false;
	u32 at = in->tcp_at + sizeof(struct tcphdr);
	__be32 stamp, newest = bpf_htonl(tcp->rx_opt.ts_recent);

	if (!is_before(tcp->snd_una, bpf_ntohl(in->tcp.ack_seq)) && !write_window(a, in, tcp))
		return false;
	if (!acknowledge_now(a->skb, in, tcp->snd_una))
		return false;
	if (in->tcp.doff * 4 != sizeof(struct tcphdr) + TIMESTAMPS_ALONE_BYTES)
		return true;
	if (bpf_skb_load_bytes(a->skb, at + STAMP_AT, &stamp, sizeof(stamp)))
		return false;
	if (is_before(bpf_ntohl(stamp), tcp->rx_opt.ts_recent) &&
	    (bpf_l4_csum_replace(a->skb, in->tcp_at + CHECK_AT, stamp, newest, 4) ||
	     bpf_skb_store_bytes(a->skb, at + STAMP_AT, &newest, sizeof(newest), 0)))
		return false;
	return echo_now(a->skb, in, tcp->tsoffset);
}

#endif
