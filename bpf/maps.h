/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every map. The daemon writes settings, services, pools, hosts, routes, large, choices, data_servers and peers,
 * and makes the inboxes; the programs write the rest.
 */
#ifndef BATON_MAPS_H
#define BATON_MAPS_H

#include "kernel.h"
#include "abi.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct settings);
} settings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct counters);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2 * MAX_SERVICES);
	__type(key, struct service_key);
	__type(value, struct service);
} services SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_POOLS);
	__type(key, u32);
	__type(value, struct pool);
} pools SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, MAX_HOSTS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct host_key);
	__type(value, u32);
} hosts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, MAX_ROUTES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct route_key);
	__type(value, u32);
} routes SEC(".maps");

/* Paths of large content. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_LARGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct large_key);
	__type(value, u32);
} large SEC(".maps");

/* How often a pool has chosen: where its next turn is. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_POOLS);
	__type(key, u32);
	__type(value, u64);
} turns SEC(".maps");

/* Two banks of indices into data_servers for each pool. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_POOLS * CHOICE_BANKS * CHOICES_PER_POOL);
	__type(key, u32);
	__type(value, u16);
} choices SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_DATA_SERVERS);
	__type(key, u32);
	__type(value, struct data_server);
} data_servers SEC(".maps");

/* The nodes of the cluster by short address: where a data server sends what is not for the client. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PEERS);
	__type(key, u32);
	__type(value, struct data_server);
} peers SEC(".maps");

/* Who may send plain packets for a service to a data server: connection servers on its LAN. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PEERS);
	__type(key, struct sender_key);
	__type(value, u32);
} senders SEC(".maps");

/* The sending half of the channel to each other node, and how many messages all of them have sent. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_PEERS);
	__type(key, u32);
	__type(value, struct channel);
} channels SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} postings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, OUTBOX);
	__type(key, u32);
	__type(value, struct posted);
} outbox SEC(".maps");

/* The receiving half of the channel from each other node, by its short address. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PEERS);
	__type(key, u32);
	__type(value, struct inbox);
} inboxes SEC(".maps");

/* Congestion windows, segments, that came with connections whose sockets are being made. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct tcb_key);
	__type(value, u32);
} windows SEC(".maps");

/* When this data server handed a connection over last (coarse monotonic, ns). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} handovers SEC(".maps");

/* Connections given to each data server since the start. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MAX_DATA_SERVERS);
	__type(key, u32);
	__type(value, u64);
} adoptions SEC(".maps");

/* The TCP table. Its size is the daemon's to set before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1048576);
	__type(key, struct tcb_key);
	__type(value, struct tcb);
} tcbs SEC(".maps");

/* Flows nobody knows, and when the first packet of each came (coarse monotonic, ns). */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, STRAYS);
	__type(key, struct tcb_key);
	__type(value, u64);
} strays SEC(".maps");

/* Live flows of each data server, as the last sweep counted them. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_DATA_SERVERS);
	__type(key, u32);
	__type(value, u32);
} flows SEC(".maps");

#endif
