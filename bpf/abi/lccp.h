/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Messages of the packet path between nodes (LCCP): their header, and what it says of a connection. */
#ifndef BATON_ABI_LCCP_H
#define BATON_ABI_LCCP_H

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
	                                  FORWARD. CSs number ADOPT, CLAIM, and FORWARD by way of an owner that lets go (connection_server/orphans/move.h),
	                                  but not what they send on after REFUSED or NONE */
	struct lccp_flow flow;
	unsigned int be_data;          /* by command */
	struct lccp_tcb tcb;
	unsigned long long be_clock;   /* the sender's wall clock, nanoseconds since 1970 */
	unsigned long long be_tag;     /* SipHash-2-4 of the 72 bytes before, then see lccp/seal.h */
};

#endif
