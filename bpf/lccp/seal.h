/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * LCCP messages: sealed when sent, verified when received. The tag covers the header, the addresses of sender and
 * receiver, and the body or what TCP acts on in the client's packet. So a message that was seen on its way can neither
 * be sent back to its sender, nor on to another node, nor be put around another packet. Each two nodes share a key of
 * their own, so a node can speak for nobody but itself.
 */
#ifndef BATON_LCCP_SEAL_H
#define BATON_LCCP_SEAL_H

#include "abi/abi.h"
#include "include/bounds.h"
#include "include/clock.h"
#include "include/count.h"
#include "include/frame.h"
#include "include/kernel.h"
#include "include/siphash.h"

enum {
	LCCP_IN_FRAME = sizeof(struct ethhdr) + sizeof(struct iphdr),
	BEHIND_LCCP = LCCP_IN_FRAME + LCCP_HEADER_BYTES,
	TCP_PORTS_BYTES = 4,
	BOUND_WORDS = 4,
	BODY_WORDS = LCCP_BODY_CHUNK / 8,
};

/* The TCP header behind its ports. */
struct carried_tcp {
	u64 word[2];
};

/*
 * What the tag of a message without a body covers of the client's packet: everything that changes a connection and is
 * not in the message's header. Options and payload are not covered, because nobody vouches for them in a client's
 * packet either. The TCP checksum is not covered, because a client on the same machine may leave it pending
 * (CHECKSUM_PARTIAL), and a node that sends the message on may complete it. The time to live may change. A header that
 * is not all there counts as zeros.
 */
struct lccp_carried {
	u64 ip;                    /* the first 8 bytes of the IP header: length, identification, fragment */
	struct carried_tcp tcp;    /* the TCP header behind the ports */
};

/*
 * The second word behind the ports (flags, window, checksum, urgent pointer) with zeros in place of the checksum. The
 * word is as on the wire.
 */
static __always_inline u64 without_checksum(u64 word)
{
	return word & bpf_cpu_to_be64(0xffffffff0000ffffULL);
}

/* The addresses of a message's two nodes, as in its outer IP header, in one word. */
static __always_inline u64 between(__be32 from, __be32 to)
{
	return from | (u64)to << 32;
}

static __always_inline const struct carried_tcp *behind_ports(const struct tcphdr *tcp)
{
	return (const struct carried_tcp *)&tcp->seq;
}

/*
 * Reads `bytes` bytes of the frame. `xdp`, a constant, says whether the program is at XDP or at tc. Returns 0 or an
 * error.
 */
static __always_inline long read_frame(void *ctx, const bool xdp, u32 at, void *to, u32 bytes)
{
	return xdp ? bpf_xdp_load_bytes(ctx, at, to, bytes) : bpf_skb_load_bytes(ctx, at, to, bytes);
}

/* Reads what a tag covers of the packet behind the LCCP header of this frame. That packet is `bytes` bytes long. */
static __always_inline void read_carried_words(struct lccp_carried *b, void *ctx, const bool xdp, u32 bytes)
{
	*b = (struct lccp_carried){};
	if (bytes < sizeof(struct iphdr) || read_frame(ctx, xdp, BEHIND_LCCP, &b->ip, sizeof(b->ip)))
		return;
	u32 tcp_at = (*(u8 *)&b->ip & 0xf) * 4;
	if (bytes < tcp_at + sizeof(struct tcphdr) ||
	    read_frame(ctx, xdp, BEHIND_LCCP + tcp_at + TCP_PORTS_BYTES, &b->tcp, sizeof(b->tcp)))
		b->tcp = (struct carried_tcp){};
}

/*
 * The tag of a message without a body. `ip` and `tcp` point to what struct lccp_carried has, in a copy or in the frame
 * itself. The function is global, so that the verifier checks it by itself.
 */
__noinline u64 lccp_tag(const struct siphash_key *key, const struct lccp_header *h, u64 nodes, const u64 *ip,
			const struct carried_tcp *tcp)
{
	if (!key || !h || !ip || !tcp)
		return 0;
	struct siphash_state s = siphash_begin(key);

	siphash_words(&s, (const u64 *)h, LCCP_TAGGED_BYTES / 8);
	siphash_word(&s, SIPHASH_WORD(nodes));
	siphash_words(&s, ip, 1);
	siphash_words(&s, tcp->word, 1);
	siphash_word(&s, SIPHASH_WORD(without_checksum(tcp->word[1])));
	return siphash_end(&s, LCCP_TAGGED_BYTES / 8 + BOUND_WORDS);
}

/*
 * Seals a message: writes version, clock and tag into its header. This is the last step before sending, and nothing
 * that the tag covers may change after it. `key` is the one shared with the receiver.
 */
static __always_inline void lccp_seal(const struct settings *s, const u64 key[2], struct lccp_header *h, u64 nodes,
				      const void *ip, const struct carried_tcp *tcp)
{
	h->version = LCCP_VERSION;
	h->be_clock = bpf_cpu_to_be64(wall_clock(s));
	h->be_tag = bpf_cpu_to_be64(lccp_tag(siphash_key(key), h, nodes, ip, tcp));
}

/* The keys that this node shares with the node at this address; 0: none. */
static __always_inline const struct peer_keys *keys_shared_with(__be32 address)
{
	return bpf_map_lookup_elem(&peer_keys, &address);
}

static __always_inline bool has_key(const u64 key[2])
{
	return key[0] | key[1];
}

/* A body that is being hashed, and stays in the frame. */
struct hashed_body {
	struct siphash_state hash;
	void *ctx;
	u32 bytes;
	u32 failed;
};

/*
 * Hashes one piece of the body; 1 ends the walk. It is a callback, because the verifier would follow every piece of a
 * loop.
 */
static __always_inline long hash_piece(u32 index, struct hashed_body *body, const bool xdp)
{
	u64 words[BODY_WORDS] = {};
	u32 at = index * LCCP_BODY_CHUNK, rest = body->bytes - at;
	u32 piece = rest < LCCP_BODY_CHUNK ? rest : LCCP_BODY_CHUNK;

	if (read_frame(body->ctx, xdp, BEHIND_LCCP + at, words, BOUNDED(piece, 1, LCCP_BODY_CHUNK))) {
		body->failed = 1;
		return 1;
	}
	siphash_words(&body->hash, words, BODY_WORDS);
	return 0;
}

static long hash_piece_at_xdp(u32 index, struct hashed_body *body)
{
	return hash_piece(index, body, true);
}

static long hash_piece_at_tc(u32 index, struct hashed_body *body)
{
	return hash_piece(index, body, false);
}

/*
 * Whether the tag of a message with a body is right under this key. The function is not inline, to have a stack of its
 * own.
 */
static __noinline bool is_body_tagged(void *ctx, u32 xdp, const u64 key[2], const struct lccp_header *h, u64 nodes)
{
	struct hashed_body body = {
		.hash = siphash_begin(siphash_key(key)),
		.ctx = ctx,
		.bytes = bpf_ntohs(h->be_body_length),
	};
	u64 chunks = (body.bytes + LCCP_BODY_CHUNK - 1) / LCCP_BODY_CHUNK;

	siphash_words(&body.hash, (const u64 *)h, LCCP_TAGGED_BYTES / 8);
	siphash_word(&body.hash, SIPHASH_WORD(nodes));
	if (xdp)
		bpf_loop(chunks, hash_piece_at_xdp, &body, 0);
	else
		bpf_loop(chunks, hash_piece_at_tc, &body, 0);
	u64 tag = siphash_end(&body.hash, LCCP_TAGGED_BYTES / 8 + 1 + chunks * BODY_WORDS);
	return !body.failed && tag == bpf_be64_to_cpu(h->be_tag);
}

/* A message as it came in. */
struct lccp_message {
	void *ctx;                     /* the frame's context */
	const struct lccp_header *h;   /* a copy of its header */
	const struct lccp_carried *carried;
	u32 bytes;                     /* length of what is behind the header */
	__be32 from;
};

static __always_inline bool is_tagged(const struct lccp_message *m, const bool xdp, const u64 key[2], u64 nodes)
{
	if (!m->h->be_body_length)
		return lccp_tag(siphash_key(key), m->h, nodes, &m->carried->ip, &m->carried->tcp) == bpf_be64_to_cpu(m->h->be_tag);
	return is_body_tagged(m->ctx, xdp, key, m->h, nodes);
}

static __always_inline bool is_whole(const struct lccp_message *m)
{
	u32 body = bpf_ntohs(m->h->be_body_length);

	bool holds_request = m->h->command == LCCP_RESUME || m->h->command == LCCP_HEAD;

	return body <= m->bytes && body <= (holds_request ? LCCP_MAX_RESUME : LCCP_MAX_BODY);
}

/*
 * Notes a refused message for the daemon. The daemon does not get refused messages, but must know that there is a node
 * which it does not understand, or which does not understand it. Only messages to the daemon are noted, because it
 * would have heard no others.
 */
static __noinline void note_refused(const struct settings *s, const struct lccp_header *h, __be32 from,
				    enum counter why)
{
	struct refused_node *node =
		h->receptor == LCCP_RECEPTOR_DAEMON ? bpf_map_lookup_elem(&refused_nodes, &from) : 0;

	if (!node)
		return;
	/* This is the precise clock, because the operator is told how far another node's clock is off. */
	u64 now = bpf_ktime_get_ns();
	if (why == COUNTER_LCCP_BAD_VERSION) {
		node->version = h->version;
		node->bad_version_ns = now;
	} else if (why == COUNTER_LCCP_BAD_TAG) {
		node->bad_tag_ns = now;
	} else {
		node->ahead_ns = bpf_be64_to_cpu(h->be_clock) - (now + s->clock_offset_ns);
		node->stale_ns = now;
	}
}

/* Notes a stale message whose tag is right, so that the operator hears which node's clock is off. */
static __noinline void note_stale(const struct settings *s, const struct lccp_header *h, __be32 from)
{
	u64 now = bpf_ktime_get_coarse_ns();
	struct stale_sender sender = {
		.ahead_ns = bpf_be64_to_cpu(h->be_clock) - (now + s->clock_offset_ns),
		.seen_ns = now,
	};

	bpf_map_update_elem(&stale_senders, &from, &sender, BPF_ANY);
}

/*
 * Whether the sender may send this command. A node with only its own keys may not send those that would move the
 * connections of others.
 */
static __always_inline bool may_say(const struct lccp_header *h, const struct peer_keys *shared)
{
	u32 bit = h->command < 32 ? 1u << h->command : 0;

	if (shared->leads || !(bit & LCCP_LEADING))
		return true;
	return bit & LCCP_LEADING_AT_DS && h->receptor != LCCP_RECEPTOR_DS;
}

/*
 * The keys that this node shares with the sender, if it accepts the message. Returns 0 and counts the reason if the
 * message is not from a node of this cluster to this one, is too old, or may not be sent by that node. A forged tag
 * costs the forger 2^63 tries on average, and each try costs this node one counter. A plain comparison is enough,
 * because no answer tells the forger how many bytes were right.
 */
static __always_inline const struct peer_keys *lccp_verify(const struct settings *s, struct counters *c, const struct lccp_message *m,
					const bool xdp)
{
	u64 nodes = between(m->from, unmap_address(s->address));

	if (m->h->version != LCCP_VERSION) {
		count(c, COUNTER_LCCP_BAD_VERSION);
		note_refused(s, m->h, m->from, COUNTER_LCCP_BAD_VERSION);
		return 0;
	}
	if (!is_whole(m)) {
		count(c, COUNTER_LCCP_SHORT);
		return 0;
	}
	const struct peer_keys *shared = keys_shared_with(m->from);
	if (!shared) {
		count(c, COUNTER_LCCP_STRANGER);
		return 0;
	}
	if (!is_tagged(m, xdp, shared->key[0], nodes) &&
	    !(has_key(shared->key[1]) && is_tagged(m, xdp, shared->key[1], nodes))) {
		count(c, COUNTER_LCCP_BAD_TAG);
		note_refused(s, m->h, m->from, COUNTER_LCCP_BAD_TAG);
		return 0;
	}
	u64 age = wall_clock(s) - bpf_be64_to_cpu(m->h->be_clock) + s->clock_window_ns;
	if (age > 2 * s->clock_window_ns) {
		count(c, COUNTER_LCCP_STALE);
		note_stale(s, m->h, m->from);
		note_refused(s, m->h, m->from, COUNTER_LCCP_STALE);
		return 0;
	}
	if (!may_say(m->h, shared)) {
		count(c, COUNTER_LCCP_NOT_ALLOWED);
		return 0;
	}
	return shared;
}

/*
 * Whether this sender has sent more to the daemon than it may. Every message costs its sender BUDGET_COST_NS, so one
 * node that floods leaves the daemon time for the others. If two processors count at the same time, one message may
 * cost nothing.
 */
static __noinline bool is_over_budget(__be32 from)
{
	u64 now = bpf_ktime_get_coarse_ns(), first = now + BUDGET_COST_NS;
	u64 *paid_until = bpf_map_lookup_elem(&budgets, &from);

	if (!paid_until) {
		bpf_map_update_elem(&budgets, &from, &first, BPF_ANY);
		return false;
	}
	u64 begin = *paid_until > now ? *paid_until : now;
	if (begin - now > BUDGET_BURST_NS)
		return true;
	*paid_until = begin + BUDGET_COST_NS;
	return false;
}

#endif
