/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Answers a SYN with a cookie. Nothing is kept of the SYN. */
#ifndef BATON_CONNECTION_SERVER_BEGIN_SYN_H
#define BATON_CONNECTION_SERVER_BEGIN_SYN_H

#include "connection_server/begin/timestamp.h"
#include "connection_server/reply.h"
#include "connection_server/tcb.h"
#include "include/cookie.h"
#include "xdp/packet.h"

enum {
	SYN_ACK_WINDOW = 64240, /* the kernel's own first window; a data server's socket allows no less */
};

static __always_inline u8 *put_word(u8 *at, u8 a, u8 b, u8 c, u8 d)
{
	at[0] = a;
	at[1] = b;
	at[2] = c;
	at[3] = d;
	return at + 4;
}

static __always_inline u8 *put_number(u8 *at, u32 number)
{
	return put_word(at, number >> 24, number >> 16, number >> 8, number);
}

/*
 * Writes the SYN-ACK's options: MSS always, and SACK, timestamps and window scale if the client offered them. Returns
 * their length in bytes.
 */
static __always_inline u32 put_options(u8 *options, struct packet *p, const struct tcp_options *o)
{
	const struct settings *s = p->settings;

	if (!o->timestamps) {
		u8 *at = put_word(options, OPTION_MSS, 4, s->mss >> 8, s->mss);

		if (o->sack)
			at = put_word(at, OPTION_NOP, OPTION_NOP, OPTION_SACK_PERMITTED, 2);
		if (o->wscale != WSCALE_NONE)
			at = put_word(at, OPTION_NOP, OPTION_WSCALE, 3, s->rcv_wscale);
		return at - options;
	}

	put_word(options, OPTION_MSS, 4, s->mss >> 8, s->mss);
	put_word(options + 4, o->sack ? OPTION_SACK_PERMITTED : OPTION_NOP, o->sack ? 2 : OPTION_NOP,
		 OPTION_TIMESTAMPS, 10);
	put_number(options + 8, our_timestamp(p));
	put_number(options + 12, o->tsval);
	if (o->wscale == WSCALE_NONE)
		return 16;
	put_word(options + 16, OPTION_NOP, OPTION_WSCALE, 3, s->rcv_wscale);
	return 20;
}

/*
 * Reads the options that Linux and Android send: MSS, SACK permitted, timestamps, NOP, window scale, in this order.
 * Most SYNs have them, and reading five words is faster than parsing twenty bytes. False if the options are others.
 */
static __always_inline bool read_usual_options(const struct tcphdr *tcp, void *data_end, struct tcp_options *o)
{
	const __be32 *words = (const void *)(tcp + 1);

	if (tcp->doff != 10 || (void *)(words + 5) > data_end)
		return false;
	u32 mss = bpf_ntohl(words[0]), scale = bpf_ntohl(words[4]);
	if (mss >> 16 != (OPTION_MSS << 8 | 4) ||
	    words[1] != bpf_htonl(OPTION_SACK_PERMITTED << 24 | 2 << 16 | OPTION_TIMESTAMPS << 8 | 10) ||
	    scale >> 8 != (OPTION_NOP << 16 | OPTION_WSCALE << 8 | 3))
		return false;
	o->mss = mss;
	o->wscale = (u8)scale > WSCALE_MAX ? WSCALE_MAX : (u8)scale;
	o->sack = true;
	o->timestamps = true;
	o->tsval = bpf_ntohl(words[2]);
	return true;
}

static __always_inline bool read_options(struct packet *p, struct tcp_options *options)
{
	struct raw_options raw = {};
	u32 bytes = p->frame.tcp_header - sizeof(struct tcphdr);
	u32 offset = sizeof(struct ethhdr) + p->frame.ip_header + sizeof(struct tcphdr);

	if (read_usual_options(p->frame.tcp, (void *)(long)p->ctx->data_end, options))
		return true;
	if (bytes > OPTIONS_MAX)
		return false;
	if (bytes && bpf_xdp_load_bytes(p->ctx, offset, &raw, BOUNDED(bytes, 1, OPTIONS_MAX)))
		return false;
	return parse_options(&raw, bytes, options);
}

static __noinline int answer_syn(struct packet *p)
{
	struct tcphdr *tcp = p->frame.tcp;
	struct tcp_options options;
	struct segment segment = {};

	if (tcp->ack || tcp->rst || tcp->fin)
		return drop(p, COUNTER_BAD_TCP);
	if (p->service->flags & SERVICE_DOWN)
		return reset(p, COUNTER_CS_NO_DATA_SERVER);
	if (!read_options(p, &options))
		return drop(p, COUNTER_CS_SYN_BAD_OPTIONS);

	struct cookie_flow flow = {
		.client = p->frame.ip->saddr,
		.cluster = p->frame.ip->daddr,
		.client_port = tcp->source,
		.cluster_port = tcp->dest,
		.client_isn = bpf_ntohl(tcp->seq),
	};

	segment.tcp.syn = 1;
	segment.tcp.ack = 1;
	segment.tcp.window = bpf_htons(SYN_ACK_WINDOW);
	segment.tcp.ack_seq = bpf_htonl(flow.client_isn + 1);
	segment.tcp.seq = bpf_htonl(cookie_make(p->settings, &flow, &options));
	u32 bytes = put_options(segment.options, p, &options);

	count(p->counters, COUNTER_CS_SYN);
	return reply(p, &segment, REPLY_HEADERS + bytes);
}

#endif
