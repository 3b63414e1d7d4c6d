/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Keep-alive probes before the first request (RFC 9293, 3.8.4). A client that connects ahead of need asks whether the
 * server is still there. The probe has the sequence number SND.NXT-1, and the answer acknowledges SND.NXT. No node has
 * a socket for such a connection yet. So the probe is answered like the SYN, from the cookie alone, for as long as the
 * cookie is valid.
 */
#ifndef BATON_CONNECTION_SERVER_BEGIN_PROBE_H
#define BATON_CONNECTION_SERVER_BEGIN_PROBE_H

#include "connection_server/begin/syn.h"
#include "connection_server/begin/used_cookies.h"
#include "connection_server/reply.h"
#include "xdp/packet.h"

enum {
	PROBE_PAYLOAD = 1, /* old systems send one garbage octet (RFC 1122, 4.2.3.6) */
};

/*
 * Whether this is a probe of a connection on which no request has come. Where the server speaks first, a data
 * server has the connection from the handshake on, and answers probes itself.
 */
static __always_inline bool is_probe_of_unused(struct packet *p)
{
	const struct tcphdr *tcp = p->frame.tcp;

	if (!tcp->ack || tcp->rst || tcp->fin || p->frame.payload > PROBE_PAYLOAD ||
	    p->service->flags & SERVICE_SPLIT_AT_ACK)
		return false;
	u32 tag = tag_of_cookie(p, bpf_ntohl(tcp->seq));
	return tag && !is_used(bpf_ntohl(tcp->ack_seq) - 1, tag);
}

static __noinline int answer_probe(struct packet *p)
{
	const struct tcphdr *tcp = p->frame.tcp;
	struct tcp_options options;
	struct segment segment = {};
	struct lccp_tcb part = {};
	u32 bytes = 0;

	if (!read_options(p, &options))
		return drop(p, COUNTER_BAD_TCP);
	cookie_open(bpf_ntohl(tcp->ack_seq) - 1, p->settings->rcv_wscale, &part);
	segment.tcp.ack = 1;
	segment.tcp.seq = tcp->ack_seq;
	segment.tcp.ack_seq = bpf_htonl(bpf_ntohl(tcp->seq) + 1);
	/* Only the SYN-ACK's window is not scaled. */
	segment.tcp.window = bpf_htons(SYN_ACK_WINDOW >> (part.rcv_wscale & 15));
	if (options.timestamps) {
		put_word(segment.options, OPTION_NOP, OPTION_NOP, OPTION_TIMESTAMPS, 10);
		/*
		 * The value that the client echoes is not too old for it (PAWS, RFC 7323). Our clock's value may be, if
		 * the key behind its offset was replaced.
		 */
		put_number(segment.options + 4, options.tsecr);
		put_number(segment.options + 8, options.tsval);
		bytes = 12;
	}
	count(p->counters, COUNTER_CS_PROBE);
	return reply(p, &segment, REPLY_HEADERS + bytes);
}

#endif
