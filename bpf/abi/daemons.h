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
	unsigned int be_connections;   /* established, of this service */
};

/* Body of QUERY: this, then `be_host_bytes` of the host that was asked for, then the path. */
struct lccp_query {
	unsigned long long be_number;  /* the question's, which its answer repeats */
	unsigned long long be_pool;    /* struct pool.id: of whom one is wanted */
	unsigned short be_host_bytes;
	unsigned short be_path_bytes;
	unsigned int reserved;
};

enum query_limit {
	QUERY_HOST_BYTES = 255,
	QUERY_PATH_BYTES = 512,        /* of a longer one the beginning */
};

/* Body of REPLY. */
struct lccp_reply {
	unsigned long long be_number;
	unsigned int be_lifetime_ms;   /* so long the same answer is good for the same request */
	unsigned int reserved;
	unsigned char server[16];      /* all zero: the dispatcher knows nobody */
};

/* lccp_tcbs.be_flags */
enum lccp_batch_flag {
	LCCP_BATCH_FIRST = 1,          /* a migration begins; batch 0 */
	LCCP_BATCH_LAST = 2,           /* and ends: none comes behind this one */
	LCCP_BATCH_ABORT = 4,          /* it ends without having come to its end; what came stays */
};

/*
 * Body of TCBS: this, then `be_entries` times a struct lccp_tcbs_entry. The batches of a migration are
 * numbered from 0; each is sent until it is acknowledged.
 */
struct lccp_tcbs {
	unsigned long long be_migration; /* later ones of the same sender have higher numbers */
	unsigned int be_batch;
	unsigned short be_entries;
	unsigned short be_flags;       /* enum lccp_batch_flag */
};

/* A TCB entry between two tables: what is an index in one (struct tcb) is an address or an id here. */
struct lccp_tcbs_entry {
	unsigned char client[16];
	unsigned int cluster;          /* short address */
	unsigned short be_client_port;
	unsigned short be_cluster_port;
	unsigned long long be_pool;    /* struct pool.id */
	unsigned long long be_route;   /* route_ids; 0: none */
	unsigned int be_request_seq;
	unsigned int be_last_seq;
	unsigned int be_last_ack;
	unsigned int be_age;           /* ticks since the last packet */
	unsigned int owner;            /* short address */
	unsigned int previous;         /* short address; 0: nobody */
	unsigned short be_mss;
	unsigned char snd_wscale;
	unsigned char rcv_wscale;
	unsigned char options;         /* enum lccp_tcb_option */
	unsigned char state;           /* enum tcb_state */
	unsigned char reserved[2];
};

/* Why the receiver of TCBS refuses all of it. */
enum lccp_taken_refusal {
	LCCP_TAKEN_NO_CS = 1,          /* it is no connection server of the sender's addresses */
	LCCP_TAKEN_STRANGER = 2,       /* the sender is no connection server in the receiver's configuration */
	LCCP_TAKEN_BUSY = 3,           /* it takes another node's entries */
	LCCP_TAKEN_UNKNOWN = 4,        /* it knows of no such migration: its daemon has begun anew */
	LCCP_TAKEN_NO_TABLE = 5,       /* its table cannot be written */
};

/* Why an entry is not in the receiver's table. */
enum lccp_left_out {
	LCCP_LEFT_OUT_FULL = 0,        /* the table is full */
	LCCP_LEFT_OUT_OWNER = 1,       /* no such data server there */
	LCCP_LEFT_OUT_SERVICE = 2,     /* no such service there */
	LCCP_LEFT_OUT_OLDER = 3,       /* the table has a newer one of this connection */
	LCCP_LEFT_OUT_REASONS = 4,
};

enum migration_limit {
	BATCH_WINDOW = 256,            /* batches that may be under way at once */
};

/* Body of TAKEN. */
struct lccp_taken {
	unsigned long long be_migration;
	unsigned int be_next;          /* all batches below this number came */
	unsigned short be_refusal;     /* enum lccp_taken_refusal; 0: none */
	unsigned short reserved;
	unsigned int be_taken;         /* entries that are in the table, so far */
	unsigned int be_left_out[LCCP_LEFT_OUT_REASONS];
	unsigned int reserved_word;
	unsigned long long be_came[BATCH_WINDOW / 64]; /* bit by bit, from be_next on: these came as well */
};

enum lccp_candidate_state {
	LCCP_CANDIDATE_STANDBY = 1,
	LCCP_CANDIDATE_FRONT = 2,
	LCCP_CANDIDATE_HANDING = 3,    /* in front, until `next` is, under the next epoch */
};

/* Body of CANDIDATE. */
struct lccp_candidate {
	unsigned long long be_epoch;   /* of the sender's own time in front, or the highest it has heard of */
	unsigned char state;           /* enum lccp_candidate_state */
	unsigned char reserved[7];
	unsigned char next[16];        /* to whom, when it is being handed over; else all zero */
};

enum lccp_order_verb {
	LCCP_ORDER_DRAIN = 1,          /* take no new requests */
	LCCP_ORDER_UNDRAIN = 2,        /* take them again */
	LCCP_ORDER_MIGRATE = 3,        /* let another connection server take over from you */
	LCCP_ORDER_TELL = 4,           /* say how the order of this number is getting on */
};

/* Body of ORDER: this, then `be_name_bytes` of a node's name, where the verb wants one. */
struct lccp_order {
	unsigned long long be_number;  /* of one sender's orders the highest counts; sent again it is the same */
	unsigned short be_verb;        /* enum lccp_order_verb */
	unsigned short be_name_bytes;
	unsigned int other;            /* of MIGRATE: short address of who takes over */
};

/* Body of ACCOUNT: this, then `be_text_bytes` of JSON, as the control socket would have answered. */
struct lccp_account {
	unsigned long long be_number;  /* of the order */
	unsigned short be_text_bytes;
	unsigned short reserved;
	unsigned int reserved_word;
};

/* What a digest of a response's head is made of, as far as it was seen. */
enum head_part {
	HEAD_PART_STATUS = 1,
	HEAD_PART_SIZE = 2,            /* of the head itself */
	HEAD_PART_LENGTH = 4,          /* Content-Length */
	HEAD_PART_ETAG = 8,
	HEAD_PART_MODIFIED = 16,       /* Last-Modified */
};

/*
 * Body of HEAD: this, then `be_heads` times a struct lccp_head, and of a single one the request that this response answers, if its
 * owner tells that.
 */
struct lccp_heads {
	unsigned short be_heads;
	unsigned short be_request_bytes;
	unsigned int be_request_seq;   /* of the request's first byte */
};

/* Of the response to this client that begins at this sequence number. */
struct lccp_head {
	unsigned char client[16];
	unsigned int cluster;          /* short address */
	unsigned short be_client_port;
	unsigned short be_cluster_port;
	unsigned long long be_digest;  /* of what was seen of its head */
	unsigned int be_response_start;
	unsigned int be_length;        /* of all of it, if it has a body, bytes; 0: unknown */
	unsigned short be_unseen;      /* enum head_part: what is not in the digest; 0: it is of the whole head */
	unsigned char is_counted;      /* 1: the next field says something */
	unsigned char number;          /* which response it is of those that this data server began on the connection, from 1 on, modulo 256 */
	unsigned int be_pool;          /* with a request: lower half of the id of the pool that it is of; 0: not known */
};

/*
 * Body of RESUME: this, then `be_request_bytes` of request. Of the message's flow, some part of the response
 * has come to the client; the receiver is to ask its own server for the same.
 */
struct lccp_resume {
	unsigned long long be_number;  /* the order's, which READY repeats */
	/* Of the head of the response that the client has begun to get; 0: unknown. Without a request the
	 * number of an order, which is taken back. */
	unsigned long long be_digest;
	unsigned long long be_length;  /* of all of that response, head and body, bytes; 0: unknown */
	unsigned int be_response_start; /* sequence number of its first byte */
	unsigned int be_acknowledged;  /* the highest that the client has acknowledged */
	unsigned short be_request_bytes;
	unsigned short be_unseen;      /* enum head_part: what is not in the digest */
	unsigned int reserved_word;
};

/* Body of READY. */
struct lccp_ready {
	unsigned long long be_number;
	unsigned long long be_digest;  /* as in RESUME, of the response that is here */
	unsigned long long be_length;
	unsigned int be_outcome;       /* enum lccp_outcome */
	unsigned int reserved;
};

enum lccp_outcome {
	LCCP_OUTCOME_READY = 1,        /* the response is here, and waits for its connection */
	LCCP_OUTCOME_BEGUN = 2,        /* and the connection has come */
	LCCP_OUTCOME_COMPLETE = 3,     /* the client has all of the response already */
	/* It will not be resumed from here: */
	LCCP_OUTCOME_UNREACHABLE = 4,  /* the server here does not answer */
	LCCP_OUTCOME_STATUS = 5,       /* it answers with a status whose content is not known to be the same */
	LCCP_OUTCOME_NO_LENGTH = 6,    /* it does not say how long its answer is */
	LCCP_OUTCOME_LENGTH = 7,       /* its answer is shorter than what the client has, or 4 GiB and longer */
	LCCP_OUTCOME_DIFFERS = 8,      /* it is known to be another one */
	LCCP_OUTCOME_FULL = 9,         /* too many are resumed from here */
};

#endif
