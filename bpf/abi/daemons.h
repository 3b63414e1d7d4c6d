/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Bodies of the messages that daemons send each other. */
#ifndef BATON_ABI_DAEMONS_H
#define BATON_ABI_DAEMONS_H

#include "abi/lccp.h"

enum lccp_health {
	LCCP_HEALTH_UNKNOWN = 0,
	LCCP_HEALTH_PASSING = 1,
	LCCP_HEALTH_FAILING = 2,
};

/* lccp_hello.be_flags; a receiver ignores bits it does not know. */
enum lccp_hello_flag {
	LCCP_HELLO_DRAINING = 1,       /* the sender wants no new requests */
};

/* Body of HELLO: this, then `be_services` times a struct lccp_hello_service. */
struct lccp_hello {
	unsigned long long be_incarnation; /* start of the sending daemon, nanoseconds since 1970 */
	unsigned short be_cpu_permille;
	unsigned short be_services;
	unsigned int be_flags;         /* enum lccp_hello_flag */
};

struct lccp_hello_service {
	unsigned char cluster[16];
	unsigned short be_port;
	unsigned char health;          /* enum lccp_health */
	unsigned char reserved;
	unsigned int be_connections;   /* established connections of this service */
};

/* Body of QUERY: this, then `be_host_bytes` of the host that was asked for, then the path. */
struct lccp_query {
	unsigned long long be_number;  /* number of the question, which the answer repeats */
	unsigned long long be_pool;    /* struct pool.id of the pool from which a data server is wanted */
	unsigned short be_host_bytes;
	unsigned short be_path_bytes;
	unsigned int reserved;
};

enum query_limit {
	QUERY_HOST_BYTES = 255,
	QUERY_PATH_BYTES = 512,        /* of a longer path only the beginning is sent */
};

/* Body of REPLY. */
struct lccp_reply {
	unsigned long long be_number;
	unsigned int be_lifetime_ms;   /* how long this answer holds for the same request */
	unsigned int reserved;
	unsigned char server[16];      /* the data server; all zero: the dispatcher knows none */
};

/* lccp_tcbs.be_flags */
enum lccp_batch_flag {
	LCCP_BATCH_FIRST = 1,          /* a migration begins; batch 0 */
	LCCP_BATCH_LAST = 2,           /* the migration ends: no batch comes after this one */
	LCCP_BATCH_ABORT = 4,          /* the migration ends before its last batch; entries that came stay */
};

/*
 * Body of TCBS: this, then `be_entries` times a struct lccp_tcbs_entry. The batches of a migration are
 * numbered from 0; each is sent until it is acknowledged.
 */
struct lccp_tcbs {
	unsigned long long be_migration; /* grows with each migration of the same sender */
	unsigned int be_batch;
	unsigned short be_entries;
	unsigned short be_flags;       /* enum lccp_batch_flag */
};

/* A TCB entry between two tables. An index in struct tcb becomes an address or an id here. */
struct lccp_tcbs_entry {
	unsigned char client[16];
	unsigned int cluster;          /* short address */
	unsigned short be_client_port;
	unsigned short be_cluster_port;
	unsigned long long be_pool;    /* struct pool.id */
	unsigned long long be_route;   /* id of the route as in the map `route_ids`; 0: none */
	unsigned int be_request_seq;
	unsigned int be_last_seq;
	unsigned int be_last_ack;
	unsigned int be_age;           /* ticks since the last packet */
	unsigned int owner;            /* short address */
	unsigned int previous;         /* short address; 0: none */
	unsigned short be_mss;
	unsigned char snd_wscale;
	unsigned char rcv_wscale;
	unsigned char options;         /* enum lccp_tcb_option */
	unsigned char state;           /* enum tcb_state */
	unsigned char attempt;         /* as in struct lccp_tcb */
	unsigned char reserved;
};

/* Why the receiver of TCBS refuses the whole migration. */
enum lccp_taken_refusal {
	LCCP_TAKEN_NO_CS = 1,          /* the receiver is a connection server with no table or no partners */
	LCCP_TAKEN_STRANGER = 2,       /* the sender is not a connection server in the receiver's configuration */
	LCCP_TAKEN_BUSY = 3,           /* the receiver is taking the entries of another node */
	LCCP_TAKEN_UNKNOWN = 4,        /* the receiver knows no such migration: its daemon has restarted */
	LCCP_TAKEN_NO_TABLE = 5,       /* the receiver's table cannot be written */
};

/* Why an entry is not in the receiver's table. */
enum lccp_left_out {
	LCCP_LEFT_OUT_FULL = 0,        /* the table is full */
	LCCP_LEFT_OUT_OWNER = 1,       /* the receiver has no such data server */
	LCCP_LEFT_OUT_SERVICE = 2,     /* the receiver has no such service */
	LCCP_LEFT_OUT_OLDER = 3,       /* the table has a newer entry of this connection */
	LCCP_LEFT_OUT_REASONS = 4,
};

enum migration_limit {
	BATCH_WINDOW = 256,            /* batches that may be under way at once */
};

/* Body of TAKEN. */
struct lccp_taken {
	unsigned long long be_migration;
	unsigned int be_next;          /* all batches below this number have come */
	unsigned short be_refusal;     /* enum lccp_taken_refusal; 0: none */
	unsigned short reserved;
	unsigned int be_taken;         /* how many entries are in the table so far */
	unsigned int be_left_out[LCCP_LEFT_OUT_REASONS];
	unsigned int reserved_word;
	unsigned long long be_came[BATCH_WINDOW / 64]; /* which batches from be_next on have come as well, one bit
	                                                  for each */
};

enum lccp_candidate_state {
	LCCP_CANDIDATE_STANDBY = 1,
	LCCP_CANDIDATE_FRONT = 2,
	LCCP_CANDIDATE_HANDING = 3,    /* in front, until `next` is in front under the next epoch */
};

/* Body of CANDIDATE. */
struct lccp_candidate {
	unsigned long long be_epoch;   /* epoch of the sender's own time in front, or the highest epoch that it has
	                                  heard of */
	unsigned char state;           /* enum lccp_candidate_state */
	unsigned char reserved[7];
	unsigned char next[16];        /* the node that takes over, with LCCP_CANDIDATE_HANDING; else all zero */
};

enum lccp_order_verb {
	LCCP_ORDER_DRAIN = 1,          /* take no new requests */
	LCCP_ORDER_UNDRAIN = 2,        /* take new requests again */
	LCCP_ORDER_MIGRATE = 3,        /* let another connection server take over from the receiver */
	LCCP_ORDER_TELL = 4,           /* report how the order with this number is getting on */
};

/* Body of ORDER: this, then `be_name_bytes` bytes, which receivers ignore: no verb takes a name. */
struct lccp_order {
	unsigned long long be_number;  /* only the highest number of one sender counts; a repeated order has the same
	                                  number */
	unsigned short be_verb;        /* enum lccp_order_verb */
	unsigned short be_name_bytes;
	unsigned int other;            /* for MIGRATE: short address of the connection server that takes over */
};

/* Body of ACCOUNT: this, then `be_text_bytes` of JSON, the same answer that the control socket would give. */
struct lccp_account {
	unsigned long long be_number;  /* of the order */
	unsigned short be_text_bytes;
	unsigned short reserved;
	unsigned int reserved_word;
};

/* The parts of a response's head that a digest covers, as far as they were seen. */
enum head_part {
	HEAD_PART_STATUS = 1,
	HEAD_PART_SIZE = 2,            /* of the head itself */
	HEAD_PART_LENGTH = 4,          /* Content-Length */
	HEAD_PART_ETAG = 8,
	HEAD_PART_MODIFIED = 16,       /* Last-Modified */
};

/*
 * Body of HEAD: this, then `be_heads` times a struct lccp_head. Behind a single head the request may follow that this
 * response answers.
 */
struct lccp_heads {
	unsigned short be_heads;
	unsigned short be_request_bytes;
	unsigned int be_request_seq;   /* of the request's first byte */
};

/* The head of the response to this client that begins at `be_response_start`. */
struct lccp_head {
	unsigned char client[16];
	unsigned int cluster;          /* short address */
	unsigned short be_client_port;
	unsigned short be_cluster_port;
	unsigned long long be_digest;  /* digest of the parts of the head that were seen */
	unsigned int be_response_start;
	unsigned int be_length;        /* bytes of the whole response, head and body; 0: unknown, or it has no body */
	unsigned short be_unseen;      /* parts that are not in the digest (enum head_part); 0: the digest covers the
	                                  whole head */
	unsigned char is_counted;      /* 1: `number` is valid */
	unsigned char number;          /* which response of this data server on the connection it is, from 1 on,
	                                  modulo 256 */
	unsigned int be_pool;          /* with a request: lower half of the id of the pool that the request is for;
	                                  0: unknown */
};

/*
 * Body of RESUME: this, then `be_request_bytes` of request. The client of the message's flow has received some part of
 * the response; the receiver is to ask its own server for the same response.
 */
struct lccp_resume {
	unsigned long long be_number;  /* number of this RESUME, which READY repeats */
	/*
	 * digest of the head of the response that the client has begun to receive; 0: unknown. If `be_request_bytes` is
	 * 0, this RESUME cancels an earlier one, and this is that one's number.
	 */
	unsigned long long be_digest;
	unsigned long long be_length;  /* bytes of that whole response, head and body; 0: unknown */
	unsigned int be_response_start; /* sequence number of the response's first byte */
	unsigned int be_acknowledged;  /* highest sequence number that the client has acknowledged */
	unsigned short be_request_bytes;
	unsigned short be_unseen;      /* parts that are not in the digest (enum head_part) */
	unsigned int reserved_word;
};

/* Body of READY. */
struct lccp_ready {
	unsigned long long be_number;
	unsigned long long be_digest;  /* digest of the head of the response that is here, as in RESUME */
	unsigned long long be_length;  /* length of that response, as in RESUME */
	unsigned int be_outcome;       /* enum lccp_outcome */
	unsigned int reserved;
};

enum lccp_outcome {
	LCCP_OUTCOME_READY = 1,        /* the response is here and waits for its connection */
	LCCP_OUTCOME_BEGUN = 2,        /* the connection has come, and the response goes on here */
	LCCP_OUTCOME_COMPLETE = 3,     /* the client already has the whole response */
	/* The following outcomes mean that the response will not be resumed at this node: */
	LCCP_OUTCOME_UNREACHABLE = 4,  /* the server here does not answer */
	LCCP_OUTCOME_STATUS = 5,       /* the server here answers with a status whose content is not known to be the
	                                  same */
	LCCP_OUTCOME_NO_LENGTH = 6,    /* the server here does not say how long its answer is */
	LCCP_OUTCOME_LENGTH = 7,       /* the answer here is shorter than what the client has, or 4 GiB or longer */
	LCCP_OUTCOME_DIFFERS = 8,      /* the answer here is known to be a different response */
	LCCP_OUTCOME_FULL = 9,         /* this node already resumes as many responses as it can */
};

#endif
