/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A segment with data acknowledges no less than the client was told before.
 *
 * The agent acknowledges what it reads, and keeps it until the connection's socket has it (kept.h). Until then that
 * socket acknowledges less than its client knows. From such a segment the client takes the data but not the timestamp
 * (tcp_ack() in net/ipv4/tcp_input.c: old_ack), so the timestamp that it echoes is old. The socket then believes that
 * what it has retransmitted had arrived the first time (RFC 3522), retransmits no more of what is missing, and measures
 * round trips of minutes. So each packet with data that leaves acknowledges all that has been acknowledged.
 */
#ifndef BATON_DATA_SERVER_DOOR_ACKNOWLEDGED_H
#define BATON_DATA_SERVER_DOOR_ACKNOWLEDGED_H

#include "data_server/adopt/end.h"
#include "data_server/door/asked.h"
#include "data_server/door/door.h"
#include "data_server/packet.h"

enum {
	ACKNOWLEDGED_MOST = 65535, /* bytes no socket has yet: at most the next one's first window (READ_BYTES_MOST) */
};

/*
 * Notes that data up to `end` has been acknowledged: a keeper sends only such data. Data that TCP has already, or that
 * is of an earlier connection with the same ports, changes nothing.
 */
static __noinline void note_acknowledged(struct bpf_sock *sk, u32 rcv_nxt, u32 end)
{
	if (end - rcv_nxt - 1 >= ACKNOWLEDGED_MOST)
		return;
	struct response *r = new_response(sk);
	if (r && (!r->acknowledged || is_before(r->acknowledged, end)))
		r->acknowledged = end;
}

/*
 * Raises the acknowledgement of a packet with data that leaves to all that has been acknowledged. Its window becomes
 * smaller by as much, because the window is counted from the acknowledgement.
 */
static __noinline void acknowledge_all(struct __sk_buff *skb, struct response *r)
{
	const u32 at = sizeof(struct ethhdr) + sizeof(struct iphdr);
	u32 zero = 0;
	const struct settings *s = bpf_map_lookup_elem(&settings, &zero);
	struct tcphdr tcp;

	if (!r || !s || bpf_skb_load_bytes(skb, at, &tcp, sizeof(tcp)))
		return;
	u32 more = r->acknowledged - bpf_ntohl(tcp.ack_seq);
	/* The socket has all of it, so the note is no longer needed. */
	if ((int)more <= 0) {
		r->acknowledged = 0;
		return;
	}
	u32 window = bpf_ntohs(tcp.window), less = more >> (s->rcv_wscale & 15);
	__be16 new_window = bpf_htons(window > less ? window - less : 0);
	__be32 new_ack = bpf_htonl(r->acknowledged);
	if (!bpf_l4_csum_replace(skb, at + CHECK_AT, tcp.ack_seq, new_ack, 4) &&
	    !bpf_l4_csum_replace(skb, at + CHECK_AT, tcp.window, new_window, 2) &&
	    !bpf_skb_store_bytes(skb, at + ACK_AT, &new_ack, sizeof(new_ack), 0))
		bpf_skb_store_bytes(skb, at + WINDOW_AT, &new_window, sizeof(new_window), 0);
}

#endif
