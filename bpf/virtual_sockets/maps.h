/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The agent writes app_settings, app_direct, app_cluster, app_taken, app_arrivals and app_answers; the programs write
 * the others.
 */
#ifndef BATON_VIRTUAL_SOCKETS_MAPS_H
#define BATON_VIRTUAL_SOCKETS_MAPS_H

#include "abi/virtual_sockets.h"
#include "include/kernel.h"

MAP(app_settings, ARRAY, 1, u32, struct app_settings);
MAP(app_counters, PERCPU_ARRAY, 1, u32, struct app_counters);
MAP_WITH(app_direct, LPM_TRIE, MAX_APP_DIRECT, struct app_direct_key, u32, BPF_F_NO_PREALLOC);

/* Cluster addresses, with port 0. */
MAP(app_cluster, HASH, MAX_APP_CLUSTER, struct app_address, u32);

/* Ports that are taken at the I/O server. The key is the port in network order; the value is enum app_family_flag. */
MAP(app_taken, HASH, MAX_APP_TAKEN, u32, u32);

SOCKET_STORAGE(app_sockets, struct app_socket);

/* Listeners of the cluster by their socket's cookie. */
MAP_WITH(app_listeners, HASH, MAX_APP_LISTENERS, u64, struct app_listener, BPF_F_NO_PREALLOC);

/*
 * Connections that the agent makes, by the agent's end. Entries that nobody takes, as after a refusal, are evicted in
 * the end.
 */
MAP(app_arrivals, LRU_HASH, MAX_APP_ARRIVALS, struct app_address, struct app_arrival);

/* The cluster's end of each connection that a program made, by its socket's cookie. */
MAP(app_answers, LRU_HASH, MAX_APP_ARRIVALS, u64, struct app_address);

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, APP_EVENT_BYTES);
} app_events SEC(".maps");

/* Tells the agent of an event. Returns false if the ring is full. */
static __always_inline bool tell(struct app_event event)
{
	return !bpf_ringbuf_output(&app_events, &event, sizeof(event), 0);
}

static __always_inline void app_count(enum app_counter what)
{
	u32 zero = 0;
	struct app_counters *counters = bpf_map_lookup_elem(&app_counters, &zero);

	if (counters)
		counters->value[what]++;
}

#endif
