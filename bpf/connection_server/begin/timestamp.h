/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Our TCP timestamps (RFC 7323). They count milliseconds from an offset that differs for each pair of addresses and
 * ports, and only a node that has the cookie key can compute it. A data server's socket goes on counting from what the
 * client echoes. So a valid echo shows that its sender has seen packets of this very connection, and any connection
 * server can check that without an entry.
 */
#ifndef BATON_CONNECTION_SERVER_BEGIN_TIMESTAMP_H
#define BATON_CONNECTION_SERVER_BEGIN_TIMESTAMP_H

#include "include/clock.h"
#include "include/siphash.h"
#include "include/tcp_options.h"
#include "xdp/packet.h"

enum {
	NS_PER_MS = 1000000,
	/*
	 * An echo is as old as the last packet that the client got. Where a connection was handed over while it was
	 * idle, the next data server goes on counting from that echo. So echoes may be 70 minutes old. Clocks of hosts
	 * do not run ahead by more than 2 minutes. A forger's guess falls between these two limits once in 990 times.
	 */
	ECHO_OLD_MS = 1 << 22,
	ECHO_AHEAD_MS = 1 << 17,
};

static __noinline u32 timestamp_offset(struct packet *p, u32 key)
{
	const struct frame *f = &p->frame;
	u64 words[2] = {
		(u64)f->ip->saddr << 32 | f->ip->daddr,
		(u32)f->tcp->source << 16 | f->tcp->dest,
	};

	return siphash(siphash_key(p->settings->cookie_key[key & 1]), words, 2) >> 32;
}

static __always_inline u32 timestamp_now(const struct settings *s)
{
	return wall_clock(s) / NS_PER_MS;
}

/* The timestamp (TSval) that a packet to this packet's client carries. */
static __always_inline u32 our_timestamp(struct packet *p)
{
	return timestamp_now(p->settings) + timestamp_offset(p, 0);
}

static __always_inline bool is_echo_of(struct packet *p, u32 key, u32 echo)
{
	u32 age = timestamp_now(p->settings) + timestamp_offset(p, key) - echo;

	return age + ECHO_AHEAD_MS < ECHO_AHEAD_MS + ECHO_OLD_MS;
}

/*
 * Reads the echoed timestamp where nearly every segment has it: in front of all other options, behind two NOPs. False
 * if this segment has none there.
 */
static __always_inline bool read_echo(struct packet *p, u32 *echo)
{
	const struct tcphdr *tcp = p->frame.tcp;
	const __be32 *words = (const void *)(tcp + 1);

	if (tcp->doff < 8 || (void *)(words + 3) > (void *)(long)p->ctx->data_end ||
	    words[0] != bpf_htonl(OPTION_NOP << 24 | OPTION_NOP << 16 | OPTION_TIMESTAMPS << 8 | 10))
		return false;
	*echo = bpf_ntohl(words[2]);
	return true;
}

/* Whether this packet echoes a timestamp of ours, under this key or the previous one. */
static __noinline bool echoes_us(struct packet *p)
{
	const u64 *previous = p->settings->cookie_key[1];
	u32 echo;

	if (!read_echo(p, &echo))
		return false;
	return is_echo_of(p, 0, echo) || ((previous[0] | previous[1]) && is_echo_of(p, 1, echo));
}

#endif
