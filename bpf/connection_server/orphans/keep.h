/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Kept requests. If a data server dies in the middle of a response, another one is sent the same request, byte for
 * byte. The owner keeps the request (data_server/door/keep_request.h) and tells the connection servers.
 */
#ifndef BATON_CONNECTION_SERVER_ORPHANS_KEEP_H
#define BATON_CONNECTION_SERVER_ORPHANS_KEEP_H

#include "connection_server/tally.h"
#include "routing/request.h"
#include "xdp/packet.h"

_Static_assert(__builtin_offsetof(struct text, at) == __builtin_offsetof(struct kept_request, text),
	       "a text begins like a kept request");

/*
 * Keeps the request that was read last, which begins this packet and is `bytes` bytes long. Its text is still in
 * `text`, where reading has left it. False if the map has no room.
 */
static __always_inline bool keep_text(struct text *text, const struct tcb_key *flow, const struct tcphdr *tcp, u32 bytes, u16 pool)
{
	text->kept[0] = bpf_ntohl(tcp->seq);
	text->kept[1] = bpf_ntohl(tcp->ack_seq);
	text->kept[2] = bytes | (u32)pool << 16;
	text->kept[3] = 0;
	return !bpf_map_update_elem(&kept_requests, flow, text, BPF_ANY);
}

/*
 * Whether the kept request is the client's last one: it has sent nothing behind it, and has acknowledged all that came
 * before the response.
 */
static __always_inline bool is_current(const struct kept_request *kept, const struct tcb *tcb)
{
	return is_at_door(tcb) && kept->request_seq + kept->bytes == tcb->last_seq &&
	       (int)(tcb->last_ack - kept->response_start) >= 0;
}

/* The kept request of this flow, if it is the current one of the entry; else 0. */
static __always_inline const struct kept_request *kept_of(const struct tcb_key *flow, const struct tcb *tcb)
{
	const struct kept_request *kept = bpf_map_lookup_elem(&kept_requests, flow);

	return kept && is_current(kept, tcb) ? kept : 0;
}

static __always_inline bool is_kept(const struct tcb_key *flow, const struct tcb *tcb)
{
	return kept_of(flow, tcb);
}

#endif
