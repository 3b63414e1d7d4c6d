// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* This file exists only to be compiled: a type reaches BTF only when something uses it. */
#include "abi/abi.h"
#include "abi/virtual_sockets.h"
#include "abi/aware_client.h"
#include "abi/eop.h"

#define STRUCT(name) struct name abi_struct_##name
#define ENUM(name) enum name abi_enum_##name

ENUM(lccp_constant);
ENUM(lccp_receptor);
ENUM(lccp_command);
ENUM(lccp_command_set);
ENUM(lccp_flag);
ENUM(lccp_refusal);
ENUM(door_flag);
ENUM(read_limit);
ENUM(read_flag);
ENUM(early_flag);
ENUM(lccp_none);
ENUM(lccp_yield);
ENUM(response_state);
ENUM(lccp_tcb_option);
ENUM(lccp_health);
ENUM(lccp_batch_flag);
ENUM(lccp_taken_refusal);
ENUM(lccp_left_out);
ENUM(migration_limit);
ENUM(lccp_candidate_state);
ENUM(lccp_hello_flag);
ENUM(lccp_order_verb);
ENUM(lccp_outcome);
ENUM(query_limit);
ENUM(head_part);
ENUM(limit);
ENUM(role);
ENUM(ether_type);
ENUM(policy);
ENUM(pool_flag);
ENUM(service_flag);
ENUM(route_flag);
ENUM(data_server_flag);
ENUM(tcb_state);
ENUM(move_step);
ENUM(tally_place);
ENUM(door_tally_place);
ENUM(counter);
ENUM(mark);
ENUM(metadata);
ENUM(budget);

STRUCT(lccp_header);
STRUCT(lccp_hello);
STRUCT(lccp_hello_service);
STRUCT(lccp_query);
STRUCT(lccp_reply);
STRUCT(lccp_tcbs);
STRUCT(lccp_tcbs_entry);
STRUCT(lccp_taken);
STRUCT(lccp_candidate);
STRUCT(lccp_order);
STRUCT(lccp_account);
STRUCT(lccp_resume);
STRUCT(lccp_ready);
STRUCT(lccp_heads);
STRUCT(lccp_head);
STRUCT(settings);
STRUCT(service_key);
STRUCT(service);
STRUCT(pool);
STRUCT(sender_key);
STRUCT(host_key);
STRUCT(route_key);
STRUCT(large_key);
STRUCT(data_server);
STRUCT(peer_keys);
STRUCT(channel);
STRUCT(sent_message);
STRUCT(receive_window);
STRUCT(tcb_key);
STRUCT(tcb);
STRUCT(kept_request);
STRUCT(quiet_point);
STRUCT(response);
STRUCT(followed_body);
STRUCT(door);
STRUCT(passing);
STRUCT(kept);
STRUCT(have_read);
STRUCT(early);
STRUCT(seen_head);
STRUCT(orphan);
STRUCT(find_flows);
STRUCT(change);
STRUCT(moving);
STRUCT(yielding);
STRUCT(tally);
STRUCT(door_tally);
STRUCT(stale_sender);
STRUCT(refused_node);
STRUCT(stray);
STRUCT(given);
STRUCT(ring);
STRUCT(maglev_slot);
STRUCT(answer_key);
STRUCT(answer);
STRUCT(held_frame);
STRUCT(hold);
STRUCT(sweep);
STRUCT(expected);
STRUCT(counters);

ENUM(app_limit);
ENUM(app_socket_flag);
ENUM(app_family_flag);
ENUM(app_option);
ENUM(app_event_kind);
ENUM(app_counter);
ENUM(eop_counter);

STRUCT(app_address);
STRUCT(app_settings);
STRUCT(app_direct_key);
STRUCT(app_options);
STRUCT(app_socket);
STRUCT(app_arrival);
STRUCT(app_listener);
STRUCT(app_event);
STRUCT(app_counters);

ENUM(client_limit);
ENUM(client_counter);

STRUCT(client_settings);
STRUCT(client_service);
STRUCT(client_flow);
STRUCT(client_counters);
