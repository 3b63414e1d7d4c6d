/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every map that roles share. The daemon writes settings, services, pools, hosts, routes, large, choices, data_servers,
 * peers, peer_keys, senders, rings and places, and creates the receive windows; the programs write the others.
 */
#ifndef BATON_INCLUDE_MAPS_H
#define BATON_INCLUDE_MAPS_H

#include "abi/abi.h"
#include "include/kernel.h"

MAP(settings, ARRAY, 1, u32, struct settings);
MAP(counters, PERCPU_ARRAY, 1, u32, struct counters);
MAP(services, HASH, 2 * MAX_SERVICES, struct service_key, struct service);
MAP(pools, ARRAY, MAX_POOLS, u32, struct pool);
MAP_WITH(hosts, LPM_TRIE, MAX_HOSTS, struct host_key, u32, BPF_F_NO_PREALLOC);
MAP_WITH(routes, LPM_TRIE, MAX_ROUTES, struct route_key, u32, BPF_F_NO_PREALLOC);

/* Paths of large content. */
MAP_WITH(large, HASH, MAX_LARGE, struct large_key, u32, BPF_F_NO_PREALLOC);

/* How often each pool has chosen, which tells its next turn. */
MAP(turns, ARRAY, MAX_POOLS, u32, u64);

/* Two banks of indices into data_servers for each pool. */
MAP(choices, ARRAY, MAX_POOLS * CHOICE_BANKS * CHOICES_PER_POOL, u32, u16);

MAP(data_servers, ARRAY, MAX_DATA_SERVERS, u32, struct data_server);

/* The switch's table: Maglev over the connection servers, which are the `data_servers` of a switch. */
MAP(places, ARRAY, CHOICES_PER_POOL, u32, struct maglev_slot);

/*
 * Connections that began while the table named two connection servers for their place, with the place's `turn` at that
 * time.
 */
MAP(begun, LRU_HASH, BEGUN_FLOWS, struct tcb_key, u32);

/*
 * The nodes of the cluster by short address: how a data server reaches them with packets that are not for the client.
 */
MAP(peers, HASH, MAX_PEERS, u32, struct data_server);

/* The keys that this node shares with each node that sends it messages, by short address. */
MAP(peer_keys, HASH, 2 * MAX_PEERS, u32, struct peer_keys);

/* Who may send plain packets for a service to a data server: connection servers on its LAN. */
MAP(senders, HASH, MAX_PEERS, struct sender_key, u32);

/* The sending half of the channel to each other node. `sent_count` counts the messages of all channels together. */
MAP(channels, ARRAY, MAX_PEERS, u32, struct channel);

MAP(sent_count, ARRAY, 1, u32, u32);
MAP(send_buffer, ARRAY, SEND_BUFFER_MESSAGES, u32, struct sent_message);

/* The receiving half of the channel from each other node, by its short address. */
MAP(receive_windows, HASH, MAX_PEERS, u32, struct receive_window);

/* What came with the connections whose sockets are being made. */
MAP(expected, LRU_HASH, 4096, struct tcb_key, struct expected);

/* Sockets whose clients are being told this data server's address. */
SOCKET_STORAGE(telling, u32);

/* How far the responses on each connection have left this node. */
SOCKET_STORAGE(responses, struct response);

/* Whom CLAIM asks next for each service, by the number of the service at this data server. */
MAP(rings, ARRAY, MAX_SERVICES, u32, struct ring);

/* Connections that this data server lately gave to another one, and the requests with which they left. */
MAP(given, LRU_HASH, GIVEN_FLOWS, struct tcb_key, struct given);

/* When this data server last handed a connection over (coarse monotonic clock, ns). */
MAP(handovers, ARRAY, 1, u32, u64);

/* Connections that this data server is about to give away. */
MAP(yields, LRU_HASH, YIELDS, struct tcb_key, struct yielding);

/* Until when there may be an entry in `yields` (coarse monotonic clock, ns). */
MAP(yielding_until, ARRAY, 1, u32, u64);

/* What each data server, pool and route had to do. The keys are those of enum tally_place. */
MAP(tallies, PERCPU_ARRAY, TALLIES, u32, struct tally);

/* The id of the route that has each route number, for the next daemon; 0: none. The programs do not read it. */
MAP(route_ids, ARRAY, TALLIED_ROUTES, u32, u64);

/* The TCP table. The daemon sets its size before loading. */
MAP(tcbs, LRU_HASH, 1048576, struct tcb_key, struct tcb);

/* The current requests of connections whose responses could go on from another data server. */
MAP(kept_requests, LRU_HASH, 16384, struct tcb_key, struct kept_request);

/* Connections at rest, as their owners have reported. */
MAP(quiet_points, LRU_HASH, QUIET_POINTS, struct tcb_key, struct quiet_point);

/* Heads of responses that could be resumed, for the data server's daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, HEADS_RING_BYTES);
} seen_heads SEC(".maps");

/* What the last run of the find_flows program found. */
MAP(orphans, ARRAY, ORPHANS, u32, struct orphan);

/* Flows that have no entry in `tcbs`. */
MAP(strays, LRU_HASH, STRAYS, struct tcb_key, struct stray);

/* Nodes whose messages are refused because of their clocks, by short address. */
MAP(stale_senders, LRU_HASH, MAX_PEERS, u32, struct stale_sender);

/*
 * The other nodes of the configuration, by short address: which of their messages were last refused. The daemon makes
 * the entries.
 */
MAP(refused_nodes, HASH, MAX_PEERS, u32, struct refused_node);

/*
 * The time up to which each sender's messages to the daemon are paid for (coarse monotonic clock, ns), by short
 * address. Only messages with a right tag make entries.
 */
MAP(budgets, LRU_HASH, MAX_PEERS, u32, u64);

MAP(claims, PERCPU_ARRAY, 1, u32, struct claims);
MAP(claim_sources, PERCPU_ARRAY, CLAIM_SOURCES, u32, struct claim_source);

/* Packets that were refused a CLAIM: a hash of the packet, and in the lowest byte the time. */
MAP(claim_refusals, ARRAY, CLAIM_REFUSALS, u32, u32);

/* Clients by short address: the tick in which a connection of theirs was found. */
MAP(believed, LRU_HASH, CLAIM_BELIEVED, u32, u32);

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
MAP(answers, LRU_HASH, ANSWERS, struct answer_key, struct answer);

/* Until when the dispatcher of each service is not asked (coarse monotonic clock, ns); the daemon writes it. */
MAP(resting, ARRAY, MAX_SERVICES, u32, u64);

/* Live flows of each data server, as counted by the last sweep. */
MAP(flows, ARRAY, MAX_DATA_SERVERS, u32, u32);

#endif
