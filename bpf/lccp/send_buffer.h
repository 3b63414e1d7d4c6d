/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages that move a connection are numbered and kept for a while. A lost one would cost the client a retransmission
 * timeout of at least 200 ms. Instead the daemons see the gap in the numbers, and the message is sent again in a few
 * milliseconds. Nothing is acknowledged, so no message is added on the way.
 */
#ifndef BATON_LCCP_SEND_BUFFER_H
#define BATON_LCCP_SEND_BUFFER_H

#include "abi/abi.h"
#include "include/bounds.h"
#include "include/maps.h"

/*
 * Writes the message's number into its header, which is not sealed yet. Returns the channel to this node, or 0 if
 * messages to it are not numbered.
 */
static __always_inline struct channel *number(const struct data_server *to, struct lccp_header *h)
{
	u32 index = to->channel;
	struct channel *channel = index ? bpf_map_lookup_elem(&channels, &index) : 0;

	h->be_sequence = channel ? bpf_htons(__sync_fetch_and_add(&channel->next, 1)) : 0;
	return channel;
}

/*
 * The place for the frame of the message with this header, where the caller copies its bytes; 0 if the message cannot
 * be kept.
 */
static __always_inline struct sent_message *place_of_copy(struct channel *channel, const struct data_server *to,
							  const struct lccp_header *h)
{
	u32 zero = 0, sequence = bpf_ntohs(h->be_sequence);
	u32 *sent_so_far = bpf_map_lookup_elem(&sent_count, &zero);

	if (!channel || !sent_so_far)
		return 0;
	u32 slot = WRAPPED(__sync_fetch_and_add(sent_so_far, 1), SEND_BUFFER_MESSAGES);
	struct sent_message *copy = bpf_map_lookup_elem(&send_buffer, &slot);
	if (!copy)
		return 0;
	copy->channel = to->channel;
	copy->sequence = sequence;
	copy->ifindex = to->ifindex;
	copy->sent = bpf_ktime_get_coarse_ns() >> SENT_SHIFT;
	channel->slots[WRAPPED(sequence, WINDOW)] = slot;
	return copy;
}

/* Whether a frame of `bytes` bytes can be kept. */
static __always_inline bool fits_in_send_buffer(u64 bytes)
{
	return bytes > 0 && bytes <= SENT_FRAME_BYTES;
}

/*
 * Notes that a message with a right tag has come. True if it came before already, so that it was sent again
 * needlessly.
 */
static __always_inline bool note_arrival(__be32 sender, const struct lccp_header *h)
{
	u32 sequence = bpf_ntohs(h->be_sequence), place = WRAPPED(sequence, WINDOW);
	struct receive_window *receive_window = sequence ? bpf_map_lookup_elem(&receive_windows, &sender) : 0;
	u16 tag = (u16)h->be_tag;

	if (!receive_window)
		return false;
	bool before = receive_window->came[place] == sequence && receive_window->tags[place] == tag;
	receive_window->came[place] = sequence;
	receive_window->tags[place] = tag;
	return before;
}

#endif
