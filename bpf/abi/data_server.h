/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a data server remembers about connections: their doors and responses, what the agent reads of them, and where
 * they have gone.
 */
#ifndef BATON_ABI_DATA_SERVER_H
#define BATON_ABI_DATA_SERVER_H

#include "abi/settings.h"

/* How far the response on a connection has left its data server. */
enum response_state {
	RESPONSE_UNKNOWN = 0,          /* nobody can say where it ends */
	RESPONSE_FIRST = 1,            /* nothing has left yet */
	RESPONSE_COMPLETE = 2,         /* the next byte begins a response */
	RESPONSE_BODY = 3,             /* `left` more bytes belong to it */
	/* A chunked body (RFC 9112, 7.1): */
	RESPONSE_CHUNK_SIZE = 4,       /* in the digits of a chunk's size */
	RESPONSE_CHUNK_EXTENSION = 5,  /* in the rest of that line */
	RESPONSE_CHUNK = 6,            /* `left` more bytes belong to the chunk */
	RESPONSE_TRAILER_BEGIN = 7,    /* behind the last chunk, where a line begins */
	RESPONSE_TRAILER = 8,          /* inside such a line */
	RESPONSE_TRAILER_END = 9,      /* in the empty line that ends the response */
	RESPONSE_TUNNEL = 10,          /* 101 Switching Protocols: what follows is another protocol */
	RESPONSE_HEAD = 11,            /* in a head that is read byte by byte; `left` is the body's length that it
	                                  has named */
	RESPONSE_CHUNK_END = 12,       /* in the end of line behind a chunk; `digits` is 1 behind its first byte */
};

/*
 * What a data server has seen of the responses on one connection. It is kept with the socket, and ends with it. Bodies
 * of requests are followed by the same states: struct followed_body.
 */
struct response {
	unsigned long long left;       /* see enum response_state */
	unsigned int next;             /* sequence number of the first byte that has not left yet */
	unsigned int start;            /* where the last response began */
	unsigned int asked;            /* sequence number behind the client's last byte that the socket was given */
	unsigned int answered;         /* what `asked` was when the last response began */
	unsigned char state;           /* enum response_state */
	unsigned char bodiless;        /* the next response is to HEAD, and has no body */
	unsigned char digits;          /* digits of a chunk's size so far; for RESPONSE_CHUNK_END see there */
	unsigned char responses;       /* how many have begun, modulo 256 */
	/* These describe a head that is read byte by byte, except `closes` and `acknowledged`: */
	unsigned char line;            /* the part of a line that the next byte belongs to (enum line_part) */
	unsigned char matched;         /* how many bytes of the expected text have come */
	unsigned char said;            /* what the lines so far have said (enum head_said) */
	unsigned char closes;          /* 1: the connection ends with the last response */
	unsigned short status;         /* status code, from the digits that have come so far */
	unsigned short reserved_half;
	unsigned int head_start;       /* sequence number of the head's first byte */
	unsigned int acknowledged;     /* the client was sent an acknowledgement of its data up to here, and the
	                                  socket does not have all of that; 0: it has */
	unsigned int ahead;            /* sequence number behind what has left ahead of a head that was dropped before
	                                  the program saw it; 0: nothing has */
};

enum door_flag {
	DOOR_READING = 1,              /* the agent has the connection: it reads what one packet does not decide */
	DOOR_STAMPED = 2,              /* with DOOR_READING: the client's packets have timestamps */
	DOOR_FROM_AGENT = 4,           /* the current request is the one that the agent has read and given back */
	DOOR_SWITCHES = 8,             /* the last request asks for another protocol: after status 101 no more
	                                  requests come */
	DOOR_IN_BODY = 16,             /* what was let in last is not a request but more of a body: see
	                                  data_server/door/body.h */
	DOOR_BORN = 32,                /* for an entry of the map `doors_begun`: the connection's socket has a door
	                                  of its own by now */
	DOOR_NOBODY = 64,              /* with DOOR_READING: no data server can take the request that was read, so the
	                                  agent answers 503 */
	DOOR_CHOSEN = 128,             /* with DOOR_READING: another data server has chosen this one, so no
	                                  dispatcher is asked again */
	DOOR_BROKEN = 256,             /* with DOOR_READING: the data begins with a malformed body, so the agent
	                                  answers 400 */
	DOOR_LEFT = 512,               /* the connection has left this socket, at `since`: the RST that ends the socket
	                                  is on its way to TCP */
};

/* What is known about a request's body at the last byte that could be read of it. */
struct followed_body {
	unsigned long long left;       /* see enum response_state */
	unsigned char state;           /* enum response_state; RESPONSE_COMPLETE: the next byte begins a request */
	unsigned char digits;          /* digits of a chunk's size so far */
	unsigned char reserved[6];
};

/*
 * Where the requests of a connection begin and end, as its owner knows: see data_server/door/door.h. A door is kept
 * with the socket and ends with it.
 */
struct door {
	struct followed_body body;     /* the body that is followed, at `next` */
	struct followed_body before;   /* the same at `request`, with DOOR_IN_BODY */
	unsigned int request;          /* where what was let in last begins: the current request, or with DOOR_IN_BODY
	                                  more of its body */
	unsigned int head_end;         /* where the head of the current request ends; with DOOR_IN_BODY: how far its
	                                  body was read. Nothing behind it passes before TCP has accepted it */
	unsigned int next;             /* where the next request is to begin; if a body is followed: how far that is
	                                  known */
	unsigned int since;            /* when something was let in last, or the door began: coarse monotonic clock >>
	                                  SENT_SHIFT */
	unsigned short pool;           /* that the current request is for; NO_POOL: none was judged here yet */
	unsigned short generation;     /* of that pool, when the request was let in */
	unsigned int asker;            /* short address of the CS by which the connection came last */
	unsigned char requests;        /* how many were let in here, modulo 256 */
	unsigned char attempt;         /* how often the connection was sent on before it came here; it counts until a
	                                  request was let in */
	unsigned short route;          /* number of the route that the current request took */
	unsigned int busy;             /* 1: a processor handles a packet at this door, and other processors wait */
	unsigned int owed;             /* with `owes`: sequence number behind the last byte that is on its way */
	unsigned int tsval;            /* with DOOR_STAMPED: the newest timestamp value */
	unsigned short be_window;      /* with DOOR_READING: the window in the client's last packet */
	unsigned short be_cwnd;        /* congestion window of the server's earlier socket, as in struct lccp_tcb */
	unsigned int counted;          /* acknowledgement up to which response bytes were tallied: see
	                                  data_server/door/tally.h; with DOOR_READING: sequence number of the first
	                                  byte that the agent's socket would send */
	unsigned int heard;            /* when a packet of the client came last, in the unit of `since`: see
	                                  data_server/fence.h */
	unsigned short flags;          /* enum door_flag */
	unsigned char owes;            /* 1: the connection has come from another socket of this node, and that socket's
	                                  data is still on its way here. No flag: it is cleared without the door taken */
	unsigned char reserved;
};

/* When this data server heard connection servers, in the unit of struct door's `since`: see data_server/fence.h. */
struct hearing {
	unsigned int heard;            /* when it last heard any connection server; 0: never */
	unsigned int silence;          /* when the last silence began: a lease after one was heard last, or when this node
	                                  was told that it was taken for dead; 0: there was none, or it was 20 hours
	                                  ago */
};

/*
 * A connection on its way from one socket of this node to another, or that has no socket yet (`asks`): see
 * data_server/agent/reader.h.
 */
struct passing {
	struct door door;              /* the door of the new socket, whose first packet begins at `request` */
	struct lccp_tcb tcb;
	unsigned int asks;             /* 1: there is no socket yet, because a dispatcher is asked first: see
	                                  data_server/door/awaits.h */
	unsigned int clock;            /* clock of the old socket's timestamps less the monotonic clock, milliseconds */
	unsigned int ack;              /* what the client had acknowledged, which is all that had been sent */
	unsigned int reserved;
};

/*
 * What is known about the current socket of a connection for which the agent here still keeps data that it has read:
 * see data_server/agent/kept.h.
 */
struct kept {
	unsigned int received;         /* the socket has all data before this sequence number */
	unsigned int gone;             /* how often the connection was found nowhere */
};

enum read_limit {
	READ_BYTES_MOST = 60000,       /* how much the agent gets from a request's first byte on. What has been
	                                  acknowledged must fit into the first window of any new socket, which is 64
	                                  KB, because nobody would send it again there */
};

enum read_flag {
	READ_SWITCHES = 1,             /* the request asks for another protocol (Upgrade) */
	READ_CHUNKED = 2,              /* the body of the request is chunked */
	READ_ANSWERS = 4,              /* the agent answers the request, and reads on until the client has
	                                  acknowledged the answer */
};

/*
 * What the agent has read of the current request on its socket's connection. The agent writes it to that socket's
 * storage.
 */
struct have_read {
	unsigned int end;              /* sequence number behind all data that has come, including a FIN */
	unsigned int head;             /* bytes of the request's head */
	unsigned int body;             /* bytes of the body; 0: see `large` and READ_CHUNKED */
	unsigned short pool;           /* that the request is for; NO_POOL: the pool of the service */
	unsigned short flags;          /* enum read_flag */
	unsigned short route;          /* number of the route that leads to the pool; without meaning with NO_POOL */
	unsigned short reserved;
	unsigned int path[2];          /* hash of the normalised path, lower word first; 0: there is no path */
	unsigned int large[2];         /* bytes of a body that is longer than sequence numbers can tell, lower word
	                                  first */
};

/* Identifies the requests that a dispatcher on another node answers alike. */
struct answer_key {
	unsigned long long hash;       /* of host and path; 0: the key stands for no request */
	unsigned int client;           /* hash of the client's address if the pool's policy uses it, else 0 */
	unsigned short pool;
	unsigned short reserved;
};

/* A dispatcher's answer. */
struct answer {
	unsigned long long until;      /* how long it is valid: coarse monotonic clock, ns */
	unsigned short owner;          /* index into data_servers; NO_DATA_SERVER: it names no data server that can
	                                  serve, or there is no answer */
	unsigned short reserved;
	unsigned int reserved_word;
};

/* The header of a client's data that came too early and waits: see data_server/door/early.h. The bytes follow it. */
struct early {
	struct answer_key asks;        /* with EARLY_ASKS: the question to the dispatcher about the request */
	struct tcb_key flow;
	unsigned int seq;              /* sequence number of the first byte */
	unsigned int ack;              /* acknowledgement number of the packet */
	unsigned int tsval;            /* timestamp value of the packet, with EARLY_STAMPED */
	unsigned short be_window;
	unsigned short flags;
	unsigned int bytes;
	unsigned int reserved;
};

enum early_flag {
	EARLY_STAMPED = 1,
	EARLY_ENDS = 2,                /* the client sends nothing behind this data (FIN) */
	EARLY_ASKS = 4,                /* a dispatcher is to be asked which data server the request belongs to */
	EARLY_ONLY_ASKS = 8,           /* with EARLY_ASKS: the agent, not the daemon, sends the data in again */
	EARLY_UNACKNOWLEDGED = 16,     /* only an acknowledgement is missing: the client has been sent everything
	                                  that it is to acknowledge */
};

/* How a response begins, as it leaves its data server. */
struct seen_head {
	struct tcb_key flow;
	unsigned int response_start;   /* sequence number of the response's first byte */
	unsigned short bytes;
	unsigned short number;         /* which response of this data server on the connection it is, from 1 on,
	                                  modulo 256 */
	unsigned char text[HEAD_BYTES];
};

/* The state of a connection that a data server is about to give away: see data_server/handover/yield.h. */
struct yielding {
	unsigned long long since;      /* when its client's window was first shown as closed: monotonic clock, ns */
	unsigned long long until;      /* when this entry expires: monotonic clock, ns */
	unsigned int next;             /* short address of the data server that is to have the connection */
	unsigned int asker;            /* short address of the CS that ordered the move */
	unsigned short be_window;      /* window in the client's last packet */
	unsigned short reserved;
	unsigned int reserved_word;
};

/* Where the tallies of a data server's doors begin in their map. */
enum door_tally_place {
	DOOR_TALLY_ALL = 0,            /* all requests of this data server; counted last, so a reader that finds it
	                                  unchanged has seen all other changes */
	DOOR_TALLY_POOLS = 1,
	DOOR_TALLY_ROUTES = 1 + MAX_POOLS,
	DOOR_TALLIES = 1 + MAX_POOLS + TALLIED_ROUTES,
};

/*
 * What a route, a pool or the whole data server had to do, as its doors decided. The members mean the same as in struct
 * tally.
 */
struct door_tally {
	unsigned long long requests;   /* requests that were let in, and those counted in `unavailable` */
	unsigned long long bytes;
	unsigned long long handovers;  /* counted for the route and pool of the request with which the connection
	                                  left */
	unsigned long long unavailable;
};

/* What a data server remembers about a connection that it gave away. */
struct given {
	unsigned int seq;              /* where the first request begins that no longer is its own: it went with the
	                                  connection, unless that went in the middle of a response */
	unsigned int tick;             /* when it gave the connection away: coarse monotonic clock >> TICK_SHIFT */
	unsigned int next;             /* short address of the data server that it was given to */
	unsigned int asker;            /* short address of the connection server by which it had come; 0: unknown */
	struct lccp_tcb tcb;           /* the connection's travelling part at that time */
	unsigned int clock;            /* clock of its timestamps less the monotonic clock, milliseconds */
	unsigned int ack;              /* what its client had acknowledged, which is all that had been sent */
	unsigned short mid_response;   /* 1: it went in the middle of a response, else 0 */
	unsigned short window;         /* if the agent moved it: its client's window, as its packets say it */
	unsigned int tsval;            /* if the agent moved it: its client's newest timestamp; 0: there are none */
};

/* For one service, at one of its data servers: which data server CLAIM asks next, and how many are asked in all. */
struct ring {
	unsigned int next;             /* short address */
	unsigned short length;
	unsigned short missing;        /* how many other data servers may have connections but are not heard just now */
};

/* What came with a connection whose socket is being made. */
struct expected {
	unsigned short window;         /* congestion window, segments; 0: as of a new connection */
	unsigned char aware;           /* not 0: the client is to be told this data server's address */
	unsigned char bodiless;        /* not 0: the first response on it answers a HEAD request */
};

#endif
