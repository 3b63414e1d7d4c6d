/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Stands for libbpf's header where bpf/ is compiled for this machine. The helpers are functions of ../kernel.c. */
#ifndef NATIVE_BPF_HELPERS_H
#define NATIVE_BPF_HELPERS_H

#include <stdbool.h>
#include <linux/types.h>

#define SEC(name)
#define __uint(name, value) int (*name)[value]
#define __type(name, value) __typeof__(value) *name
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define __noinline __attribute__((noinline))
#define __ksym
#define __weak __attribute__((weak))

struct __sk_buff;
struct xdp_md;
struct bpf_sock;
struct bpf_sock_tuple;
struct bpf_sock_ops;

void *bpf_map_lookup_elem(const void *map, const void *key);
long bpf_map_update_elem(const void *map, const void *key, const void *value, __u64 flags);
long bpf_map_delete_elem(const void *map, const void *key);
void *bpf_sk_storage_get(const void *map, void *sk, void *value, __u64 flags);
void *bpf_ringbuf_reserve(const void *map, __u64 size, __u64 flags);
void bpf_ringbuf_submit(void *record, __u64 flags);
void bpf_ringbuf_discard(void *record, __u64 flags);
__u64 bpf_ktime_get_ns(void);
__u64 bpf_ktime_get_coarse_ns(void);
__u64 bpf_jiffies64(void);
__u32 bpf_get_prandom_u32(void);
long bpf_loop(__u32 times, void *callback, void *context, __u64 flags);

struct bpf_sock *bpf_skc_lookup_tcp(void *skb, struct bpf_sock_tuple *tuple, __u32 bytes, __u64 netns, __u64 flags);
struct tcp_sock *bpf_skc_to_tcp_sock(void *sk);
struct tcp_timewait_sock *bpf_skc_to_tcp_timewait_sock(void *sk);
struct bpf_tcp_sock *bpf_tcp_sock(struct bpf_sock *sk);
long bpf_sk_release(void *sk);
long bpf_sk_assign(void *skb, void *sk, __u64 flags);

long bpf_skb_load_bytes(const void *skb, __u32 at, void *to, __u32 bytes);
long bpf_skb_store_bytes(struct __sk_buff *skb, __u32 at, const void *from, __u32 bytes, __u64 flags);
long bpf_skb_adjust_room(struct __sk_buff *skb, __s32 bytes, __u32 mode, __u64 flags);
long bpf_skb_change_tail(struct __sk_buff *skb, __u32 bytes, __u64 flags);
long bpf_redirect(__u32 ifindex, __u64 flags);
long bpf_clone_redirect(struct __sk_buff *skb, __u32 ifindex, __u64 flags);

/* Checksums are not modelled: TCP here takes what comes. */
static inline long bpf_l3_csum_replace(void *skb, __u32 at, __u64 from, __u64 to, __u64 size)
{
	return 0;
}

static inline long bpf_l4_csum_replace(void *skb, __u32 at, __u64 from, __u64 to, __u64 flags)
{
	return 0;
}

static inline __s64 bpf_csum_diff(const void *from, __u32 from_size, const void *to, __u32 to_size, __u32 seed)
{
	return 0;
}

static inline __s64 bpf_csum_update(void *skb, __u32 sum)
{
	return 0;
}

/* Helpers of code that is compiled with the door and never runs here: XDP, sockops. */
long bpf_xdp_load_bytes(struct xdp_md *ctx, __u32 at, void *to, __u32 bytes);
long bpf_xdp_store_bytes(struct xdp_md *ctx, __u32 at, void *from, __u32 bytes);
long bpf_xdp_adjust_head(struct xdp_md *ctx, int bytes);
long bpf_xdp_adjust_tail(struct xdp_md *ctx, int bytes);
__u64 bpf_xdp_get_buff_len(struct xdp_md *ctx);
__u64 bpf_get_netns_cookie(void *ctx);
long bpf_setsockopt(void *ctx, int level, int option, void *value, int bytes);
long bpf_sock_ops_cb_flags_set(struct bpf_sock_ops *ops, int flags);
long bpf_store_hdr_opt(struct bpf_sock_ops *ops, const void *from, __u32 bytes, __u64 flags);
long bpf_load_hdr_opt(struct bpf_sock_ops *ops, void *to, __u32 bytes, __u64 flags);
long bpf_reserve_hdr_opt(struct bpf_sock_ops *ops, __u32 bytes, __u64 flags);
long bpf_skb_pull_data(struct __sk_buff *skb, __u32 bytes);

#endif
