/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A connect() waits for the far end: its SYN is dropped here, after the agent has been told. When the far end has
 * answered, the agent sends a SYN of its own, and the two make a connection as if both ends had connected at the same
 * time (RFC 9293, 3.5, figure 8). If the far end has refused, the agent sends an ICMP error. So the program sees what
 * it would see from the far end itself, whether it waits or polls. TCP sends the SYN again after a second, and so on:
 * an event that was lost is told again, and if nobody ever answers, connect() times out as usual.
 */
#ifndef BATON_VIRTUAL_SOCKETS_HOLD_H
#define BATON_VIRTUAL_SOCKETS_HOLD_H

#include "virtual_sockets/socket.h"

enum {
	STATE_SYN_SENT = 2,
	PASS = 1,
	DROP = 0,
	VERSION_4 = 4,
};

static __always_inline void tell_call(struct __sk_buff *skb, const struct app_socket *s,
				      const struct words *own, u32 transport)
{
	struct tcphdr tcp;

	if (bpf_skb_load_bytes(skb, transport, &tcp, sizeof(tcp)))
		return;
	struct app_event event = {
		.cookie = bpf_get_socket_cookie(skb),
		.at = address_of(own, tcp.source),
		.other = s->peer,
		.options = s->options,
		.kind = APP_EVENT_CALL,
		.seq = bpf_ntohl(tcp.seq),
	};
	if (!tell(event))
		app_count(COUNTER_APP_SYN_LOST);
}

SEC("cgroup_skb/egress")
int baton_app_hold(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;

	if (!sk || sk->state != STATE_SYN_SENT)
		return PASS;
	sk = bpf_sk_fullsock(sk);
	struct app_socket *s = sk ? known(sk) : NULL;
	if (!s || !(s->flags & APP_SOCKET_CALLS))
		return PASS;
	if (!has_agent(app_settings_now())) {
		/* No agent listens on that port anymore: the program gets a refusal instead of silence for minutes. */
		app_count(COUNTER_APP_SYN_LET_GO);
		return PASS;
	}
	app_count(COUNTER_APP_SYN_HELD);

	u8 first;
	struct words own;
	if (bpf_skb_load_bytes(skb, 0, &first, sizeof(first)))
		return DROP;
	if (first >> 4 == VERSION_4) {
		u32 source;
		if (bpf_skb_load_bytes(skb, 12, &source, sizeof(source)))
			return DROP;
		own = mapped(source);
		tell_call(skb, s, &own, (first & 0xf) * 4);
	} else if (!bpf_skb_load_bytes(skb, 8, &own, sizeof(own))) {
		/* There are no extension headers: the kernel sends none over loopback unless asked. */
		tell_call(skb, s, &own, 40);
	}
	return DROP;
}

#endif
