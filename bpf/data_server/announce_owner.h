/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * DM1 to the client's side: an aware client is told where its data server is, by an option in the packets that the data
 * server sends until the client has acknowledged some data. The option is inside the connection, so nobody who is not
 * on the connection's path can forge it.
 */
#ifndef BATON_DATA_SERVER_ANNOUNCE_OWNER_H
#define BATON_DATA_SERVER_ANNOUNCE_OWNER_H

#include "data_server/packet.h"
#include "include/aware.h"

static __always_inline void write_options(struct bpf_sock_ops *ops, bool on)
{
	u32 flags = ops->bpf_sock_ops_cb_flags & ~BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG;

	bpf_sock_ops_cb_flags_set(ops, on ? flags | BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG : flags);
}

/*
 * Has this new socket tell its client where its data server is, from the first packet on. A node that is a connection
 * server too tells nothing, because its clients come to it anyway. But the socket remembers that its client is aware,
 * for the data server that has the connection next (aware_option()).
 */
static __always_inline void begin_to_tell(struct bpf_sock_ops *ops)
{
	struct counters *counters = counters_of_this_cpu();

	if (!ops->sk || !bpf_sk_storage_get(&telling, ops->sk, 0, BPF_SK_STORAGE_GET_F_CREATE) || is_also_cs)
		return;
	write_options(ops, true);
	if (counters)
		count(counters, COUNTER_DS_TOLD);
}

/*
 * Returns LCCP_TCB_AWARE if the client of this socket is aware, so that the data server that has the connection next
 * tells it as well; else 0.
 */
static __always_inline u8 aware_option(struct bpf_sock *sk)
{
	return bpf_sk_storage_get(&telling, sk, 0, 0) ? LCCP_TCB_AWARE : 0;
}

static __always_inline bool tells(struct bpf_sock_ops *ops)
{
	return ops->sk && bpf_sk_storage_get(&telling, ops->sk, 0, 0);
}

static __always_inline void make_room_to_tell(struct bpf_sock_ops *ops)
{
	if (!tells(ops))
		return;
	if (ops->bytes_acked)
		write_options(ops, false);
	else
		bpf_reserve_hdr_opt(ops, HERE_BYTES, 0);
}

static __always_inline void tell(struct bpf_sock_ops *ops)
{
	u8 option[HERE_BYTES] = HERE_OPTION;
	u32 zero = 0;
	const struct settings *s = bpf_map_lookup_elem(&settings, &zero);

	if (!s || !tells(ops))
		return;
	__builtin_memcpy(option + HERE_ADDRESS_AT, s->address + 12, sizeof(__be32));
	bpf_store_hdr_opt(ops, option, sizeof(option), 0);
}

#endif
