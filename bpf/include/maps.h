/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every map that roles share. The daemon writes settings, services, pools, hosts, routes, large, choices, data_servers,
 * peers, peer_keys, senders, rings and places, and creates the inboxes; the programs write the others.
 */
#ifndef BATON_INCLUDE_MAPS_H
#define BATON_INCLUDE_MAPS_H

#include "abi/abi.h"
#include "include/kernel.h"

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

/* How often each pool has chosen, which tells its next turn. */
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

/* The switch's table: Maglev over the connection servers, which are the `data_servers` of a switch. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CHOICES_PER_POOL);
	__type(key, u32);
	__type(value, struct maglev_slot);
} places SEC(".maps");

/*
 * Connections that began while the table named two connection servers for their place, with the place's `turn` at that
 * time.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, BEGUN_FLOWS);
	__type(key, struct tcb_key);
	__type(value, u32);
} begun SEC(".maps");

/*
 * The nodes of the cluster by short address: how a data server reaches them with packets that are not for the client.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PEERS);
	__type(key, u32);
	__type(value, struct data_server);
} peers SEC(".maps");

/* The keys that this node shares with each node that sends it messages, by short address. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2 * MAX_PEERS);
	__type(key, u32);
	__type(value, struct peer_keys);
} peer_keys SEC(".maps");

/* Who may send plain packets for a service to a data server: connection servers on its LAN. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PEERS);
	__type(key, struct sender_key);
	__type(value, u32);
} senders SEC(".maps");

/* The sending half of the channel to each other node. `postings` counts the messages of all channels together. */
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

/* What came with the connections whose sockets are being made. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct tcb_key);
	__type(value, struct expected);
} expected SEC(".maps");

/* Sockets whose clients are being told this data server's address. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u32);
} telling SEC(".maps");

/* How far the responses on each connection have left this node. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct response);
} responses SEC(".maps");

/* Whom CLAIM asks next for each service, by the number of the service at this data server. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_SERVICES);
	__type(key, u32);
	__type(value, struct ring);
} rings SEC(".maps");

/* Connections that this data server lately gave to another one, and the requests with which they left. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, GIVEN_FLOWS);
	__type(key, struct tcb_key);
	__type(value, struct given);
} given SEC(".maps");

/* When this data server last handed a connection over (coarse monotonic clock, ns). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} handovers SEC(".maps");

/* Connections that this data server is about to give away. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, YIELDS);
	__type(key, struct tcb_key);
	__type(value, struct yielding);
} yields SEC(".maps");

/* Until when there may be an entry in `yields` (coarse monotonic clock, ns). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} yielding_until SEC(".maps");

/* What each data server, pool and route had to do. The keys are those of enum tally_place. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, TALLIES);
	__type(key, u32);
	__type(value, struct tally);
} tallies SEC(".maps");

/* The id of the route that has each route number, for the next daemon; 0: none. The programs do not read it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TALLIED_ROUTES);
	__type(key, u32);
	__type(value, u64);
} route_ids SEC(".maps");

/* The TCP table. The daemon sets its size before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1048576);
	__type(key, struct tcb_key);
	__type(value, struct tcb);
} tcbs SEC(".maps");

/* The current requests of connections whose responses could go on from another data server. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct tcb_key);
	__type(value, struct kept_request);
} kept_requests SEC(".maps");

/* Connections at rest, as their owners have reported. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, QUIET_POINTS);
	__type(key, struct tcb_key);
	__type(value, struct quiet_point);
} quiet_points SEC(".maps");

/* Heads of responses that could be resumed, for the data server's daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, HEADS_RING_BYTES);
} seen_heads SEC(".maps");

/* What the last run of the find_flows program found. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ORPHANS);
	__type(key, u32);
	__type(value, struct orphan);
} orphans SEC(".maps");

/* Flows that have no entry in `tcbs`. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, STRAYS);
	__type(key, struct tcb_key);
	__type(value, struct stray);
} strays SEC(".maps");

/* Cookies with which a connection has begun, in sets chosen by the highest bits of the cookie. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1 << USED_COOKIE_SET_BITS);
	__type(key, u32);
	__type(value, struct used_cookies);
} used_cookies SEC(".maps");

/* Nodes whose messages are refused because of their clocks, by short address. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_PEERS);
	__type(key, u32);
	__type(value, struct stale_sender);
} stale_senders SEC(".maps");

/*
 * The other nodes of the configuration, by short address: which of their messages were last refused. The daemon makes
 * the entries.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PEERS);
	__type(key, u32);
	__type(value, struct refused_node);
} refused_nodes SEC(".maps");

/*
 * The time up to which each sender's messages to the daemon are paid for (coarse monotonic clock, ns), by short
 * address. Only messages with a right tag make entries.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_PEERS);
	__type(key, u32);
	__type(value, u64);
} budgets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct claims);
} claims SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, CLAIM_SOURCES);
	__type(key, u32);
	__type(value, struct claim_source);
} claim_sources SEC(".maps");

/* Packets that were refused a CLAIM: a hash of the packet, and in the lowest byte the time. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CLAIM_REFUSALS);
	__type(key, u32);
	__type(value, u32);
} claim_refusals SEC(".maps");

/* Clients by short address: the tick in which a connection of theirs was found. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, CLAIM_BELIEVED);
	__type(key, u32);
	__type(value, u32);
} believed SEC(".maps");

/*
 * Whether requests wait; the daemon writes it. It is a variable because every packet asks, and so needs no lookup. It
 * ends with the program, and the next daemon's begins with zeros.
 */
volatile struct hold hold SEC(".data.hold");

/* The frames that wait. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, HELD_RING_BYTES);
} held SEC(".maps");

/* Recent answers of a dispatcher on another node; the daemon writes them. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, ANSWERS);
	__type(key, struct answer_key);
	__type(value, struct answer);
} answers SEC(".maps");

/* Until when the dispatcher of each service is not asked (coarse monotonic clock, ns); the daemon writes it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_SERVICES);
	__type(key, u32);
	__type(value, u64);
} resting SEC(".maps");

/* Live flows of each data server, as counted by the last sweep. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_DATA_SERVERS);
	__type(key, u32);
	__type(value, u32);
} flows SEC(".maps");

#endif
