/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Every map. The daemon writes settings, services, choices and data_servers; the programs the rest. */
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

/* How often a service has chosen: where its next turn is. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_SERVICES);
	__type(key, u32);
	__type(value, u64);
} turns SEC(".maps");

/* Two banks of indices into data_servers for each service. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_SERVICES * CHOICE_BANKS * CHOICES_PER_SERVICE);
	__type(key, u32);
	__type(value, u16);
} choices SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_DATA_SERVERS);
	__type(key, u32);
	__type(value, struct data_server);
} data_servers SEC(".maps");

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
