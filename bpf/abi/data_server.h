/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a data server remembers of connections: doors, responses, what its agent reads, and where connections have gone. */
#ifndef BATON_ABI_DATA_SERVER_H
#define BATON_ABI_DATA_SERVER_H

#include "abi/settings.h"

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
	DOOR_IN_BODY = 16,             /* what was let in last is no request, but more of a body: see data_server/door/body.h */
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
 * Where the requests of a connection begin and end, as its owner knows: see data_server/door/door.h. It is kept with the socket, and ends
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
	unsigned int counted;          /* acknowledgement up to which response bytes were tallied: see data_server/door/tally.h */
	unsigned int heard;            /* when a packet of the client has come, as `since` counts: see data_server/fence.h */
	unsigned short flags;          /* enum door_flag */
	unsigned short reserved_half;
};

/* When this data server heard connection servers, as struct door counts: see data_server/fence.h. */
struct hearing {
	unsigned int heard;            /* any of them, last; 0: never */
	unsigned int since;            /* when it had heard none for a lease, last, or was told that it was taken for dead; 0: never */
};

/* A connection on its way from one socket of this node to another: see data_server/agent/reader.h. */
struct passing {
	struct door door;              /* of the new socket; its first packet begins with `request` */
	struct lccp_tcb tcb;
	unsigned short taken;          /* 1: that is there, or was: another packet begins none */
	unsigned short asks;           /* 1: it has no socket yet, and waits for a dispatcher's answer: see data_server/door/awaits.h */
	unsigned int clock;            /* of the old socket's timestamps, less the monotonic clock: milliseconds */
	unsigned int ack;              /* what the client had acknowledged: all that had been sent */
	unsigned int reserved;
};

/* Of a connection of which the agent here keeps what it has read: what is known of the socket that it has now. See data_server/agent/kept.h. */
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

/* The client's data that came too early, and waits: see data_server/door/early.h. The bytes are behind it. */
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

/* Of a connection that a data server is about to give away: see data_server/handover/yield.h. */
struct yielding {
	unsigned long long since;      /* when its client's window was closed first: monotonic, ns */
	unsigned long long until;      /* so long it counts */
	unsigned int next;             /* short address of who is to have it */
	unsigned int asker;            /* and of the CS that wants that */
	unsigned short be_window;      /* what its client's last packet said of its window */
	unsigned short reserved;
	unsigned int reserved_word;
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

/* Of a connection whose socket is being made: what came with it. */
struct expected {
	unsigned short window;         /* congestion window, segments; 0: as of a new connection */
	unsigned char aware;           /* not 0: its client is to be told where this data server is */
	unsigned char bodiless;        /* not 0: its first response is to HEAD */
};

#endif
