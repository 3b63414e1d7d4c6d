/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * 503: the HTTP answer that the connection server gives itself, when nobody is there to give a better one. Also the end of the
 * connection, which nobody owns.
 */
#ifndef BATON_CS_UNAVAILABLE_H
#define BATON_CS_UNAVAILABLE_H

#include "packet.h"
#include "reply.h"
#include "request.h"
#include "../tcp_options.h"

/* A whole number of words, for the checksum: hence the blanks. */
#define UNAVAILABLE                                                                                    \
	"HTTP/1.1 503 Service Unavailable\r\n"                                                         \
	"Retry-After:   1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

enum {
	UNAVAILABLE_BYTES = sizeof(UNAVAILABLE) - 1,
	TIMESTAMP_WORDS = 3,
};

/* The answer in its frame. */
struct unavailable {
	struct iphdr ip;
	struct tcphdr tcp;
	__be32 timestamps[TIMESTAMP_WORDS]; /* or NOPs, if the client has none */
	char text[UNAVAILABLE_BYTES];
} __attribute__((packed));

_Static_assert(sizeof(struct unavailable) % 4 == 0, "the checksum runs over whole words");

/* What the client said last of our clock is what it says now: no more is known of its owner's. */
static __always_inline void echo_timestamps(__be32 *echo, const struct tcphdr *tcp, void *data_end)
{
	const __be32 *words = (const void *)(tcp + 1);

	__builtin_memset(echo, OPTION_NOP, TIMESTAMP_WORDS * sizeof(*echo));
	if (tcp->doff < 8 || (void *)(words + TIMESTAMP_WORDS) > data_end ||
	    words[0] != bpf_htonl(OPTION_NOP << 24 | OPTION_NOP << 16 | OPTION_TIMESTAMPS << 8 | 10))
		return;
	echo[0] = words[0];
	echo[1] = words[2];
	echo[2] = words[1];
}

static __noinline int answer_unavailable(struct packet *p)
{
	const struct tcphdr *tcp = p->frame.tcp;
	__be32 client = p->frame.ip->saddr, cluster = p->frame.ip->daddr;
	u32 tcp_bytes = sizeof(struct unavailable) - sizeof(struct iphdr);
	__be32 timestamps[TIMESTAMP_WORDS];
	struct tcphdr answer_tcp = {
		.source = tcp->dest,
		.dest = tcp->source,
		.seq = tcp->ack_seq,
		.ack_seq = bpf_htonl(bpf_ntohl(tcp->seq) + p->frame.payload + tcp->fin),
		.doff = sizeof(struct tcphdr) / 4 + TIMESTAMP_WORDS,
		.ack = 1,
		.psh = 1,
		.fin = 1,
		.window = bpf_htons(0xffff),
	};

	if (was_carried(p->ctx))
		return XDP_DROP;
	echo_timestamps(timestamps, tcp, (void *)(long)p->ctx->data_end);
	swap_macs(p->frame.eth);
	if (!resize(p->ctx, sizeof(struct ethhdr) + sizeof(struct unavailable)))
		return drop(p, COUNTER_CS_NO_ROOM);
	struct unavailable *answer = (void *)(long)p->ctx->data + sizeof(struct ethhdr);
	if ((void *)(answer + 1) > (void *)(long)p->ctx->data_end)
		return drop(p, COUNTER_CS_NO_ROOM);
	answer->ip = (struct iphdr){
		.version = 4,
		.ihl = sizeof(struct iphdr) / 4,
		.tot_len = bpf_htons(sizeof(*answer)),
		.frag_off = bpf_htons(0x4000),
		.ttl = TTL,
		.protocol = IPPROTO_TCP,
		.saddr = cluster,
		.daddr = client,
	};
	answer->tcp = answer_tcp;
	__builtin_memcpy(answer->timestamps, timestamps, sizeof(timestamps));
	__builtin_memcpy(answer->text, UNAVAILABLE, UNAVAILABLE_BYTES);
	answer->ip.check = checksum_fold(checksum_words((void *)&answer->ip, 5));
	u64 pseudo = (u64)client + cluster + bpf_htonl(IPPROTO_TCP << 16 | tcp_bytes);
	answer->tcp.check =
		checksum_fold(pseudo + checksum_words((void *)&answer->tcp, sizeof(*answer) / 4 - 5));
	count(p->counters, COUNTER_CS_UNAVAILABLE);
	return send_back(p, (struct ethhdr *)answer - 1);
}

/* Nobody can answer: HTTP hears of it in its own words, everybody else gets a RST. */
static __always_inline int nobody_answers(struct packet *p)
{
	struct request *r = blank_request();

	if (r && p->frame.tcp->ack && (read_request_of(p, r) || r->target))
		return answer_unavailable(p);
	return reset(p, COUNTER_CS_NO_DATA_SERVER);
}

#endif
