// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * BPF_PROG_TEST_RUN repeats a program on one buffer, so a run finds the frame as the run before it left it. This
 * program stands in front of the one that is measured: it restores the frame from a template, makes it the next
 * client's, and goes on by a tail call. It is measured once in front of the real program and once in front of
 * `xdp_nothing`. The difference is the real program's own cost.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

enum {
	TEMPLATE_BYTES = 256,
	FLOWS = 65536,
	CLIENT_AT = 14 + 12,       /* source address */
	PORT_AT = 14 + 20,
	SEQ_AT = 14 + 20 + 4,
	NUMBERS_END = 14 + 20 + 12,
};

struct template {
	__u32 bytes;
	__u32 grows_in_front;      /* the measured program adds a header, not a tail */
	__u32 flows;               /* a power of two, up to FLOWS */
	__u32 seq_ahead;           /* added to each flow's numbers */
	__u32 ack_ahead;
	unsigned char frame[TEMPLATE_BYTES];
};

struct flow {
	__u32 be_client;
	__u32 be_ports;            /* source, then destination */
	__u32 seq;
	__u32 ack;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct template);
} templates SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FLOWS);
	__type(key, __u32);
	__type(value, struct flow);
} bench_flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} turn SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} measured SEC(".maps");

/* The interface to which tcx_copies sends copies; 0: it makes none. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} copies_to SEC(".maps");

static __always_inline int put_numbers(struct xdp_md *ctx, const struct template *t, const struct flow *f)
{
	unsigned char *frame = (void *)(long)ctx->data;

	if ((void *)(frame + NUMBERS_END) > (void *)(long)ctx->data_end)
		return -1;
	__u32 seq = __builtin_bswap32(f->seq + t->seq_ahead);
	__u32 ack = __builtin_bswap32(f->ack + t->ack_ahead);
	__builtin_memcpy(frame + CLIENT_AT, &f->be_client, 4);
	__builtin_memcpy(frame + PORT_AT, &f->be_ports, 4);
	__builtin_memcpy(frame + SEQ_AT, &seq, 4);
	__builtin_memcpy(frame + SEQ_AT + 4, &ack, 4);
	return 0;
}

SEC("xdp.frags")
int xdp_restore(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct template *t = bpf_map_lookup_elem(&templates, &zero);
	__u32 *next = bpf_map_lookup_elem(&turn, &zero);

	if (!t || !next)
		return XDP_ABORTED;
	__u32 index = (*next)++ & (t->flows - 1);
	struct flow *flow = bpf_map_lookup_elem(&bench_flows, &index);
	if (!flow)
		return XDP_ABORTED;

	int grown = (int)bpf_xdp_get_buff_len(ctx) - (int)t->bytes;
	if (bpf_xdp_adjust_head(ctx, t->grows_in_front ? grown : 0) ||
	    bpf_xdp_adjust_tail(ctx, t->grows_in_front ? 0 : -grown))
		return XDP_ABORTED;
	__u32 bytes = t->bytes;
	if (bytes < NUMBERS_END || bytes > TEMPLATE_BYTES ||
	    bpf_xdp_store_bytes(ctx, 0, t->frame, bytes) || put_numbers(ctx, t, flow))
		return XDP_ABORTED;
	bpf_tail_call(ctx, &measured, 0);
	return XDP_ABORTED;
}

SEC("xdp.frags")
int xdp_nothing(struct xdp_md *ctx)
{
	return XDP_DROP;
}

SEC("tcx/ingress")
int tcx_nothing(struct __sk_buff *skb)
{
	return -1; /* TCX_NEXT */
}

/* Sends two copies of the frame by an interface: as many as a handover sends. */
SEC("tcx/ingress")
int tcx_copies(struct __sk_buff *skb)
{
	__u32 zero = 0, *interface = bpf_map_lookup_elem(&copies_to, &zero);

	if (interface && *interface) {
		bpf_clone_redirect(skb, *interface, 0);
		bpf_clone_redirect(skb, *interface, 0);
	}
	return -1; /* TCX_NEXT */
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
