/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What goes into a data server's program and comes out of it. `src/native.rs` has the same structures. */
#ifndef NATIVE_DOOR_H
#define NATIVE_DOOR_H

#include "bounds.h"
#include "data_server/receive_lccp.h"
#include "data_server/response/response.h"

enum {
	NODES = 3,                 /* data servers */
	POOLS = 3,                 /* of the first data server, of the second, and of the second and the third */
	CLIENT = 0x0100000a,       /* 10.0.0.1, and so on, as they are on the wire */
	CLUSTER = 0x6400000a,
	CONNECTION_SERVER = 0x0900000a,
	FIRST_NODE = 0x0b00000a,
	SECOND_NODE = 0x0c00000a,
	THIRD_NODE = 0x0d00000a,
	CLIENT_PORT = 0x3930,
	CLUSTER_PORT = 0x5000,
	OWN_INTERFACE = 1,
	OTHER_INTERFACE = 2,
	READER_PORT = 7777,
	HEADROOM = 256,
	FRAME_MOST = 1 << 17,
	FRAMES_MOST = 8,           /* the most frames that one packet may make */
};

/* A TCP packet of the client, by itself or inside a message. */
struct model_packet {
	u32 seq;
	u32 ack;
	u32 fin;
	u32 rst;
	u32 mark;
	u32 sent_in;               /* AGENT_METADATA, EARLY_METADATA, or LEAVE_METADATA: this node's user space sends it in */
	u32 peer;                  /* short address of the sender or of the receiver; 0: no message is around it */
	u32 bytes;                 /* length of the payload, which is stored elsewhere */
	struct lccp_header header; /* the header of the message */
};

/* What becomes of a packet. */
enum way {
	WAY_TCP,                   /* to this node's TCP */
	WAY_INGRESS,               /* once more through this node's ingress */
	WAY_OUT,                   /* to another node */
	WAY_EARLY,                 /* to user space, which sends it in again */
};

struct model_frame {
	u32 way;
	u32 assigned;              /* for WAY_TCP: the enum listener that makes a socket of it */
	u32 bound;                 /* only for the socket that its node has now, not for a later one */
	u32 payload_at;            /* where its payload begins in the payloads */
	struct model_packet packet;
};

enum listener {
	LISTENER_NONE,
	LISTENER_SERVER,
	LISTENER_READER,
};

struct model_result {
	u32 frames;
	u32 payload_bytes;
	struct model_frame frame[FRAMES_MOST];
	u8 payloads[FRAME_MOST];
};

/* What the programs read of a full socket. */
struct model_socket {
	u32 state;                 /* 0: there is none */
	u32 begin;                 /* sequence number of the first byte that it had */
	u32 rcv_nxt;
	u32 rcv_wup;
	u32 copied_seq;
	u32 write_seq;
	u32 snd_una;
	u32 bytes_acked;
};

#endif
