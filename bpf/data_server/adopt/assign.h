/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Makes a socket of the numbers in a message and the client's packet, on whatever listens on the service port. */
#ifndef BATON_DATA_SERVER_ADOPT_ASSIGN_H
#define BATON_DATA_SERVER_ADOPT_ASSIGN_H

#include "data_server/adopt/window.h"
#include "data_server/door/cut.h"
#include "data_server/packet.h"
#include "data_server/refuse.h"
#include "include/bounds.h"
#include "include/tcp_options.h"

enum {
	LOOPBACK = 0x7f000001,
	EINVAL = 22,
	TIMESTAMPS_ALONE = 0x0101080a, /* NOP NOP TIMESTAMPS 10: what nearly every segment carries */
	TIMESTAMPS_ALONE_BYTES = 12,
};

/*
 * Reads the timestamps of the client's packet, if it has any: then they were negotiated. False if its options cannot be
 * read.
 */
static __always_inline bool read_timestamps(struct __sk_buff *skb, const struct inner *in,
					    struct bpf_tcp_req_attrs *attrs)
{
	struct raw_options raw = {};
	u32 bytes = in->tcp.doff * 4 - sizeof(struct tcphdr);
	struct tcp_options options;

	if (!bytes)
		return true;
	if (bytes > OPTIONS_MAX ||
	    bpf_skb_load_bytes(skb, in->tcp_at + sizeof(struct tcphdr), &raw, BOUNDED(bytes, 1, OPTIONS_MAX)))
		return false;
	if (bytes == TIMESTAMPS_ALONE_BYTES && option_word(raw.bytes) == TIMESTAMPS_ALONE) {
		attrs->tstamp_ok = 1;
		attrs->rcv_tsval = option_word(raw.bytes + 4);
		attrs->rcv_tsecr = option_word(raw.bytes + 8);
		return true;
	}
	if (!parse_options(&raw, bytes, &options))
		return false;
	attrs->tstamp_ok = options.timestamps;
	attrs->rcv_tsval = options.tsval;
	attrs->rcv_tsecr = options.tsecr;
	return true;
}

/* Makes the socket on `listener`. Returns 0 or a negative errno. Attributes and options are on a stack of their own. */
static __noinline int assign(struct arrival *a, const struct lccp_header *h, const struct inner *in,
			     struct bpf_sock *listener)
{
	struct bpf_tcp_req_attrs attrs = {
		.mss = bpf_ntohs(h->tcb.be_mss),
		.rcv_wscale = h->tcb.rcv_wscale,
		.snd_wscale = h->tcb.snd_wscale,
		.wscale_ok = !!(h->tcb.options & LCCP_TCB_WSCALE),
		.sack_ok = !!(h->tcb.options & LCCP_TCB_SACK),
	};
	struct tcp_sock *sk = bpf_skc_to_tcp_sock(listener);

	if (!sk || !read_timestamps(a->skb, in, &attrs))
		return -EINVAL;
	return bpf_sk_assign_tcp_reqsk(a->skb, (struct sock *)sk, &attrs, sizeof(attrs));
}

/*
 * Makes the socket on a plain listener of the daemon's own, at this port of 127.0.0.1. Port 0: the daemon has none.
 * False if no socket was made.
 */
static __always_inline bool assign_own(struct arrival *a, const struct lccp_header *h,
				       const struct inner *in, u16 port)
{
	if (!port)
		return false;
	struct bpf_sock *relay = lookup(a->skb, in->ip.saddr, bpf_htonl(LOOPBACK), in->tcp.source,
					bpf_htons(port));
	if (!relay)
		return false;
	bool assigned = relay->state == STATE_LISTEN && assign(a, h, in, relay) == 0;
	bpf_sk_release(relay);
	return assigned;
}

static __always_inline int adopt_at(struct arrival *a, struct lccp_header *h, struct inner *in,
				    struct bpf_sock *listener)
{
	enum counter how = COUNTER_DS_ADOPTED;

	if (assign(a, h, in, listener)) {
		/* The kernel refuses MPTCP listeners (-EINVAL): then the daemon takes the connection and relays. */
		how = COUNTER_DS_ADOPTED_RELAY;
		if (!assign_own(a, h, in, a->settings->relay_port)) {
			count(a->counters, COUNTER_DS_UNASSIGNED);
			return refuse(a, h, in, LCCP_REFUSAL_NOT_ASSIGNED);
		}
	}
	expect(a->skb, h, in);
	return pass_in(a, in, how);
}

#endif
