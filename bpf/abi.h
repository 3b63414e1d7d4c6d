/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every struct and constant that two parties must agree on: the wire (LCCP) and the maps
 * (programs and daemon). The Rust types are generated from the BTF of this file (crates/abi),
 * so constants are enums: a #define never reaches BTF.
 *
 * Addresses are 16 bytes everywhere; IPv4 is written as v4-mapped (::ffff:a.b.c.d). Where 32 bits must
 * do, a *short address*, in network byte order, tells the few addresses of a cluster apart: an IPv4
 * address as it is, an IPv6 address by its four words XORed. Two that are alike cannot be configured.
 * Fields named be_* hold network byte order; all others are host order.
 */
#ifndef BATON_ABI_H
#define BATON_ABI_H

/* ---- LCCP: every message between nodes --------------------------------------------------- */

enum lccp_constant {
	LCCP_VERSION = 4,
	LCCP_HEADER_BYTES = 80,
	LCCP_TAGGED_BYTES = 72,   /* the header without its tag */
	LCCP_OVERHEAD_BYTES = 100, /* what an outer IPv4 header and LCCP add to a client's packet */
	LCCP_BODY_CHUNK = 32,     /* a body is tagged in pieces of so many bytes, the last filled up with zeros */
	LCCP_MAX_BODY = 1024,
	LCCP_MAX_RESUME = 1400,   /* the longest body of RESUME and of HEAD, which may hold a request */
};

/* Which component of the receiving node a message is for. */
enum lccp_receptor {
	LCCP_RECEPTOR_CS = 1,     /* the CS program */
	LCCP_RECEPTOR_DS = 2,     /* the DS program */
	LCCP_RECEPTOR_DAEMON = 3, /* the daemon, through a raw socket */
};

enum lccp_command {
	LCCP_ADOPT = 1,   /* DM1: adopt this connection; carries the client's packet */
	LCCP_REFUSED = 2, /* no listener here; carries the client's packet back */
	LCCP_FORWARD = 3, /* a client's packet for an owner that is behind a router */
	LCCP_HELLO = 4,   /* heartbeat, load and health; has a body */
	LCCP_NONE = 7,    /* nobody here has this connection; carries the client's packet back */
	LCCP_SYNC = 8,    /* daemon to daemon: the number of the last message sent to you (data) */
	LCCP_AGAIN = 9,   /* daemon to daemon: these did not come; the body is a list of be16 numbers */
	LCCP_CLAIM = 10,  /* who has this connection? From DS to DS until one has; carries the client's packet */
	LCCP_MOVED = 11,  /* it is here, or where the owner has handed it to, and so is its travelling part; carries the packet */
	LCCP_QUERY = 12,  /* a DS's daemon to the dispatcher: which DS is to serve this request? Has a body */
	LCCP_REPLY = 13,  /* the dispatcher to the daemon of the DS that asks: this one. Has a body */
	LCCP_ALIVE = 16,  /* daemon to DS program, which turns it round: does your host live? No body */
	LCCP_RESUME = 17, /* daemon to daemon: fetch the rest of this response; has a body */
	LCCP_READY = 18,  /* daemon to daemon: what has become of that; has a body */
	LCCP_CANDIDATE = 19, /* daemon to daemon: who is, or would be, the connection server in front; has a body */
	LCCP_TCBS = 20,   /* daemon to daemon: a batch of TCB entries; has a body */
	LCCP_TAKEN = 21,  /* daemon to daemon: these batches have come; has a body */
	LCCP_ORDER = 22,  /* daemon to daemon: what an operator wants of you; has a body */
	LCCP_YIELD = 24,  /* daemon to DS program: let this response go on elsewhere; back: enum lccp_yield. Carries an ACK */
	LCCP_ACCOUNT = 27, /* daemon to daemon: how an order is getting on; has a body */
	LCCP_RECEIVED = 29, /* DS to DS: all that you keep of this connection before `data` is here; carries some of it */
	LCCP_HEAD = 23,   /* daemon to daemon: how responses begin that leave the sender; has a body */
};

/*
 * Commands that a node may not give if it has only its own keys, one bit for each: they move other nodes' connections.
 * YIELD is among them where it is for a data server's program; its answer is not.
 */
enum lccp_command_set {
	LCCP_LEADING = 1 << LCCP_YIELD | 1 << LCCP_RESUME | 1 << LCCP_CANDIDATE | 1 << LCCP_TCBS | 1 << LCCP_TAKEN |
		       1 << LCCP_ORDER,
	LCCP_LEADING_AT_DS = 1 << LCCP_YIELD,
};

/* lccp_header.flags */
enum lccp_flag {
	LCCP_FLAG_RESUME = 1, /* of ADOPT: into the agent that has the rest of a response */
	LCCP_FLAG_HEADERS = 2, /* of CLAIM: the client's packet is here without its data, so it is not to be delivered */
	LCCP_FLAG_KEPT = 8, /* of FORWARD: a DS keeps the packet's data, and sends it until it hears RECEIVED. Of ADOPT: it may have
			       come before; the DS that keeps its data is in tcb.be_resume, its short address in the lower half, 0: the client */
	LCCP_FLAG_GONE = 16, /* of RECEIVED: the connection is not here, nor is it known where it may be */
};

/*
 * lccp_header.data: of FORWARD with LCCP_FLAG_KEPT the short address of the DS which keeps the data, else that of the DS which is to have
 * the connection when the receiver lets it go, or 0; of ADOPT that of the CS which is to hear of a refusal; of REFUSED why; of
 * NONE enum lccp_none; of CLAIM that of the CS which asks; of
 * MOVED that of the DS that the sender has handed the connection to, or 0; of RECEIVED the sequence number that is expected next;
 * of YIELD that of the next DS, 0: stay, and of its answer what is the case (enum lccp_yield); of ALIVE 1 if its sender has taken the
 * receiver for dead, else 0.
 */

enum lccp_refusal {
	LCCP_REFUSAL_NO_LISTENER = 1,
	LCCP_REFUSAL_NOT_ASSIGNED = 2, /* the kernel would not make a socket of it */
	LCCP_REFUSAL_UNREADABLE = 4,   /* the owner is to judge this request, and cannot */
};

/* What NONE says of the packet that it carries back. */
enum lccp_none {
	LCCP_NONE_PLAIN = 1,           /* it came by itself, so its connection server had judged it */
};

/* What the owner answers to YIELD, once that is decided. */
enum lccp_yield {
	LCCP_YIELD_GONE = 1,           /* the connection is not here (any more) */
	LCCP_YIELD_KEPT = 2,           /* it is here, and stays, as was told */
	LCCP_YIELD_REFUSED = 3,        /* it is here, and cannot go */
};

/* lccp_tcb.options */
enum lccp_tcb_option {
	LCCP_TCB_SACK = 1,
	LCCP_TCB_WSCALE = 2,
	LCCP_TCB_AWARE = 4,            /* the client sends to the data server itself once it knows where that is */
};

struct lccp_flow {
	unsigned char client[16];
	unsigned char cluster[16];
	unsigned short be_client_port;
	unsigned short be_cluster_port;
};

/* The part of a TCB entry that travels: what no later packet of the client repeats. */
struct lccp_tcb {
	unsigned short be_mss;         /* largest segment the client takes, bytes */
	unsigned char snd_wscale;      /* the client's announced scale, 0-14 */
	unsigned char rcv_wscale;      /* the scale the SYN-ACK announced, 0-14 */
	unsigned char options;         /* enum lccp_tcb_option */
	unsigned char attempt;         /* how many DSs have refused this request, were asked by CLAIM, or have sent the packet on */
	unsigned short be_cwnd;        /* the owner's congestion window, segments; 0: as of a new connection */
	unsigned long long be_resume;  /* of ADOPT with LCCP_FLAG_KEPT: who keeps its data, see there; of MOVED
	                                  enum moved_request and the sequence number of the request that the connection went with, if
	                                  the packet is not that; else 0 */
};

enum moved_request {
	MOVED_BEHIND = 1,              /* in the upper half: the lower one is that number */
};

/* Then: `be_body_length` bytes of body under the tag, or (body length 0) the client's packet. */
struct lccp_header {
	unsigned char version;         /* this and the receptor are where they are in every version */
	unsigned char receptor;
	unsigned char command;
	unsigned char flags;           /* enum lccp_flag; a receiver ignores bits it does not know */
	unsigned short be_body_length;
	unsigned short be_sequence;    /* number of the message from this sender to this receiver; 0: it has none. DSs number ADOPT and
	                                  FORWARD. CSs number ADOPT, CLAIM, and FORWARD by way of an owner that lets go (cs/move.h),
	                                  but not what they send on after REFUSED or NONE */
	struct lccp_flow flow;
	unsigned int be_data;          /* by command */
	struct lccp_tcb tcb;
	unsigned long long be_clock;   /* the sender's wall clock, nanoseconds since 1970 */
	unsigned long long be_tag;     /* SipHash-2-4 of the 72 bytes before, then see lccp.h */
};

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

/* ---- maps: programs and daemon ------------------------------------------------------------ */

enum limit {
	MAX_SERVICES = 64,
	MAX_POOLS = 128,
	MAX_HOSTS = 64,                /* host patterns of all services */
	MAX_ROUTES = 8192,             /* of all services, hosts by paths */
	HOST_BYTES = 64,               /* longest host name of a route and what ends it */
	PATH_BYTES = 120,              /* longest path of a route */
	MAX_LARGE = 16384,             /* paths of large content, of all services */
	MAX_DATA_SERVERS = 256,
	MAX_INTERFACES = 4,            /* of a node, that its programs are at */
	MAX_PEERS = 512,               /* nodes of all roles */
	ALSO_MACS = 4,                 /* MAC addresses that a node has besides its interface's own */
	WINDOW = 1024,                 /* messages of a channel that its two ends remember */
	OUTBOX = 8192,                 /* messages of all channels that can be sent again */
	OUTBOX_FRAME_BYTES = 1600,
	CHOICES_PER_POOL = 16381,      /* prime: the Maglev table size */
	CHOICE_BANKS = 2,              /* one is read while the daemon writes the other */
	STRAYS = 4096,
	USED_COOKIE_SET_BITS = 17,     /* 131,072 sets */
	USED_COOKIES_PER_SET = 16,     /* a power of two */
	/* Messages that CLAIMs of each processor may cause in a tick, by what speaks for them: see cs/claim_budget.h. */
	CLAIM_BUDGET_PROVED = 65536,
	CLAIM_BUDGET_LIKELY = 16384,
	CLAIM_BUDGET_STRANGER = 8192,
	CLAIM_SOURCES = 4096,          /* that are told apart; a power of two */
	CLAIM_REFUSALS = 1 << 18,      /* packets that were refused, by a hash; a power of two */
	CLAIM_BELIEVED = 16384,        /* addresses of clients whose connections were found */
	GIVEN_FLOWS = 131072,          /* connections that a data server remembers to have given away */
	YIELDS = 16384,                /* connections that a data server is about to give away */
	BEGUN_FLOWS = 131072,          /* connections that the switch has to remember one by one */
	HELD_FRAME_BYTES = 2272,       /* frames up to this length take so much room in the ring of those that wait, */
	HELD_JUMBO_BYTES = 9728,       /* and longer ones so much: none is longer */
	HELD_RING_BYTES = 1 << 22,     /* a power of two; 1,800 first requests that wait for a migration */
	ANSWERS = 16384,               /* of a dispatcher on another node, remembered */
	ASKING_PATIENCE_NS = 100000000, /* so long a sign of life of who asks it counts */
	ADOPT_ATTEMPTS = 8,            /* then the request counts as refused by all */
	TICK_SHIFT = 30,               /* a tick is 2^30 ns: 1.07 s, and no division to get it */
	SENT_SHIFT = 20,               /* for what is older than milliseconds soon: 1.05 of them */
	TALLIED_ROUTES = 2048,         /* numbers of routes; below MAX_SERVICES: what no route of a service takes */
	KEPT_BYTES = 1360,             /* longest request that is kept: what one segment holds */
	TOLD_BYTES = 1344,             /* the same where its owner keeps it: what HEAD holds beside the head of a response */
	OWNER_KEEPS = 4096,            /* so many a data server keeps that is no connection server: until their responses have begun */
	QUIET_POINTS = 131072,         /* connections that are at rest, of which a connection server remembers where */
	ORPHANS = 4096,                /* entries that one muster finds at most */
	HEAD_BYTES = 1024,             /* of how a response begins, that user space is shown */
	HEADS_RING_BYTES = 1 << 20,    /* a power of two */
	NO_DATA_SERVER = 65535,
	NO_POOL = 65535,
};

enum role {
	ROLE_CS = 1,
	ROLE_DS = 2,
	ROLE_SWITCH = 4,
};

/* Ethernet types of frames that are ours. */
enum ether_type {
	ETHER_SWITCHED = 0x88b5,       /* a client's whole frame, from the switch to a CS (IEEE 802: experimental) */
};

/* Marks a packet that the DS program has put back on its own ingress, so that it does so once. */
enum mark {
	/* Of packets that come to this node's interface once more: */
	MARK_BEHIND_BATCH = 0x62617474, /* one that waits for those before it, */
	MARK_BEHIND_AGAIN = 0x62617475, /* and waits once more, */
	MARK_OF_AGENT = 0x62617476,     /* one that the agent sent in, and that waits so, or begins the next socket of its connection, */
	MARK_REQUEUED = 0x62617477,     /* and any other, behind a RST that ends an older connection */
	MARK_RELAY_LOCAL = 0x62617472,  /* of packets that a routing rule of the relay keeps on this host */
	MARK_RELAY_SOCKET = 0x62617473, /* of the relay's sockets to a server that is in a container */
};

enum metadata {
	CARRIED_METADATA = 0x62617477,  /* in front of frames that a connection server has taken out of a message, */
	AGENT_METADATA = 0x62617478,    /* and of those that the agent of a data server sends in, */
	LEAVE_METADATA = 0x62617479,    /* and of empty ACKs with which its daemon has idle connections leave, */
	EARLY_METADATA = 0x6261747a,    /* and of what has waited there because it came too early; */
	QUIET_METADATA = 0x6261747b,    /* of empty ACKs with which its daemon asks whether connections are at rest */
	EARLY_BYTES = 2048,             /* what comes too early and is no longer takes so much room in the ring, */
	EARLY_MERGED_BYTES = 65536,     /* and what the kernel has merged so much */
	EARLY_RING_BYTES = 1 << 24,     /* a power of two: 256 of those that are merged */
};

/*
 * Index 0 of an array map. Cookie keys: [0] current, [1] previous (all zero: none); a node that is no connection server
 * has none of them. The hash key and the seed made of it are the same at all nodes of a cluster; only connection servers
 * and the switch have them here.
 */
struct settings {
	unsigned long long cookie_key[2][2];
	unsigned long long hash_key[2]; /* of the hashes of paths and hosts: see cs/route.h */
	long long clock_offset_ns;     /* wall clock minus monotonic clock */
	unsigned long long clock_window_ns; /* LCCP older or newer than this is stale */
	unsigned long long stray_grace_ns;  /* how long an unknown flow is met with silence before a RST */
	unsigned long long netns;      /* cookie of the network namespace that this node is in */
	unsigned char address[16];     /* this node's own address, source of LCCP */
	unsigned short mss;            /* announced to clients: MTU less headers and LCCP overhead */
	unsigned short relay_port;     /* host order; the daemon's own listener on 127.0.0.1, 0: none */
	unsigned char rcv_wscale;      /* announced to clients */
	unsigned char protocol;        /* IP protocol of LCCP */
	unsigned char roles;           /* enum role */
	unsigned char also_macs;       /* how many of `also_mac` are set */
	unsigned char macs[MAX_INTERFACES][6];      /* of its interfaces; those beyond repeat the first */
	unsigned int ifindexes[MAX_INTERFACES];     /* the same; clients come by the first */
	unsigned char also_mac[ALSO_MACS][6]; /* frames to these are for this node as well */
	unsigned short resume_port;    /* host order; the resume agent's listener on 127.0.0.1, 0: none */
	unsigned char interfaces;      /* how many this node has, at most MAX_INTERFACES */
	unsigned char reserved;
	unsigned short data_servers;   /* how many the cluster has: what one CLAIM may cost */
	unsigned short slot;           /* of this node itself in data_servers; NO_DATA_SERVER: it has none */
	unsigned int hash_seed;        /* of the hashes of clients: see hash_client() */
	unsigned short reader_port;    /* host order; the listener on 127.0.0.1 of the agent that reads requests, 0: none */
	unsigned short reserved_half;
	unsigned int since_ms;         /* since when this connection server is in front: wall clock, as its timestamps have it; 0: ever */
	unsigned int lease;            /* so long a data server may speak that hears no connection server: see ds/fence.h; 1.05 ms each, 0: ever */
};

/* A service, or, with port 0, just a cluster address: what is malformed has no port to look up. */
struct service_key {
	unsigned int cluster;          /* short address */
	unsigned short be_port;
	unsigned short reserved;
};

enum service_flag {
	SERVICE_SPLIT_AT_ACK = 1, /* the server speaks first: adopt at the handshake's last ACK */
	SERVICE_PATHS = 4,        /* it has routes */
	SERVICE_HOSTS = 8,        /* some of them name hosts */
	SERVICE_DOWN = 16,        /* no pool of it has a data server */
	SERVICE_ASKS = 64,        /* a dispatcher on another node chooses its data servers */
	SERVICE_SIZES = 128,      /* large content has a pool of its own */
	SERVICE_RESUME = 256,     /* some responses can go on from another data server, should their own die */
	SERVICE_DIRECT = 512,     /* aware clients may send to their data servers themselves */
	SERVICE_RESUME_REST = 1024, /* with SERVICE_RESUME: those to requests that no route takes */
	SERVICE_TARGETS = 2048,   /* the path of a request decides something: it is read as servers read it */
	SERVICE_OWNER = 8192,     /* the owner of a connection sees to whose its further requests are: see ds/at_door.h */
	SERVICE_STAYS = 16384,    /* with SERVICE_OWNER: a connection never leaves the data server that has answered on it */
};

struct service {
	unsigned short id;             /* 0 .. MAX_SERVICES-1 */
	unsigned short pool;           /* of requests that no route takes */
	unsigned short flags;          /* enum service_flag */
	unsigned short large;          /* pool of large content, with SERVICE_SIZES */
};

enum policy {
	POLICY_TURN = 0,   /* walk the choices: round robin, weighted round robin, least loaded */
	POLICY_CLIENT = 1, /* index the choices by a hash of the client's address: Maglev */
	POLICY_PATH = 2,   /* index the choices by a hash of the request's path: Maglev, LARD */
};

/* A connection server as a data server sees it on its LAN. The value: its short address. */
struct sender_key {
	unsigned char mac[6];
	unsigned short reserved;
};

enum pool_flag {
	POOL_PER_REQUEST = 1, /* every request chooses; else the owner stays while it is a member */
	POOL_NOBODY = 2,      /* nobody answers for it: its choices are who can say so to clients, and none of them a member */
};

/* Data servers that can answer alike. */
struct pool {
	unsigned long long id;         /* of its name, for the next daemon; 0: there is none */
	unsigned int first_choice;     /* where the live bank begins in the choices map */
	unsigned int choices;          /* how many are set; 0: no DS */
	unsigned int hash_seed;        /* as settings have it */
	unsigned short generation;     /* another one: every connection chooses anew at its next request */
	unsigned char policy;          /* enum policy */
	unsigned char flags;           /* enum pool_flag */
	unsigned long long members[MAX_DATA_SERVERS / 64]; /* bit by index: who is among the choices */
};

/*
 * Hosts that routes name, for the longest match: the name backwards, in small letters. An exact name
 * ends with a 0, a wildcard (*.example.org) with its dot. The value: the host's number, from 1.
 */
struct host_key {
	unsigned int prefix_bits;      /* of what follows */
	unsigned char name[HOST_BYTES];
};

/*
 * Routes, for the longest match of the request target's first bytes. Host 0 is any. The value: a pool, or
 * NO_POOL for that of the service, in its lower half; above it the route's number, by which it is tallied,
 * and flags.
 */
struct route_key {
	unsigned int prefix_bits;      /* of what follows */
	unsigned short service;
	unsigned short host;
	unsigned char path[PATH_BYTES];
};

enum route_flag {
	ROUTE_POOL = 0xffff,       /* mask of the pool */
	ROUTE_NUMBER_SHIFT = 16,
	ROUTE_NUMBER = 0x1fff,     /* mask of the number, when shifted down */
	ROUTE_RESUME = 0x20000000, /* responses to its requests can go on from another data server */
	ROUTE_UNDECIDED = 0x80000000, /* there are rules on more than host and path: only the agent can say whose its requests are */
};

/* A path of large content: hash_path() makes its hash. */
struct large_key {
	unsigned long long path;
	unsigned int service;
	unsigned int reserved;
};

enum data_server_flag {
	DATA_SERVER_PRESENT = 1,
	DATA_SERVER_LOCAL = 2,     /* this very node */
	DATA_SERVER_ROUTED = 4,    /* client packets travel inside FORWARD: behind a router, or a CS itself */
	DATA_SERVER_DEAD = 8,      /* neither its daemon nor its program answers */
	DATA_SERVER_DEAF = 16,     /* it lives and refuses messages, because its clock is wrong */
	DATA_SERVER_ASKED_FOR = 32, /* of a dead one: the others are being asked whether they have its connections */
};

struct data_server {
	unsigned char address[16];
	unsigned char mac[6];          /* next hop */
	unsigned char source_mac[6];   /* of our interface towards it */
	unsigned int ifindex;
	unsigned char flags;           /* enum data_server_flag */
	unsigned char reserved;
	unsigned short channel;        /* index into channels; 0: messages to it are not numbered */
	unsigned char reserved_bytes[4];
	unsigned long long key[2];     /* of messages to it: the current one that this node shares with it */
};

/*
 * What this node shares with another one, by that one's short address; with itself as well, if its own programs send
 * to each other.
 */
struct peer_keys {
	unsigned long long key[2][2];  /* of messages between the two: [0] current, [1] previous (all zero: none) */
	unsigned int leads;            /* not 0: the other one has the secret, and may give commands of LCCP_LEADING */
	unsigned int is_cs;            /* not 0: it is a connection server */
};

/*
 * Messages that move a connection (ADOPT) are numbered, from each node to each other one, and
 * kept for a while: the sender's half of a channel,
 */
struct channel {
	unsigned int next;             /* number of the next message; its lower 16 bits are sent */
	unsigned int slots[WINDOW];    /* where in the outbox the last ones are, by number modulo WINDOW */
};

/* a message that was sent, */
struct posted {
	unsigned short channel;
	unsigned short sequence;
	unsigned int bytes;            /* of the frame; 0: it was too long to be kept */
	unsigned int ifindex;          /* the interface that it left by */
	unsigned int sent;             /* when: coarse monotonic clock >> SENT_SHIFT */
	unsigned char frame[OUTBOX_FRAME_BYTES];
};

/*
 * and the receiver's half: the last numbers that came, each at its number modulo WINDOW, and 16 bits of the message's tag. A
 * message that comes again has the same. Another one with this number has not: its sender has begun to count anew, or leads
 * here by another channel.
 */
struct inbox {
	unsigned short came[WINDOW];
	unsigned short tags[WINDOW];
};

struct tcb_key {
	unsigned char client[16];
	unsigned int cluster;          /* short address */
	unsigned short be_client_port;
	unsigned short be_cluster_port;
};

enum tcb_state {
	TCB_FIN = 1,      /* the client sent FIN */
	TCB_RST = 2,      /* the client sent RST */
	TCB_AT_DOOR = 4,  /* its owner judges and counts its requests: see ds/at_door.h */
	TCB_ADOPTING = 8, /* it went to its owner with ADOPT; nothing was answered yet */
	TCB_WAITING = 16, /* nothing of the response is acknowledged: it begins at last_ack */
	TCB_RESUMING = 64, /* the owner has the rest of the response, and waits for the connection */
};

/* What the CS remembers of one connection. With its map overhead 128 bytes. */
struct tcb {
	unsigned int request_seq;      /* where the request begins with which it went to its owner */
	unsigned int last_seq;         /* highest client byte seen + 1 */
	unsigned int last_ack;         /* highest acknowledgement seen */
	unsigned int seen;             /* last packet: coarse monotonic clock >> TICK_SHIFT */
	unsigned short owner;          /* index into data_servers */
	unsigned short previous;       /* who has it while its response moves: see cs/move.h; else NO_DATA_SERVER */
	unsigned short pool;           /* that its first request was routed to */
	unsigned short route;          /* number of the one that it took */
	unsigned short mss;
	unsigned char snd_wscale;
	unsigned char rcv_wscale;
	unsigned char options;         /* enum lccp_tcb_option */
	unsigned char state;           /* enum tcb_state */
	unsigned short reserved;
	unsigned int counted;          /* acknowledgement up to which response bytes were tallied; but for TCB_AT_DOOR */
};

/*
 * A request whose response may go on from another data server, as the client sent it. The owner keeps it (ds/keep_request.h),
 * and its daemon tells the connection servers' daemons.
 */
struct kept_request {
	unsigned int request_seq;      /* where it begins */
	unsigned int response_start;   /* sequence number of the response's first byte */
	unsigned short bytes;
	unsigned short pool;           /* where its owner sees to it: index here of the one that it is of, or NO_POOL */
	unsigned int reserved;
	unsigned char text[KEPT_BYTES];
};

/* How far the response on a connection has left its data server. */
enum response_state {
	RESPONSE_UNKNOWN = 0,          /* nobody can say where it ends */
	RESPONSE_FIRST = 1,            /* nothing has left yet */
	RESPONSE_COMPLETE = 2,         /* the next byte begins a response */
	RESPONSE_BODY = 3,             /* `left` more bytes are of it */
	/* A chunked body (RFC 9112, 7.1): */
	RESPONSE_CHUNK_SIZE = 4,       /* in the digits of a chunk's size */
	RESPONSE_CHUNK_EXTENSION = 5,  /* in the rest of that line */
	RESPONSE_CHUNK = 6,            /* `left` more bytes are of the chunk */
	RESPONSE_TRAILER_BEGIN = 7,    /* behind the last chunk, where a line begins */
	RESPONSE_TRAILER = 8,          /* inside such a line */
	RESPONSE_TRAILER_END = 9,      /* in the empty line that ends the response */
	RESPONSE_TUNNEL = 10,          /* 101 Switching Protocols: what follows is another one */
	RESPONSE_HEAD = 11,            /* in a head that is read byte by byte; `left` is the length that it has said */
	RESPONSE_CHUNK_END = 12,       /* in the end of line behind a chunk; `digits`: 1 behind its first byte */
};

/*
 * What a data server has seen of the responses on one connection. It is kept with the socket, and ends with it. Chunked
 * bodies of requests are followed in the same way.
 */
struct response {
	unsigned long long left;       /* see enum response_state */
	unsigned int next;             /* sequence number of the first byte that has not left yet */
	unsigned int start;            /* where the last response began */
	unsigned int asked;            /* sequence number behind the last byte of the client, */
	unsigned int answered;         /* and what it was when the last response began */
	unsigned char state;           /* enum response_state */
	unsigned char bodiless;        /* the next response is to HEAD, and has no body */
	unsigned char digits;          /* of a chunk's size, so far; and see RESPONSE_CHUNK_END */
	unsigned char responses;       /* how many have begun, modulo 256 */
	/* Of a head that is read byte by byte: */
	unsigned char line;            /* where in a line its next byte is (enum line_part) */
	unsigned char matched;         /* how many bytes of what is expected there have come */
	unsigned char said;            /* what its lines have said (enum head_said) */
	unsigned char closes;          /* of any response: 1: its connection ends with it, it says */
	unsigned short status;         /* the digits of it that have come */
	unsigned short reserved_half;
	unsigned int head_start;       /* sequence number of its first byte */
	unsigned int acknowledged;     /* to here its client has been told that its data has come, and the socket has less; 0: it has all */
	unsigned int reserved_word;
};

enum door_flag {
	DOOR_READING = 1,              /* the agent has the connection: it reads what one packet does not decide */
	DOOR_STAMPED = 2,              /* of these: its client's packets have timestamps */
	DOOR_OWES = 4,                 /* it has come from another socket of this node, and what that had is on its way here */
	DOOR_SWITCHES = 8,             /* its last request asks for another protocol: after 101 no requests come any more */
	DOOR_IN_BODY = 16,             /* what was let in last is no request, but more of a body: see ds/body.h */
	DOOR_BORN = 32,                /* of the map's: the connection's socket has got a door of its own */
	DOOR_NOBODY = 64,              /* of DOOR_READING: nobody answers for the pool of what was read, or there is none any more */
	DOOR_CHOSEN = 128,             /* of DOOR_READING: another data server has chosen this one: no dispatcher is asked again */
	DOOR_BROKEN = 256,             /* of DOOR_READING: what it begins with is a body that is none: the agent answers 400 */
};

/* How the body of a request is where it is not known any further. */
struct followed_body {
	unsigned long long left;       /* see enum response_state: */
	unsigned char state;           /* RESPONSE_COMPLETE: the next byte begins a request */
	unsigned char digits;          /* of a chunk's size, so far */
	unsigned char reserved[6];
};

/*
 * Where the requests of a connection begin and end, as its owner knows: see ds/door.h. It is kept with the socket, and ends
 * with it.
 */
struct door {
	struct followed_body body;     /* at `next`, */
	struct followed_body before;   /* and at `request`, with DOOR_IN_BODY */
	unsigned int request;          /* where the current request, which was let in last, begins, */
	unsigned int head_end;         /* its head ends, */
	unsigned int next;             /* and the next one is to begin */
	unsigned int since;            /* when it was let in: coarse monotonic clock >> SENT_SHIFT */
	unsigned short pool;           /* that it is of, */
	unsigned short generation;     /* as that was then */
	unsigned int asker;            /* short address of the CS that the connection came by last */
	unsigned char requests;        /* that were let in here, modulo 256 */
	unsigned char reserved;
	unsigned short route;          /* number of the one that the current request took */
	unsigned int busy;             /* 1: a processor has a packet at it, and others wait */
	unsigned int owed;             /* of DOOR_OWES: sequence number behind the last of it */
	unsigned int tsval;            /* of DOOR_STAMPED: the newest one */
	unsigned short be_window;      /* of DOOR_READING: as the client's last packet has it; */
	unsigned short be_cwnd;        /* as struct lccp_tcb has it: of the server's socket before */
	unsigned int counted;          /* acknowledgement up to which response bytes were tallied: see ds/tally.h */
	unsigned int heard;            /* when a packet of the client has come, as `since` counts: see ds/fence.h */
	unsigned short flags;          /* enum door_flag */
	unsigned short reserved_half;
};

/* When this data server heard connection servers, as struct door counts: see ds/fence.h. */
struct hearing {
	unsigned int heard;            /* any of them, last; 0: never */
	unsigned int since;            /* when it had heard none for a lease, last, or was told that it was taken for dead; 0: never */
};

/* A connection on its way from one socket of this node to another: see ds/reader.h. */
struct passing {
	struct door door;              /* of the new socket; its first packet begins with `request` */
	struct lccp_tcb tcb;
	unsigned short taken;          /* 1: that is there, or was: another packet begins none */
	unsigned short asks;           /* 1: it has no socket yet, and waits for a dispatcher's answer: see ds/awaits.h */
	unsigned int clock;            /* of the old socket's timestamps, less the monotonic clock: milliseconds */
	unsigned int ack;              /* what the client had acknowledged: all that had been sent */
	unsigned int reserved;
};

/* Of a connection of which the agent here keeps what it has read: what is known of the socket that it has now. See ds/kept.h. */
struct kept {
	unsigned int received;         /* it has all before this sequence number */
	unsigned int gone;             /* so often the connection was found nowhere */
};

enum read_limit {
	READ_BYTES_MOST = 60000,       /* from a request's first byte on the agent gets: what has been acknowledged must fit into the first
	                                  window of any new socket, which is 64 KB: there nobody would send it again */
};

enum read_flag {
	READ_SWITCHES = 1,             /* it asks for another protocol (Upgrade) */
	READ_CHUNKED = 2,              /* its body is in chunks */
	READ_ANSWERS = 4,              /* the agent answers it, and reads on until its client has heard that */
};

/* What the agent has read of the request that its socket's connection is at. In the storage of that socket, by the agent. */
struct have_read {
	unsigned int end;              /* sequence number behind all that has come, a FIN included */
	unsigned int head;             /* bytes of its head, */
	unsigned int body;             /* and behind that; 0: see `large`, and READ_CHUNKED */
	unsigned short pool;           /* that it is for; NO_POOL: that of the service */
	unsigned short flags;          /* enum read_flag */
	unsigned short route;          /* number of the one that leads there; with NO_POOL nothing */
	unsigned short reserved;
	unsigned int path[2];          /* hash of its path in its one spelling, lower word first; 0: there is none */
	unsigned int large[2];         /* bytes of its body, if that is longer than sequence numbers tell, lower word first */
};

/* Requests that a dispatcher on another node answers alike. */
struct answer_key {
	unsigned long long hash;       /* of host and path; 0: of no request */
	unsigned int client;           /* a hash of its address, where the pool's policy is by that, else 0 */
	unsigned short pool;
	unsigned short reserved;
};

/* What it said. */
struct answer {
	unsigned long long until;      /* coarse monotonic, ns */
	unsigned short owner;          /* index into data_servers; NO_DATA_SERVER: it names nobody who can serve, or says nothing */
	unsigned short reserved;
	unsigned int reserved_word;
};

/* The client's data that came too early, and waits: see ds/early.h. The bytes are behind it. */
struct early {
	struct answer_key asks;        /* with EARLY_ASKS: what is to be asked about its request */
	struct tcb_key flow;
	unsigned int seq;              /* of the first of them */
	unsigned int ack;              /* as the packet has it */
	unsigned int tsval;            /* with EARLY_STAMPED */
	unsigned short be_window;
	unsigned short flags;
	unsigned int bytes;
	unsigned int reserved;
};

enum early_flag {
	EARLY_STAMPED = 1,
	EARLY_ENDS = 2,                /* the client sends no more behind it (FIN) */
	EARLY_ASKS = 4,                /* a dispatcher is to be asked whose its request is, */
	EARLY_ONLY_ASKS = 8,           /* and it is the agent that sends it again */
	EARLY_UNACKNOWLEDGED = 16,     /* only an acknowledgement is missing: the client has been sent all that it is to acknowledge */
};

/* How a response begins, as it leaves its data server. */
struct seen_head {
	struct tcb_key flow;
	unsigned int response_start;   /* sequence number of its first byte */
	unsigned short bytes;
	unsigned short number;         /* which response of this data server on the connection, from 1 on, modulo 256 */
	unsigned char text[HEAD_BYTES];
};

/*
 * Where a connection was at rest, by the word of its owner: each of its requests had its whole response, and its client had all of
 * that. Whatever begins at `seq` and acknowledges up to `ack` begins a request, of whose response its client has nothing.
 */
struct quiet_point {
	unsigned int seq;
	unsigned int ack;
	unsigned int owner;            /* index of the data server that has told it */
};

/* An entry whose data server died in the middle of a response, or may have. */
struct orphan {
	struct tcb_key key;
	struct tcb tcb;
	unsigned int reserved;
};

/* Argument and result of the muster program, which finds orphans. */
struct muster {
	unsigned int owner;            /* index of the data server */
	unsigned int first;            /* so many are known from an earlier muster */
	unsigned int found;            /* result: how many there are, up to first + ORPHANS */
};

/* Argument and result of the change program: an entry in place, if it is as the daemon believes. */
struct change {
	struct tcb_key key;
	unsigned int request_seq;      /* if this is the current request */
	unsigned short owner;          /* and this the owner */
	unsigned short next;           /* then this one is, and there is none before it */
	unsigned char set;             /* enum tcb_state */
	unsigned char clear;
	unsigned short found;          /* result: 1 if that was so */
	struct tcb tcb;                /* result: the entry then; valid if found */
};

enum move_step {
	MOVE_BEGIN = 1,                /* it is to be the next one's, and goes by its last owner until it is */
	MOVE_BACK = 2,                 /* it stays where it was after all */
	MOVE_DONE = 3,                 /* the next one has it */
	MOVE_ORPHANED = 4,             /* its last owner has let go or is dead, and the next one has not got it */
};

/* Argument and result of the move program: an entry whose response is to go on at another data server. */
struct moving {
	struct tcb_key key;
	unsigned int request_seq;      /* if this is the current request, */
	unsigned short from;           /* and these its owners, before and after */
	unsigned short to;
	unsigned short step;           /* enum move_step */
	unsigned short found;          /* result: 1 if that was so */
	struct tcb tcb;                /* result: the entry then; valid if found */
};

/* Of a connection that a data server is about to give away: see ds/yield.h. */
struct yielding {
	unsigned long long since;      /* when its client's window was closed first: monotonic, ns */
	unsigned long long until;      /* so long it counts */
	unsigned int next;             /* short address of who is to have it */
	unsigned int asker;            /* and of the CS that wants that */
	unsigned short be_window;      /* what its client's last packet said of its window */
	unsigned short reserved;
	unsigned int reserved_word;
};

/* Where the tallies of each sort begin in their map. */
enum tally_place {
	TALLY_DATA_SERVERS = 0,
	TALLY_POOLS = MAX_DATA_SERVERS,
	TALLY_ROUTES = MAX_DATA_SERVERS + MAX_POOLS,
	TALLIES = MAX_DATA_SERVERS + MAX_POOLS + TALLIED_ROUTES,
};

/*
 * What a route, a pool or a data server had to do, as the CS decided: connections, requests that nobody answers, and what no
 * door counts. Those of a pool or route count the requests that are for it; those of a data server the ones it was given.
 */
struct tally {
	unsigned long long requests;
	unsigned long long bytes;      /* of responses, acknowledged by clients; a server's FIN is one more */
	unsigned long long connections; /* given to a data server: to adopt, or handed on */
	unsigned long long taken_back; /* of a data server's requests: another one answered them */
	unsigned long long unavailable; /* requests that nobody was there to answer */
};

/* Where the tallies of a data server's doors begin in their map. */
enum door_tally_place {
	DOOR_TALLY_ALL = 0,            /* of this data server; counted last, so that whoever finds it as it was has seen all */
	DOOR_TALLY_POOLS = 1,
	DOOR_TALLY_ROUTES = 1 + MAX_POOLS,
	DOOR_TALLIES = 1 + MAX_POOLS + TALLIED_ROUTES,
};

/* What a route, a pool or all of this data server had to do, as its doors decided. The members are as struct tally has them. */
struct door_tally {
	unsigned long long requests;   /* that were let in, and those of `unavailable` */
	unsigned long long bytes;
	unsigned long long handovers;  /* for the route and pool of the request with which the connection went */
	unsigned long long unavailable;
};

/* Of a flow nobody here knows. */
struct stray {
	unsigned long long first;      /* when its first packet came: coarse monotonic, ns */
	unsigned long long asked;      /* when the last CLAIM went out, or `first` */
	unsigned int walks;            /* how many did */
	unsigned int unclaimed;        /* not 0: the answer to the last was that nobody has it */
	unsigned int begins;           /* not 0: the last went out with all of the packet, which begins a connection if nobody has it */
	unsigned int reserved;
};

/* Tags of cookies with which connections have begun: see cookie_tag(). 0: none. */
struct used_cookies {
	unsigned int next;             /* where the next one goes, modulo USED_COOKIES_PER_SET */
	unsigned int tags[USED_COOKIES_PER_SET];
};

/* What speaks for a packet that nobody here knows. */
enum claim_class {
	CLAIM_PROVED = 0,
	CLAIM_LIKELY = 1,
	CLAIM_STRANGER = 2,
	CLAIM_CLASSES = 4,             /* a power of two above these */
};

/* How many messages the CLAIMs of one processor have caused in this tick. */
struct claims {
	unsigned int tick;
	unsigned int spent[CLAIM_CLASSES];
};

/* And those for one source. */
struct claim_source {
	unsigned int tick;
	unsigned int sent;
};

/* Of a connection that a data server gave away: the first request that is not its own any more. */
struct given {
	unsigned int seq;
	unsigned int tick;             /* when: coarse monotonic clock >> TICK_SHIFT */
	unsigned int next;             /* whom it was given to: short address */
	unsigned int asker;            /* the connection server by which it came: the same; 0: that is not known */
	struct lccp_tcb tcb;           /* its travelling part then */
	unsigned int clock;            /* of its timestamps, less the monotonic clock: milliseconds */
	unsigned int ack;              /* what its client had acknowledged: all that had been sent */
};

/* Of a service, at one of its data servers: whom CLAIM asks next, and how many are asked in all. */
struct ring {
	unsigned int next;             /* short address */
	unsigned short length;
	unsigned short missing;        /* how many others may have connections, but are not heard just now */
};

/* Of a hash: indices of connection servers at the switch. Two where one took the place of another lately. */
struct place {
	unsigned short now;            /* of connections that begin */
	unsigned short before;         /* of those that began before it came; else the same */
	unsigned int turn;             /* how often `now` has become another */
};

/* In front of a frame that waits, in its ring. */
struct held_frame {
	unsigned long long time;       /* when it came: coarse monotonic, ns */
	unsigned int interface;        /* where */
	unsigned int bytes;            /* of the frame, without padding */
};

/*
 * Until when requests wait here, because another connection server is about to take over; and once it knows
 * all that is known here, everything of clients goes there instead.
 */
struct hold {
	unsigned long long until;      /* coarse monotonic, ns; 0: they do not */
	unsigned int passes_on;        /* not 0: to `to` */
	unsigned int reserved;
	struct data_server to;         /* the way to it */
};

/* Argument and result of the sweep program, which expires TCB entries. */
struct sweep {
	unsigned int idle_ticks;       /* for open connections */
	unsigned int closing_ticks;    /* after FIN or RST */
	unsigned int live;             /* result: entries kept */
	unsigned int expired;          /* result: entries removed */
};

/* Of a connection whose socket is being made: what came with it. */
struct expected {
	unsigned short window;         /* congestion window, segments; 0: as of a new connection */
	unsigned char aware;           /* not 0: its client is to be told where this data server is */
	unsigned char bodiless;        /* not 0: its first response is to HEAD */
};

/* Who was refused for its clock last: the message's tag was right, so it is that node's, but maybe an old one. */
struct stale_sender {
	long long ahead_ns;            /* its clock less ours */
	unsigned long long seen_ns;    /* coarse monotonic clock */
};

/*
 * What programs have refused last of a node that the daemon knows: times are of the monotonic clock, ns, 0 for never.
 * Only the last of these had the right tag; the others are the word of whoever wrote that address.
 */
struct refused_node {
	unsigned long long bad_version_ns;
	unsigned long long bad_tag_ns;
	unsigned long long stale_ns;
	long long ahead_ns;            /* its clock less ours, with `stale_ns` */
	unsigned int version;          /* with `bad_version_ns` */
	unsigned int reserved;
};

/* What one sender may say to the daemon: messages a second, and so many at once after a pause. */
enum budget {
	BUDGET_COST_NS = 8192,         /* 122,000 a second */
	BUDGET_BURST_NS = 1 << 28,     /* 32,768 */
};

/* Every decision and every drop. Names are the metric's label: keep them stable. */
enum counter {
	/* all programs */
	COUNTER_BAD_IP,              /* lying lengths, header too short */
	COUNTER_BAD_TCP,
	COUNTER_FRAGMENT,            /* dropped: a fragment has no ports */
	COUNTER_NOT_LINEAR,          /* dropped: the driver left the headers where kernels before 6.18 cannot read them */
	COUNTER_LCCP_SHORT,
	COUNTER_LCCP_BAD_VERSION,
	COUNTER_LCCP_BAD_TAG,        /* not made under the key that this node shares with the sender, or changed on its way */
	COUNTER_LCCP_STRANGER,       /* from an address with which this node shares no key */
	COUNTER_LCCP_NOT_ALLOWED,    /* right tag, but the sender has only its own keys, and may not command that */
	COUNTER_LCCP_STALE,
	COUNTER_LCCP_UNKNOWN,        /* right tag, but no such command for this receptor */
	COUNTER_LCCP_MISMATCH,       /* header's flow and carried packet differ */
	COUNTER_LCCP_NOT_OURS,       /* for another node: flooded to this one as well */
	COUNTER_LCCP_TO_DAEMON,      /* verified, and passed on to the daemon's sockets */
	COUNTER_LCCP_OVER_BUDGET,    /* verified, but dropped: its sender says more to the daemon than it may */
	COUNTER_LCCP_SOCKET_FULL,    /* verified, but lost: one of the daemon's sockets had no room for it */
	COUNTER_LCCP_MISSED,         /* did not come, and was asked for again */
	COUNTER_LCCP_SENT_AGAIN,     /* asked for again, and was still there */
	COUNTER_LCCP_NOT_KEPT,       /* sent, but too long to be kept: should it be lost, the client sends again */
	COUNTER_LCCP_REPEATED,       /* came a second time, and its connection is not here any more */
	/* CS */
	COUNTER_CS_SYN,              /* answered */
	COUNTER_CS_SYN_BAD_OPTIONS,
	COUNTER_CS_HANDSHAKE_ACK,    /* dropped: the request follows */
	COUNTER_CS_PROBE,            /* a keep-alive probe before the first request: answered */
	COUNTER_CS_BEGUN_BEFORE,     /* first data with whose cookie a connection has begun already: it begins none */
	COUNTER_CS_ADOPT,            /* DM1 sent for a new entry */
	COUNTER_CS_ADOPT_AGAIN,      /* the request was retransmitted */
	COUNTER_CS_AWARE,            /* a new connection whose client will send to its data server itself */
	COUNTER_CS_FORWARD,
	COUNTER_CS_FORWARD_BYTES,
	COUNTER_CS_HELD,             /* a request that waits until another connection server takes over */
	COUNTER_CS_HELD_LOST,        /* dropped: it was to wait, and there was no room for it */
	COUNTER_CS_PASSED_ON,        /* a client's packet, to the connection server that takes over, or has */
	COUNTER_CS_JUMP,             /* a packet that is elsewhere than its entry, which stays as it is until the owner confirms it */
	COUNTER_CS_BEHIND_ADOPT,     /* sent after an ADOPT, the same way */
	COUNTER_CS_NONE,             /* a DS does not have a connection: it has gone on, and is asked for */
	COUNTER_CS_AHEAD,            /* came to its DS ahead of its connection: sent there again */
	COUNTER_CS_ADOPTED_MEANWHILE, /* dropped: its copy was first, on another processor */
	COUNTER_CS_NO_DATA_SERVER,   /* nobody to choose: reset */
	COUNTER_CS_OWNER_GONE,       /* the entry's owner is not configured any more: reset */
	COUNTER_CS_REFUSED,          /* a DS refused; tried the next */
	COUNTER_CS_REFUSED_BY_ALL,
	COUNTER_CS_STRAY,            /* unknown flow, within its grace */
	COUNTER_CS_STRAY_RESET,
	COUNTER_CS_CLAIM,            /* the data servers are asked who has a connection */
	COUNTER_CS_CLAIM_CUT,        /* of these, without the client's data: too much is asked that nothing speaks for */
	COUNTER_CS_CLAIM_LIMIT,      /* dropped: too many were asked for in this second, of which each showed a proof */
	COUNTER_CS_CLAIM_LIMIT_LIKELY, /* the same of those that are likely to have a connection */
	COUNTER_CS_CLAIM_LIMIT_STRANGER, /* the same of those that nothing speaks for */
	COUNTER_CS_CLAIM_LIMIT_SOURCE, /* dropped: many were asked for, and its network has had its share */
	COUNTER_CS_MOVED,            /* one has it: an entry was made */
	COUNTER_CS_MOVED_ON,         /* the owner has handed it to another one */
	COUNTER_CS_MOVED_FROM_DEAD,  /* the owner is dead, and another one says that it has it */
	COUNTER_CS_REST,             /* the owner has told that it is at rest */
	COUNTER_CS_UNCLAIMED,        /* none has */
	COUNTER_CS_ICMP,             /* an ICMP error about a response, passed to the owner */
	COUNTER_CS_FIN,
	COUNTER_CS_RST,
	COUNTER_CS_TCB_FULL,
	COUNTER_CS_TOO_BIG,          /* would not fit with LCCP around it */
	COUNTER_CS_MERGED,           /* forwarded: longer than the MTU, as GRO in front of generic XDP makes packets */
	COUNTER_CS_MERGED_LOST,      /* dropped: such a one whose owner is behind another interface */
	COUNTER_CS_NO_ROOM,          /* the driver leaves no room in the frame for an answer's headers */
	COUNTER_CS_ORPHAN_ADOPT,     /* a request whose data server is dead, or takes no messages: to another one */
	COUNTER_CS_ORPHAN_WAITS,     /* dropped: more of a connection whose response is to be resumed, or may be */
	COUNTER_CS_ORPHAN_RESET,     /* more of a connection whose response died with its data server */
	COUNTER_CS_RESUME,           /* an acknowledgement, to the data server that has the rest of a response */
	COUNTER_CS_DEAF,             /* a request again whose data server refuses messages: to be adopted by another one */
	COUNTER_CS_MOVE,             /* a response is to go on at another data server, because its own drains */
	COUNTER_CS_MOVE_VIA,         /* a packet of such a connection, by its last owner, who knows where it is */
	COUNTER_CS_MOVE_BACK,        /* one that stays after all */
	COUNTER_CS_MOVE_DONE,        /* one that the next data server has */
	COUNTER_CS_MOVE_ORPHANED,    /* one that neither has: to be resumed */
	COUNTER_CS_MOVE_LATE,        /* not so: something has happened on the connection meanwhile */
	COUNTER_CS_RESPONSE_BYTES,   /* from the cluster address through the CS: must stay 0 */
	/* DS */
	COUNTER_DS_ADOPTED,
	COUNTER_DS_WINDOW,           /* an adopted connection began with its last owner's congestion window */
	COUNTER_DS_TOLD,             /* an aware client is told where this data server is */
	COUNTER_DS_DIRECT,           /* a packet that a client sent here itself, inside another: unwrapped */
	COUNTER_DS_DIRECT_REFUSED,   /* dropped: one that is not whole, not in its sender's name, or a SYN */
	COUNTER_DS_ADOPTED_RELAY,    /* into the daemon's listener: the server's is MPTCP */
	COUNTER_DS_DUPLICATE,        /* ADOPT for a connection that is here already: delivered */
	COUNTER_DS_GIVEN,            /* ADOPT for one that was here and has moved on since: dropped */
	COUNTER_DS_ENDED_BEFORE,     /* ADOPT for one that was here and has ended: dropped */
	COUNTER_DS_TIME_WAIT_ENDED,
	COUNTER_DS_STALE_ENDED,      /* an older connection with the same ports */
	COUNTER_DS_STALE_KEPT,       /* dropped: a data server would have it end, and only a connection server knows that it has */
	COUNTER_DS_REFUSED,
	COUNTER_DS_FORWARDED,        /* unwrapped */
	COUNTER_DS_DELIVERED,        /* plain packets with a socket */
	COUNTER_DS_UNASSIGNED,       /* the kernel refused the socket (tcp_syncookies=0?) */
	COUNTER_DS_NO_WAY,           /* dropped: no way to another node is known, or the message did not leave */
	COUNTER_DS_AHEAD,            /* dropped: ADOPT of a request behind one that has not come */
	COUNTER_DS_RELEASED,         /* an idle connection, to another DS; the socket here ended */
	COUNTER_DS_RELEASE_REFUSED,  /* it is not idle, nobody else may have it, or there is no way to that one */
	COUNTER_DS_RELEASE_GONE,     /* it is not here (any more) */
	COUNTER_DS_REST,             /* its CS is told that it is at rest */
	COUNTER_DS_NONE,             /* a packet of no connection here, sent back to its CS */
	COUNTER_DS_NO_SOCKET,        /* dropped in silence: a RST is the CS's to send */
	COUNTER_DS_CLAIMED,          /* CLAIM for a connection that is here: delivered, and MOVED sent */
	COUNTER_DS_CLAIM_PASSED_ON,
	COUNTER_DS_UNCLAIMED,        /* the last to be asked: NONE sent */
	COUNTER_DS_ALIVE,            /* a connection server asked whether this host lives */
	COUNTER_DS_FENCED,           /* what a connection said that may be another's by now: a question to its client left instead */
	COUNTER_DS_RESUMED,          /* adopted into the agent that has the rest of a response */
	COUNTER_DS_YIELDING,         /* a response is to go on elsewhere: nothing new is sent from now on */
	COUNTER_DS_YIELD_CLOSED,     /* a client's packet, delivered with a closed window */
	COUNTER_DS_YIELDED,          /* its client has all that was sent: to the other data server */
	COUNTER_DS_YIELD_REFUSED,    /* it cannot go, or there is no way to the other data server */
	COUNTER_DS_YIELD_GONE,       /* it is not here (any more) */
	COUNTER_DS_YIELD_STOPPED,    /* it is to stay after all */
	COUNTER_DS_YIELD_ENDED,      /* its client has sent something: it stays */
	/* A connection that cannot move any more, because where its responses end is not known: */
	COUNTER_DS_RESPONSE_UNKNOWN, /* the framing of one is not understood */
	COUNTER_DS_RESPONSE_EARLIER, /* it had begun to answer before it was followed */
	COUNTER_DS_RESPONSE_GAP,     /* some has left where nobody saw it */
	COUNTER_DS_RESPONSE_NO_ROOM, /* the kernel had no memory to remember what was seen */
	COUNTER_DS_HEAD,             /* a response that could be resumed begins: its head was shown to the daemon */
	COUNTER_DS_HEAD_FULL,        /* it was not: no room in the ring */
	COUNTER_DS_REQUEST_KEPT,     /* a request whose response could go on from another data server */
	COUNTER_DS_REQUEST_TOO_LONG, /* it could not: longer than what is told of one */
	/* Of connections whose owner sees to whose each request is: see ds/at_door.h. */
	COUNTER_DS_DOOR_REQUEST,     /* a request is this data server's: let in */
	COUNTER_DS_DOOR_HANDED_ON,   /* or another's: the connection went there, and the socket here ended */
	COUNTER_DS_DOOR_FOLLOWED,    /* a packet of one that has gone: sent behind it */
	COUNTER_DS_DOOR_AGAIN,       /* or, if the connection went with it: as ADOPT once more, as the first one may have been lost */
	COUNTER_DS_DOOR_BACK,        /* or that one has died, and with this request the connection begins here once more */
	COUNTER_DS_DOOR_WITHHELD,    /* not yet: a request for another one, and the connection is not quiet */
	COUNTER_DS_DOOR_LATER,       /* not yet: something before it has not come */
	COUNTER_DS_DOOR_WAITS,       /* what of these comes again from user space; the rest its client sends again */
	COUNTER_DS_DOOR_NO_ROOM,     /* user space has no room for it */
	COUNTER_DS_DOOR_BROKEN,      /* dropped: it was to wait, and its TCP checksum is wrong */
	COUNTER_DS_DOOR_CAME,        /* dropped: it has waited, and its client has sent it again meanwhile */
	COUNTER_DS_DOOR_BATCH,       /* put back: TCP has not seen yet what came before it */
	COUNTER_DS_DOOR_CUT,         /* delivered up to where the next request begins; the rest not yet */
	COUNTER_DS_DOOR_UNRENEWED,   /* dropped: it has waited, and its acknowledgement or timestamps could not be brought up to date */
	COUNTER_DS_DOOR_CHANGED,     /* dropped: the current request again, with another content */
	COUNTER_DS_DOOR_READS,       /* its packet does not say whose a request is, or where that ends: the agent reads it */
	COUNTER_DS_DOOR_READ,        /* the agent has read one that is this data server's: its server has the connection */
	COUNTER_DS_DOOR_REPEATED,    /* what an agent has read and sends once more is here: that agent's node is told */
	COUNTER_DS_DOOR_RECEIVED,    /* and is told so (RECEIVED) */
	COUNTER_DS_DOOR_GONE,        /* or its connection is not here: that agent's node is told */
	COUNTER_DS_DOOR_UNREADABLE,  /* ended, or refused: one packet does not decide, and there is no agent */
	COUNTER_DS_DOOR_NOBODY,      /* nobody answers for the pool of a request that the agent has read: it says so */
	COUNTER_DS_DOOR_LAST,        /* dropped: a request that comes behind a response with which its connection ends */
	COUNTER_DS_DOOR_STAYS,       /* ended: the connection was to go, and nobody knows where its response ends */
	COUNTER_DS_DOOR_FIXED,       /* ended: a request for another pool, where connections stay with their data server */
	COUNTER_DS_DOOR_UNKNOWN,     /* ended: it is not known where the requests of this connection begin */
	COUNTER_DS_DOOR_ASKS,        /* not yet: a dispatcher on another node is asked whose a request is */
	COUNTER_DS_ANSWERED,         /* a choice that it made lately */
	COUNTER_DS_UNANSWERED,       /* it named nobody who can serve, or was late: chosen here */
	COUNTER_DS_ASKED,            /* a dispatcher on another node, by the daemon */
	COUNTER_DS_ASK_LATE,         /* not answered in time */
	COUNTER_DS_ASK_DEAD,         /* not asked, after many of those: chosen here */
	COUNTER_DS_ASK_STALE,        /* not asked, as the daemon gives no sign of life: the same */
	COUNTER_DS_ASK_LIE,          /* an answer that names nobody who can serve, or to no question */
	COUNTER_DS_RELAY_ANSWER,     /* a packet of a server in a container, to the relay's socket */
	/* switch */
	COUNTER_SWITCH_SYN,          /* a connection begins */
	COUNTER_SWITCH_FORWARD,      /* to the only connection server of its place */
	COUNTER_SWITCH_KEPT,         /* to the one that had its place before */
	COUNTER_SWITCH_BEGUN,        /* to the one with which it began, at such a place */
	COUNTER_SWITCH_ICMP,         /* an ICMP error about a response */
	COUNTER_SWITCH_PLAIN,        /* one of these, too big to travel inside another frame */
	COUNTER_SWITCH_NOBODY,       /* dropped: no connection server */
	COUNTER_SWITCH_NO_ROOM,      /* dropped: the driver leaves no room for another header */
	COUNTER_MAX,
};

struct counters {
	unsigned long long value[COUNTER_MAX];
};

#endif
