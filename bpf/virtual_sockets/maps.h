/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The agent writes app_settings, app_direct, app_cluster, app_taken, app_arrivals and app_answers; the programs write
 * the others.
 */
#ifndef BATON_VIRTUAL_SOCKETS_MAPS_H
#define BATON_VIRTUAL_SOCKETS_MAPS_H

#include "abi/virtual_sockets.h"
#include "include/kernel.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct app_settings);
} app_settings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct app_counters);
} app_counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, MAX_APP_DIRECT);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct app_direct_key);
	__type(value, u32);
} app_direct SEC(".maps");

/* Cluster addresses, with port 0. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_APP_CLUSTER);
	__type(key, struct app_address);
	__type(value, u32);
} app_cluster SEC(".maps");

/* Ports that are taken at the I/O server. The key is the port in network order; the value is enum app_family_flag. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_APP_TAKEN);
	__type(key, u32);
	__type(value, u32);
} app_taken SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct app_socket);
} app_sockets SEC(".maps");

/* Listeners of the cluster by their socket's cookie. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_APP_LISTENERS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u64);
	__type(value, struct app_listener);
} app_listeners SEC(".maps");

/*
 * Connections that the agent makes, by the agent's end. Entries that nobody takes, as after a refusal, are evicted in
 * the end.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_APP_ARRIVALS);
	__type(key, struct app_address);
	__type(value, struct app_arrival);
} app_arrivals SEC(".maps");

/* The cluster's end of each connection that a program made, by its socket's cookie. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_APP_ARRIVALS);
	__type(key, u64);
	__type(value, struct app_address);
} app_answers SEC(".maps");

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
