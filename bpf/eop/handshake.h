/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes and reads the option in SYN and SYN-ACK, for sockets that announce EOP. No other socket, and no packet after
 * the handshake, costs anything. The result of the handshake is kept with the socket.
 */
#ifndef BATON_EOP_HANDSHAKE_H
#define BATON_EOP_HANDSHAKE_H

#include "eop/eop.h"

enum {
	FLAG_SYN = 0x02,
	FLAG_ACK = 0x10,
	SYNS_WITH_OPTION = 2, /* a device on the way may drop options that it does not know */
};

static __always_inline struct eop_socket *announcer(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;

	if (!sk)
		return NULL;
	return bpf_sk_storage_get(&eop_sockets, sk, NULL, 0);
}

static __always_inline void hear_of_options(struct bpf_sock_ops *ops, bool on)
{
	u32 flags = ops->bpf_sock_ops_cb_flags & ~BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG;

	bpf_sock_ops_cb_flags_set(ops, on ? flags | BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG : flags);
}

static __always_inline bool has_option(struct bpf_sock_ops *ops, u64 where)
{
	u8 option[OPTION_BYTES] = EOP_OPTION;

	return bpf_load_hdr_opt(ops, option, sizeof(option), where) == OPTION_BYTES;
}

/* Whether this packet is to have the option; `counts` is true in one call for each packet. */
static __always_inline bool wants_option(struct bpf_sock_ops *ops, bool counts)
{
	u32 flags = ops->skb_tcp_flags;

	if (!(flags & FLAG_SYN) || ops->args[0] == BPF_WRITE_HDR_TCP_CURRENT_MSS)
		return false;
	if (!(flags & FLAG_ACK)) {
		bool with = ops->total_retrans < SYNS_WITH_OPTION;
		struct eop_socket *socket = announcer(ops);

		if (!counts)
			return with;
		count_eop(with ? EOP_SYN : EOP_SYN_WITHOUT);
		if (socket)
			socket->unsaid = !with;
		return with;
	}
	if (!has_option(ops, BPF_LOAD_HDR_OPT_TCP_SYN))
		return false;
	bool cookie = ops->args[0] == BPF_WRITE_HDR_TCP_SYNACK_COOKIE;

	if (counts)
		count_eop(cookie ? EOP_SYN_ACK_COOKIE : EOP_SYN_ACK);
	return !cookie;
}

/* Notes that a packet had no space for the option. An answer to such a SYN does not say that the other side is plain. */
static __always_inline void note_no_space(struct bpf_sock_ops *ops)
{
	struct eop_socket *socket = announcer(ops);

	count_eop(EOP_NO_SPACE);
	if (socket && !(ops->skb_tcp_flags & FLAG_ACK))
		socket->unsaid = true;
}

static __always_inline void settle(struct bpf_sock_ops *ops, u64 where, u32 agreed, u32 plain)
{
	struct eop_socket *socket = announcer(ops);

	if (!socket || !socket->announced)
		return;
	socket->agreed = has_option(ops, where);
	count_eop(socket->agreed ? agreed : socket->unsaid ? EOP_UNSAID : plain);
	hear_of_options(ops, false);
}

SEC("sockops")
int eop_handshake(struct bpf_sock_ops *ops)
{
	u8 option[OPTION_BYTES] = EOP_OPTION;
	struct eop_socket *socket;
	int save = 1;

	switch (ops->op) {
	case BPF_SOCK_OPS_TCP_LISTEN_CB:
		socket = announcer(ops);
		if (!socket || !socket->announced)
			break;
		/* TCP has to save the SYN: its option is read again when the connection is established. */
		bpf_setsockopt(ops, IPPROTO_TCP, TCP_SAVE_SYN, &save, sizeof(save));
		hear_of_options(ops, true);
		break;
	case BPF_SOCK_OPS_TCP_CONNECT_CB:
		socket = announcer(ops);
		if (socket && socket->announced)
			hear_of_options(ops, true);
		/* A SYN whose space is all used is not told of here. */
		if (socket)
			socket->unsaid = true;
		break;
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
		if (wants_option(ops, true) && bpf_reserve_hdr_opt(ops, OPTION_BYTES, 0))
			note_no_space(ops);
		break;
	case BPF_SOCK_OPS_WRITE_HDR_OPT_CB:
		if (wants_option(ops, false))
			bpf_store_hdr_opt(ops, option, sizeof(option), 0);
		break;
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
		settle(ops, 0, EOP_AGREED_CLIENT, EOP_PLAIN_SERVER);
		break;
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		settle(ops, BPF_LOAD_HDR_OPT_TCP_SYN, EOP_AGREED_SERVER, EOP_PLAIN_CLIENT);
		break;
	}
	return 1;
}

#endif
