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
	LCCP_VERSION = 1,
	LCCP_HEADER_BYTES = 80,
	LCCP_TAGGED_BYTES = 72,   /* the header without its tag */
	LCCP_OVERHEAD_BYTES = 100, /* what an outer IPv4 header and LCCP add to a client's packet */
	LCCP_MAX_BODY = 1024,
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
	LCCP_HANDOVER = 5, /* to the owner: give this connection to another DS; carries the client's request */
	LCCP_KEEP = 6,    /* the owner will not; carries the request back, which it has delivered itself */
	LCCP_NONE = 7,    /* nobody here has this connection; carries the client's packet back */
	LCCP_SYNC = 8,    /* daemon to daemon: the number of the last message sent to you (data) */
	LCCP_AGAIN = 9,   /* daemon to daemon: these did not come; the body is a list of be16 numbers */
	LCCP_CLAIM = 10,  /* who has this connection? From DS to DS until one has; carries the client's packet */
	LCCP_MOVED = 11,  /* it is here, and so is its travelling part; carries back the packet, delivered here */
	LCCP_QUERY = 12,  /* CS to dispatcher: which DS is to serve this request? Has a body */
	LCCP_REPLY = 13,  /* dispatcher to CS: this one. Has a body */
	LCCP_SIZES = 14,  /* daemon to daemon: paths whose content is large; has a body */
};

/*
 * lccp_header.data: of HANDOVER the short address of the next DS; of FORWARD that of the DS which has the
 * connection if the receiver has not, or 0; of ADOPT that of the CS which is to hear of a refusal; of
 * REFUSED and KEEP why; of CLAIM that of the CS which asks.
 */

enum lccp_refusal {
	LCCP_REFUSAL_NO_LISTENER = 1,
	LCCP_REFUSAL_NOT_ASSIGNED = 2, /* the kernel would not make a socket of it */
	LCCP_REFUSAL_NO_WAY = 3,       /* of a HANDOVER: let go here, and no way to the next DS is known */
};

enum lccp_keep {
	LCCP_KEEP_STATE = 1,           /* the connection is being closed */
	LCCP_KEEP_UNSENT = 2,          /* the client has not acknowledged all of the response */
	LCCP_KEEP_UNREAD = 3,          /* the server has not read all of the requests before */
	LCCP_KEEP_SEQUENCE = 4,        /* this is not the next byte: sent again, or one before is missing */
	LCCP_KEEP_NO_WAY = 5,          /* the owner knows no way to the next DS, nor to the CS */
};

/* lccp_tcb.options */
enum lccp_tcb_option {
	LCCP_TCB_SACK = 1,
	LCCP_TCB_WSCALE = 2,
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
	unsigned char attempt;         /* how many DSs have refused this request, or were asked by CLAIM, before */
	unsigned short be_cwnd;        /* the owner's congestion window, segments; 0: as of a new connection */
	unsigned long long be_resume;  /* response bytes the client already has */
};

/* Then: `be_body_length` bytes of body under the tag, or (body length 0) the client's packet. */
struct lccp_header {
	unsigned char version;
	unsigned char receptor;
	unsigned char command;
	unsigned char flags;           /* 0; a receiver ignores bits it does not know */
	unsigned short be_body_length;
	unsigned short be_sequence;    /* of ADOPT and HANDOVER from this sender to this receiver; 0: none */
	struct lccp_flow flow;
	unsigned int be_data;          /* by command */
	struct lccp_tcb tcb;
	unsigned long long be_clock;   /* the sender's wall clock, nanoseconds since 1970 */
	unsigned long long be_tag;     /* SipHash-2-4 of the 72 bytes before, then of the body */
};

enum lccp_health {
	LCCP_HEALTH_UNKNOWN = 0,
	LCCP_HEALTH_PASSING = 1,
	LCCP_HEALTH_FAILING = 2,
};

/* Body of HELLO: this, then `be_services` times a struct lccp_hello_service. */
struct lccp_hello {
	unsigned long long be_incarnation; /* start of the sending daemon, nanoseconds since 1970 */
	unsigned short be_cpu_permille;
	unsigned short be_services;
	unsigned int reserved;
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

/*
 * Body of SIZES: this, then `be_paths` hashes of paths (be64). All parts of one generation together are
 * what is large at the sender; another generation replaces them.
 */
struct lccp_sizes {
	unsigned char cluster[16];
	unsigned long long be_generation;
	unsigned short be_port;
	unsigned short be_part;        /* from 0 */
	unsigned short be_parts;
	unsigned short be_paths;       /* in this part */
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
	MAX_PEERS = 512,               /* nodes of all roles */
	WINDOW = 256,                  /* messages of a channel that its two ends remember */
	OUTBOX = 2048,                 /* messages of all channels that can be sent again */
	OUTBOX_FRAME_BYTES = 1600,
	CHOICES_PER_POOL = 16381,      /* prime: the Maglev table size */
	CHOICE_BANKS = 2,              /* one is read while the daemon writes the other */
	STRAYS = 4096,
	CLAIMS_PER_TICK = 16384,       /* of each processor: what a flood of forged packets can cause */
	BEGUN_FLOWS = 131072,          /* connections that the switch has to remember one by one */
	PUNT_FRAME_BYTES = 2272,       /* longest frame that user space is shown */
	PUNT_RING_BYTES = 1 << 21,     /* a power of two, and so many frames wait at most */
	PUNT_FLOWS = 4096,             /* new connections whose first request user space may have */
	ANSWERS = 16384,               /* of a dispatcher on another node, remembered */
	PUNT_PATIENCE_NS = 100000000,  /* so long a sign of life of user space counts */
	PUNT_WAIT_NS = 1000000000,     /* so long a new connection may wait for its first request */
	ADOPT_ATTEMPTS = 8,            /* then the request counts as refused by all */
	TICK_SHIFT = 30,               /* a tick is 2^30 ns: 1.07 s, and no division to get it */
	TALLIED_ROUTES = 2048,         /* numbers of routes; below MAX_SERVICES: what no route of a service takes */
	TALLY_KEEPS = 8,               /* a power of two above enum lccp_keep */
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
	MARK_REQUEUED = 0x6261746f,
};

/* Index 0 of an array map. Keys: [0] current, [1] previous (all zero: none). */
struct settings {
	unsigned long long cookie_key[2][2];
	unsigned long long lccp_key[2][2];
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
	unsigned char reserved;
	unsigned char mac[6];          /* of this node's interface */
	unsigned short reserved_word;
};

/* A service, or, with port 0, just a cluster address: what is malformed has no port to look up. */
struct service_key {
	unsigned int cluster;          /* short address */
	unsigned short be_port;
	unsigned short reserved;
};

enum service_flag {
	SERVICE_SPLIT_AT_ACK = 1, /* the server speaks first: adopt at the handshake's last ACK */
	SERVICE_HANDOVER = 2,     /* HTTP/1: every request may be another data server's */
	SERVICE_PATHS = 4,        /* it has routes */
	SERVICE_HOSTS = 8,        /* some of them name hosts */
	SERVICE_DOWN = 16,        /* no pool of it has a data server */
	SERVICE_PUNTS = 32,       /* some of its requests are user space's to judge */
	SERVICE_ASKS = 64,        /* a dispatcher on another node chooses its data servers */
	SERVICE_SIZES = 128,      /* large content has a pool of its own */
};

struct service {
	unsigned short id;             /* 0 .. MAX_SERVICES-1 */
	unsigned short pool;           /* of requests that no route takes */
	unsigned char flags;           /* enum service_flag */
	unsigned char reserved;
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
};

/* Data servers that can answer alike. */
struct pool {
	unsigned long long id;         /* of its name, for the next daemon; 0: there is none */
	unsigned int first_choice;     /* where the live bank begins in the choices map */
	unsigned int choices;          /* how many are set; 0: no DS */
	unsigned int hash_seed;
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
	ROUTE_NUMBER = 0x3fff,     /* mask of the number, when shifted down */
	ROUTE_PUNTS = 0x40000000,  /* user space may decide otherwise: rules on more than host and path */
};

/* A path of large content: see find_large() for its hash. */
struct large_key {
	unsigned long long path;
	unsigned int service;
	unsigned int reserved;
};

enum data_server_flag {
	DATA_SERVER_PRESENT = 1,
	DATA_SERVER_LOCAL = 2,     /* this very node */
	DATA_SERVER_ROUTED = 4,    /* client packets travel inside FORWARD: behind a router, or a CS itself */
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
};

/*
 * Messages that move a connection (ADOPT, HANDOVER) are numbered, from each node to each other one, and
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
	unsigned char frame[OUTBOX_FRAME_BYTES];
};

/* and the receiver's half: the last numbers that came, each at its number modulo WINDOW. */
struct inbox {
	unsigned short came[WINDOW];
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
	TCB_PINNED = 4,   /* the owner stays: where a request begins is not sure, or no handover is wanted */
	TCB_ADOPTING = 8, /* the current request went out with ADOPT or HANDOVER; nothing was answered yet */
	TCB_WAITING = 16, /* nothing of the response to the current request is acknowledged: it begins at last_ack */
	TCB_PUNTED = 32,  /* user space has the next request; what comes after it goes the same way */
};

/* What the CS remembers of one connection. With its map overhead 128 bytes: see ARCHITECTURE. */
struct tcb {
	unsigned int request_seq;      /* where the current request begins */
	unsigned int last_seq;         /* highest client byte seen + 1 */
	unsigned int last_ack;         /* highest acknowledgement seen */
	unsigned int seen;             /* last packet: coarse monotonic clock >> TICK_SHIFT */
	unsigned short owner;          /* index into data_servers */
	unsigned short previous;       /* who had it before the last handover, or NO_DATA_SERVER */
	unsigned short pool;           /* that the current request was routed to */
	unsigned short generation;     /* of the pool when it chose the owner */
	unsigned short mss;
	unsigned char snd_wscale;
	unsigned char rcv_wscale;
	unsigned char options;         /* enum lccp_tcb_option */
	unsigned char state;           /* enum tcb_state */
	unsigned short route;          /* number of the one that the current request took */
	unsigned int next_request;     /* where the next request begins: behind the current one and its body */
	unsigned int counted;          /* acknowledgement up to which response bytes were tallied */
};

/* Where the tallies of each sort begin in their map. */
enum tally_place {
	TALLY_DATA_SERVERS = 0,
	TALLY_POOLS = MAX_DATA_SERVERS,
	TALLY_ROUTES = MAX_DATA_SERVERS + MAX_POOLS,
	TALLIES = MAX_DATA_SERVERS + MAX_POOLS + TALLIED_ROUTES,
};

/*
 * What a route, a pool or a data server had to do, as the CS decided. Those of a pool or route count the
 * requests that are for it; those of a data server the ones it was given. Handovers are counted for the
 * route and pool of the request, and for the owner that was asked.
 */
struct tally {
	unsigned long long requests;
	unsigned long long bytes;      /* of responses, acknowledged by clients; a server's FIN is one more */
	unsigned long long handovers;  /* tried */
	unsigned long long connections; /* given to a data server: to adopt, or handed over */
	unsigned long long taken_back; /* of a data server's requests: another one answered them */
	unsigned long long none;       /* handovers that were not made, as it turned out (NONE) */
	unsigned long long unavailable; /* requests that nobody was there to answer */
	unsigned long long kept[TALLY_KEEPS]; /* handovers refused, by enum lccp_keep */
};

/* Of a flow nobody here knows. */
struct stray {
	unsigned long long first;      /* when its first packet came: coarse monotonic, ns */
	unsigned long long asked;      /* when the last CLAIM went out, or `first` */
	unsigned int walks;            /* how many did */
	unsigned int unclaimed;        /* not 0: the answer to the last was that nobody has it */
};

/* How many CLAIMs one processor has sent in this tick. */
struct claims {
	unsigned int tick;
	unsigned int sent;
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
};

/* Requests that a dispatcher on another node answers alike. */
struct answer_key {
	unsigned long long hash;       /* of host and path; 0: of no request */
	unsigned int client;           /* a hash of its address, where the pool's policy is by that, else 0 */
	unsigned short pool;           /* NO_POOL: user space decides that first */
	unsigned short reserved;
};

/* What it said. */
struct answer {
	unsigned long long until;      /* coarse monotonic, ns */
	unsigned short owner;          /* index into data_servers */
	unsigned short reserved;
	unsigned int reserved_word;
};

/* A frame that is user space's to judge, in the ring. */
struct punted {
	struct answer_key key;         /* `hash` is 0 where nobody need be asked */
	unsigned long long time;       /* when it came: coarse monotonic, ns */
	unsigned int interface;        /* where */
	unsigned short service;        /* struct service.id */
	unsigned short bytes;          /* of the frame, without padding */
	unsigned char frame[PUNT_FRAME_BYTES];
};

enum verdict_mark {
	VERDICT_MARK = 0x76657264,
};

/*
 * What user space found. It stands in front of its frame, as XDP metadata, when that is run through the
 * program again: so it is of exactly this packet, and a packet that has one is never punted again.
 */
struct verdict {
	unsigned int mark;             /* VERDICT_MARK */
	unsigned short pool;           /* or NO_POOL: that of the service */
	unsigned short route;          /* the number of the one that leads there; without a pool of no meaning */
	unsigned short owner;          /* or NO_DATA_SERVER: choose one */
	unsigned short reserved;
};

/* Argument and result of the sweep program, which expires TCB entries. */
struct sweep {
	unsigned int idle_ticks;       /* for open connections */
	unsigned int closing_ticks;    /* after FIN or RST */
	unsigned int live;             /* result: entries kept */
	unsigned int expired;          /* result: entries removed */
};

/* Who was refused for its clock last: the message's tag was right, but not the address it came from. */
struct stale_sender {
	long long ahead_ns;            /* its clock less ours */
	unsigned long long seen_ns;    /* coarse monotonic clock */
};

/* Every decision and every drop. Names are the metric's label: keep them stable. */
enum counter {
	/* all programs */
	COUNTER_BAD_IP,              /* lying lengths, header too short */
	COUNTER_BAD_TCP,
	COUNTER_FRAGMENT,            /* dropped: a fragment has no ports */
	COUNTER_LCCP_SHORT,
	COUNTER_LCCP_BAD_VERSION,
	COUNTER_LCCP_BAD_TAG,
	COUNTER_LCCP_STALE,
	COUNTER_LCCP_UNKNOWN,        /* right tag, but no such command for this receptor */
	COUNTER_LCCP_MISMATCH,       /* header's flow and carried packet differ */
	COUNTER_LCCP_TO_DAEMON,
	COUNTER_LCCP_MISSED,         /* did not come, and was asked for again */
	COUNTER_LCCP_SENT_AGAIN,     /* asked for again, and was still there */
	COUNTER_LCCP_REPEATED,       /* came a second time, and its connection is not here any more */
	/* CS */
	COUNTER_CS_SYN,              /* answered */
	COUNTER_CS_SYN_BAD_OPTIONS,
	COUNTER_CS_HANDSHAKE_ACK,    /* dropped: the request follows */
	COUNTER_CS_ADOPT,            /* DM1 sent for a new entry */
	COUNTER_CS_ADOPT_AGAIN,      /* the request was retransmitted */
	COUNTER_CS_FORWARD,
	COUNTER_CS_FORWARD_BYTES,
	COUNTER_CS_REQUEST,          /* a further request on a connection that may move */
	COUNTER_CS_PINNED,           /* a connection that can move no more */
	COUNTER_CS_UNMOVED,          /* a request for another data server that cannot move, as with a body */
	COUNTER_CS_HANDOVER,         /* sent to an owner */
	COUNTER_CS_HANDOVER_AGAIN,   /* the request was retransmitted */
	COUNTER_CS_QUEUED,           /* sent after a HANDOVER, the same way */
	COUNTER_CS_KEPT,             /* an owner refused a handover */
	COUNTER_CS_NONE,             /* a DS does not have a connection: back to the one before */
	COUNTER_CS_PUNTED,           /* a request that user space is to judge */
	COUNTER_CS_PUNTED_BEHIND,    /* sent after such a one, the same way */
	COUNTER_CS_PUNT_DECIDED,     /* came back with a verdict, which was followed */
	COUNTER_CS_ANSWERED,         /* a choice that a dispatcher on another node made lately */
	COUNTER_CS_ASKED,            /* a dispatcher on another node, by the daemon */
	COUNTER_CS_ASK_LATE,         /* not answered in time: chosen here */
	COUNTER_CS_ASK_DEAD,         /* not asked, after many of those: the same */
	COUNTER_CS_ASK_LIE,          /* an answer that names nobody who can serve, or to no question: the same */
	COUNTER_CS_PUNT_FULL,        /* no room in the ring: decided by host and path alone */
	COUNTER_CS_PUNT_STALE,       /* no sign of life of user space: the same */
	COUNTER_CS_PUNT_TOO_BIG,     /* longer than a place in the ring: the same */
	COUNTER_CS_NO_DATA_SERVER,   /* nobody to choose: reset */
	COUNTER_CS_UNAVAILABLE,      /* the same for a request of HTTP: answered with 503 */
	COUNTER_CS_OWNER_GONE,       /* the entry's owner is not configured any more: reset */
	COUNTER_CS_REFUSED,          /* a DS refused; tried the next */
	COUNTER_CS_REFUSED_BY_ALL,
	COUNTER_CS_STRAY,            /* unknown flow, within its grace */
	COUNTER_CS_STRAY_RESET,
	COUNTER_CS_CLAIM,            /* the data servers are asked who has a connection */
	COUNTER_CS_CLAIM_LIMIT,      /* dropped: too many were asked in this second */
	COUNTER_CS_MOVED,            /* one has it: an entry was made */
	COUNTER_CS_UNCLAIMED,        /* none has */
	COUNTER_CS_ICMP,             /* an ICMP error about a response, passed to the owner */
	COUNTER_CS_FIN,
	COUNTER_CS_RST,
	COUNTER_CS_TCB_FULL,
	COUNTER_CS_TOO_BIG,          /* would not fit with LCCP around it */
	COUNTER_CS_NO_ROOM,          /* the driver leaves no room in the frame for an answer's headers */
	COUNTER_CS_RESPONSE_BYTES,   /* from the cluster address through the CS: must stay 0 */
	/* DS */
	COUNTER_DS_ADOPTED,
	COUNTER_DS_WINDOW,           /* an adopted connection began with its last owner's congestion window */
	COUNTER_DS_ADOPTED_RELAY,    /* into the daemon's listener: the server's is MPTCP */
	COUNTER_DS_DUPLICATE,        /* ADOPT for a connection that is here already: delivered */
	COUNTER_DS_TIME_WAIT_ENDED,
	COUNTER_DS_STALE_ENDED,      /* an older connection with the same ports */
	COUNTER_DS_REFUSED,
	COUNTER_DS_FORWARDED,        /* unwrapped */
	COUNTER_DS_DELIVERED,        /* plain packets with a socket */
	COUNTER_DS_UNASSIGNED,       /* the kernel refused the socket (tcp_syncookies=0?) */
	COUNTER_DS_HANDED_OVER,      /* to another DS; the socket here ended */
	COUNTER_DS_PASSED_ON,        /* HANDOVER or FORWARD of a connection that is not here (any more) */
	COUNTER_DS_NO_WAY,           /* one of these two, but no way to the next DS is known: back to the CS */
	COUNTER_DS_KEPT_STATE,       /* handovers refused, by enum lccp_keep */
	COUNTER_DS_KEPT_UNSENT,
	COUNTER_DS_KEPT_UNREAD,
	COUNTER_DS_KEPT_SEQUENCE,
	COUNTER_DS_KEPT_NO_WAY,
	COUNTER_DS_NONE,             /* a packet of no connection here, sent back to its CS */
	COUNTER_DS_NO_SOCKET,        /* dropped in silence: a RST is the CS's to send */
	COUNTER_DS_CLAIMED,          /* CLAIM for a connection that is here: delivered, and MOVED sent */
	COUNTER_DS_CLAIM_PASSED_ON,
	COUNTER_DS_UNCLAIMED,        /* the last to be asked: NONE sent */
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
