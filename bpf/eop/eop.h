/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * EOP, the end-point operation protocol: what is known about a socket that announces it, the TCP option that announces
 * it, and the counters.
 */
#ifndef BATON_EOP_EOP_H
#define BATON_EOP_EOP_H

#include <linux/bpf.h>
#include <linux/in.h>
#include <linux/tcp.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

#include "abi/eop.h"

typedef __u8 u8;
typedef __u32 u32;
typedef __u64 u64;

/* What a socket that announces EOP has found out. Accepted sockets get a copy of their listener's. */
struct eop_socket {
	u8 announced;
	u8 agreed; /* the other end announced it, too */
	u8 unsaid; /* the last SYN went out without the option */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
	__type(key, int);
	__type(value, struct eop_socket);
} eop_sockets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, EOP_COUNTERS);
	__type(key, u32);
	__type(value, u64);
} eop_counters SEC(".maps");

static __always_inline void count_eop(u32 which)
{
	u64 *counter = bpf_map_lookup_elem(&eop_counters, &which);

	if (counter)
		++*counter;
}

/* The TCP option: kind 253, for experiments, with the 32-bit identifier (RFC 6994) "EOP" and the version. */
enum {
	OPTION_KIND = 253,
	OPTION_BYTES = 6,
};

#define EOP_OPTION { OPTION_KIND, OPTION_BYTES, 'E', 'O', 'P', 1 }

#endif
