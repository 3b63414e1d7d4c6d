/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How a program without privileges says that its socket speaks EOP, and asks whether the peer does: by the socket
 * option TCP_ULP, which names the protocol above TCP, with the name "eop", which the kernel does not have. Before
 * connect or listen the call announces EOP. On a connection it succeeds if both ends announced it, and returns an error
 * of its own if this end could not announce it after all.
 */
#ifndef BATON_EOP_ANNOUNCE_H
#define BATON_EOP_ANNOUNCE_H

#include "eop/eop.h"

enum {
	ULP = 31, /* TCP_ULP, include/uapi/linux/tcp.h */
	CLOSED = 7, /* include/net/tcp_states.h */
	LISTENING = 10,
	NOT_VALID = 22, /* EINVAL */
	NOT_AGREED = 93, /* EPROTONOSUPPORT */
	NOT_SAID = 42, /* ENOMSG */
	TO_KERNEL = 1,
	ANSWERED = -1, /* optlen that tells the kernel not to call its own handler */
};

static __always_inline bool names_eop(struct bpf_sockopt *call)
{
	u8 *name = call->optval;

	return call->optlen == 3 && (void *)(name + 3) <= call->optval_end && name[0] == 'e' &&
	       name[1] == 'o' && name[2] == 'p';
}

static __always_inline int refuse(int error)
{
	bpf_set_retval(-error);
	return 0;
}

SEC("cgroup/setsockopt")
int eop_announce(struct bpf_sockopt *call)
{
	struct bpf_sock *sk = call->sk;
	struct eop_socket *socket;

	if (call->level != IPPROTO_TCP || call->optname != ULP || !names_eop(call))
		return TO_KERNEL;
	if (!sk || sk->protocol != IPPROTO_TCP)
		return TO_KERNEL;
	if (sk->state == LISTENING)
		return refuse(NOT_VALID); /* its answers are on their way without the option */
	if (sk->state == CLOSED) {
		socket = bpf_sk_storage_get(&eop_sockets, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
		if (!socket)
			return refuse(NOT_AGREED);
		socket->announced = 1;
		count_eop(EOP_ANNOUNCED);
	} else {
		socket = bpf_sk_storage_get(&eop_sockets, sk, NULL, 0);
		if (!socket || !socket->agreed)
			return refuse(socket && socket->unsaid ? NOT_SAID : NOT_AGREED);
	}
	call->optlen = ANSWERED;
	return TO_KERNEL;
}

#endif
