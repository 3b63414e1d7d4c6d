// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Exists to be compiled: a type reaches BTF only when something uses it. */
#include "abi.h"

#define STRUCT(name) struct name abi_struct_##name
#define ENUM(name) enum name abi_enum_##name

ENUM(lccp_constant);
ENUM(lccp_receptor);
ENUM(lccp_command);
ENUM(lccp_refusal);
ENUM(lccp_keep);
ENUM(lccp_tcb_option);
ENUM(lccp_health);
ENUM(query_limit);
ENUM(limit);
ENUM(role);
ENUM(ether_type);
ENUM(policy);
ENUM(pool_flag);
ENUM(service_flag);
ENUM(route_flag);
ENUM(data_server_flag);
ENUM(tcb_state);
ENUM(tally_place);
ENUM(counter);
ENUM(mark);
ENUM(verdict_mark);

STRUCT(lccp_header);
STRUCT(lccp_hello);
STRUCT(lccp_hello_service);
STRUCT(lccp_query);
STRUCT(lccp_reply);
STRUCT(lccp_sizes);
STRUCT(settings);
STRUCT(service_key);
STRUCT(service);
STRUCT(pool);
STRUCT(sender_key);
STRUCT(host_key);
STRUCT(route_key);
STRUCT(large_key);
STRUCT(data_server);
STRUCT(channel);
STRUCT(posted);
STRUCT(inbox);
STRUCT(tcb_key);
STRUCT(tcb);
STRUCT(tally);
STRUCT(stale_sender);
STRUCT(stray);
STRUCT(ring);
STRUCT(place);
STRUCT(answer_key);
STRUCT(answer);
STRUCT(punted);
STRUCT(verdict);
STRUCT(sweep);
STRUCT(counters);
