/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel as these programs see it: UAPI headers, and the few inner fields they read. CO-RE
 * relocates the inner ones by name, so each struct lists only what is used.
 */
#ifndef BATON_INCLUDE_KERNEL_H
#define BATON_INCLUDE_KERNEL_H

#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/tcp.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#define __inner __attribute__((preserve_access_index))

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;

/*
 * Makes other processors see what is written before this before what is written behind it. x86-64 keeps the order of
 * stores, and that of loads. On other processors a packet of the same connection seldom follows so closely.
 */
#define IN_THIS_ORDER() asm volatile("" ::: "memory")

/* A map of BPF_MAP_TYPE_ ## kind. */
#define MAP(name, kind, entries, key_type, value_type)                                                               \
	struct {                                                                                                     \
		__uint(type, BPF_MAP_TYPE_##kind);                                                                   \
		__uint(max_entries, entries);                                                                        \
		__type(key, key_type);                                                                               \
		__type(value, value_type);                                                                           \
	} name SEC(".maps")

/* The same with flags. */
#define MAP_WITH(name, kind, entries, key_type, value_type, flags)                                                   \
	struct {                                                                                                     \
		__uint(type, BPF_MAP_TYPE_##kind);                                                                   \
		__uint(max_entries, entries);                                                                        \
		__uint(map_flags, flags);                                                                            \
		__type(key, key_type);                                                                               \
		__type(value, value_type);                                                                           \
	} name SEC(".maps")

/* What is kept with each socket. */
#define SOCKET_STORAGE(name, value_type)                                                                             \
	struct {                                                                                                     \
		__uint(type, BPF_MAP_TYPE_SK_STORAGE);                                                               \
		__uint(map_flags, BPF_F_NO_PREALLOC);                                                                \
		__type(key, int);                                                                                    \
		__type(value, value_type);                                                                           \
	} name SEC(".maps")

/* include/uapi/asm-generic/errno-base.h */
enum {
	ERROR_EXISTS = 17,
};

/* include/linux/skbuff.h */
enum {
	CHECKSUM_IS_UNNECESSARY = 1, /* the card, its driver or GRO has verified it */
	CHECKSUM_IS_PARTIAL = 3,     /* there is none yet: the packet is from this host, or from a peer that shares
	                                its memory; or GRO has merged it from segments that it has verified */
};

struct sk_buff {
	u8 ip_summed : 2;
} __inner;

/* include/net/tcp_states.h */
enum {
	STATE_ESTABLISHED = 1,
	STATE_FIN_WAIT1 = 4,
	STATE_TIME_WAIT = 6,
	STATE_CLOSE = 7,
	STATE_LISTEN = 10,
};

/* include/uapi/linux/bpf.h of kernels since 6.6: what a tcx program answers. */
enum {
	TCX_GO_ON = -1,
	TCX_DISCARD = 2,
};

/* include/net/sock.h */
struct sock_common {
	unsigned char skc_state;
	u32 skc_tw_rcv_nxt;
	u32 skc_tw_snd_nxt;
} __inner;

struct sock {
	struct sock_common __sk_common;
	u32 sk_mark;
} __inner;

/* include/net/inet_connection_sock.h */
struct inet_connection_sock {
	u32 icsk_rto; /* jiffies */
} __inner;

/* include/linux/tcp.h */
struct tcp_options_received {
	u32 ts_recent;
	u32 rcv_tsecr;
	u16 tstamp_ok : 1, wscale_ok : 1, sack_ok : 3, snd_wscale : 4, rcv_wscale : 4;
	u16 mss_clamp;
} __inner;

/* include/linux/rbtree_types.h */
struct rb_root {
	struct rb_node *rb_node;
} __inner;

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 rcv_nxt;
	u32 rcv_wup;   /* rcv_nxt as the client was last sent it */
	u32 copied_seq;
	u32 write_seq;
	u32 snd_una;
	u32 snd_nxt;
	u32 snd_cwnd;
	u32 snd_wnd;
	u32 tsoffset;
	u32 lsndtime; /* when data was last sent, jiffies */
	u64 bytes_received;
	struct rb_root out_of_order_queue; /* data behind a gap */
	struct tcp_options_received rx_opt;
} __inner;

/* include/net/inet_timewait_sock.h */
struct inet_timewait_sock {
	struct sock_common __tw_common;
	u32 tw_mark;
} __inner;

struct tcp_timewait_sock {
	struct inet_timewait_sock tw_sk;
} __inner;

/* include/net/tcp.h, kernels since 6.9 */
struct bpf_tcp_req_attrs {
	u32 rcv_tsval;
	u32 rcv_tsecr;
	u16 mss;
	u8 rcv_wscale;
	u8 snd_wscale;
	u8 ecn_ok;
	u8 wscale_ok;
	u8 sack_ok;
	u8 tstamp_ok;
	u8 usec_ts_ok;
	u8 reserved[3];
};

extern int bpf_sk_assign_tcp_reqsk(struct __sk_buff *skb, struct sock *sk,
				   struct bpf_tcp_req_attrs *attrs, int attrs__sz) __ksym;

/* Kernels since 6.2: gives the kernel's own structure behind a program's context, to be read only. */
extern void *bpf_cast_to_kern_ctx(void *context) __ksym;

/* Kernels since 6.18. */
extern int bpf_xdp_pull_data(struct xdp_md *xdp, u32 len) __ksym __weak;

#endif
