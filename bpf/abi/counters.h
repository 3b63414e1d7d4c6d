/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the programs count. */
#ifndef BATON_ABI_COUNTERS_H
#define BATON_ABI_COUNTERS_H

/* How many messages one sender may send to the daemon: a steady rate, and a burst after a pause. */
enum budget {
	BUDGET_COST_NS = 8192,         /* a steady rate of 122,000 messages a second */
	BUDGET_BURST_NS = 1 << 28,     /* a burst of 32,768 messages */
};

/* Every decision and every drop. Names are the metric's label: keep them stable. */
enum counter {
	/* all programs */
	COUNTER_BAD_IP,              /* the lengths contradict each other, or the header is too short */
	COUNTER_BAD_TCP,
	COUNTER_FRAGMENT,            /* dropped: a fragment has no ports */
	COUNTER_NOT_LINEAR,          /* dropped: the driver left the headers where kernels before 6.18 cannot read
	                                them */
	COUNTER_LCCP_SHORT,
	COUNTER_LCCP_BAD_VERSION,
	COUNTER_LCCP_BAD_TAG,        /* the tag was not made under the key that this node shares with the sender, or
	                                the message was changed on its way */
	COUNTER_LCCP_STRANGER,       /* the sender's address is one with which this node shares no key */
	COUNTER_LCCP_NOT_ALLOWED,    /* the tag is right, but the sender has only its own keys, and may not give that
	                                command */
	COUNTER_LCCP_STALE,
	COUNTER_LCCP_UNKNOWN,        /* the tag is right, but this receptor has no such command */
	COUNTER_LCCP_MISMATCH,       /* the flow in the header differs from the carried packet */
	COUNTER_LCCP_NOT_OURS,       /* the message is for another node; the network flooded it to this one as well */
	COUNTER_LCCP_TO_DAEMON,      /* the message was verified and passed on to the daemon's sockets */
	COUNTER_LCCP_OVER_BUDGET,    /* dropped: verified, but its sender sends more to the daemon than it may */
	COUNTER_LCCP_SOCKET_FULL,    /* lost: verified, but one of the daemon's sockets had no room for it */
	COUNTER_LCCP_MISSED,         /* a message did not come, and was asked for again */
	COUNTER_LCCP_SENT_AGAIN,     /* a message was asked for again, and a copy was still there and was sent */
	COUNTER_LCCP_NOT_KEPT,       /* sent, but too long to be kept: if it is lost, the client sends its packet
	                                again */
	COUNTER_LCCP_REPEATED,       /* a message came a second time, and its connection is no longer here */
	/* CS */
	COUNTER_CS_SYN,              /* answered */
	COUNTER_CS_SYN_BAD_OPTIONS,
	COUNTER_CS_HANDSHAKE_ACK,    /* dropped: the request follows */
	COUNTER_CS_PROBE,            /* a keep-alive probe before the first request: answered */
	COUNTER_CS_BEGUN_BEFORE,     /* first data whose cookie has already begun a connection: it begins none */
	COUNTER_CS_ADOPT,            /* DM1 sent for a new entry */
	COUNTER_CS_ADOPT_AGAIN,      /* the request was retransmitted */
	COUNTER_CS_AWARE,            /* a new connection whose client will send to its data server by itself */
	COUNTER_CS_FORWARD,
	COUNTER_CS_FORWARD_BYTES,
	COUNTER_CS_HELD,             /* a request that waits until another connection server takes over */
	COUNTER_CS_HELD_LOST,        /* dropped: it was to wait, and there was no room for it */
	COUNTER_CS_PASSED_ON,        /* a client's packet, sent to the connection server that takes over or has taken
	                                over */
	COUNTER_CS_JUMP,             /* a packet whose numbers are far from its entry's; the owner gets it, and the
	                                entry's numbers stay as they are */
	COUNTER_CS_BEHIND_ADOPT,     /* a packet sent after an ADOPT, in the same way */
	COUNTER_CS_NONE,             /* a DS does not have a connection that the entry says it has: the other data
	                                servers are asked for it */
	COUNTER_CS_AHEAD,            /* a packet came to its DS ahead of its connection: sent there again */
	COUNTER_CS_ADOPTED_MEANWHILE, /* dropped: a copy of the packet was handled first, on another processor */
	COUNTER_CS_NO_DATA_SERVER,   /* reset: there is no data server to choose */
	COUNTER_CS_OWNER_GONE,       /* reset: the entry's owner is no longer configured */
	COUNTER_CS_REFUSED,          /* a DS refused; the next one is tried */
	COUNTER_CS_REFUSED_BY_ALL,
	COUNTER_CS_STRAY,            /* unknown flow, within its grace */
	COUNTER_CS_STRAY_RESET,
	COUNTER_CS_CLAIM,            /* the data servers are asked who has a connection */
	COUNTER_CS_CLAIM_CUT,        /* such a question without the client's data: too many questions are asked for
	                                packets that nothing speaks for */
	COUNTER_CS_CLAIM_LIMIT,      /* dropped: too many CLAIMs in this tick for packets that showed a proof */
	COUNTER_CS_CLAIM_LIMIT_LIKELY, /* dropped: the same for packets that are likely to belong to a connection */
	COUNTER_CS_CLAIM_LIMIT_STRANGER, /* dropped: the same for packets that nothing speaks for */
	COUNTER_CS_CLAIM_LIMIT_SOURCE, /* dropped: many CLAIMs were sent, and the client's network has had its share */
	COUNTER_CS_MOVED,            /* a data server has the connection: an entry was made */
	COUNTER_CS_MOVED_ON,         /* the owner has handed the connection to another data server */
	COUNTER_CS_MOVED_FROM_DEAD,  /* the owner is dead, and another data server says that it has the connection */
	COUNTER_CS_REST,             /* the owner has said that the connection is at rest */
	COUNTER_CS_UNCLAIMED,        /* no data server has the connection */
	COUNTER_CS_ICMP,             /* an ICMP error about a response, passed to the owner */
	COUNTER_CS_FIN,
	COUNTER_CS_RST,
	COUNTER_CS_TCB_FULL,
	COUNTER_CS_TOO_BIG,          /* would not fit with LCCP around it */
	COUNTER_CS_MERGED,           /* forwarded: a packet longer than the MTU, as GRO merges them in front of
	                                generic XDP */
	COUNTER_CS_MERGED_LOST,      /* dropped: such a packet whose owner is behind another interface */
	COUNTER_CS_NO_ROOM,          /* the driver leaves no room in the frame for an answer's headers */
	COUNTER_CS_ORPHAN_ADOPT,     /* a request whose data server is dead or takes no messages: sent to another one */
	COUNTER_CS_ORPHAN_WAITS,     /* dropped: more data of a connection whose response is to be resumed, or may be */
	COUNTER_CS_ORPHAN_RESET,     /* reset: more data of a connection whose response died with its data server */
	COUNTER_CS_RESUME,           /* an acknowledgement, sent to the data server that has the rest of a response */
	COUNTER_CS_DEAF,             /* a repeated request whose data server refuses messages: another one is to
	                                adopt it */
	COUNTER_CS_MOVE,             /* a response is to go on at another data server, because its own drains */
	COUNTER_CS_MOVE_VIA,         /* a packet of such a connection, sent by way of the last owner, which knows
	                                where the connection is */
	COUNTER_CS_MOVE_BACK,        /* such a connection stays at its last owner after all */
	COUNTER_CS_MOVE_DONE,        /* the next data server has such a connection */
	COUNTER_CS_MOVE_ORPHANED,    /* neither data server has such a connection: its response is to be resumed */
	COUNTER_CS_MOVE_LATE,        /* a step of the move was refused: something has happened on the connection
	                                meanwhile */
	COUNTER_CS_RESPONSE_BYTES,   /* bytes from the cluster address through the CS: must stay 0 */
	/* DS */
	COUNTER_DS_ADOPTED,
	COUNTER_DS_WINDOW,           /* an adopted connection began with its last owner's congestion window */
	COUNTER_DS_TOLD,             /* an aware client is told where this data server is */
	COUNTER_DS_DIRECT,           /* a packet that a client sent here itself, inside another packet: unwrapped */
	COUNTER_DS_DIRECT_REFUSED,   /* dropped: such a packet that is not whole, not in its sender's name, or a SYN */
	COUNTER_DS_ADOPTED_RELAY,    /* adopted into the daemon's listener, because the server's is MPTCP */
	COUNTER_DS_DUPLICATE,        /* ADOPT for a connection that is already here: its packet was delivered */
	COUNTER_DS_GIVEN,            /* dropped: ADOPT for a connection that was here and has moved on since */
	COUNTER_DS_ENDED_BEFORE,     /* dropped: ADOPT for a connection that was here and has ended */
	COUNTER_DS_TIME_WAIT_ENDED,
	COUNTER_DS_STALE_ENDED,      /* an older connection with the same ports was ended */
	COUNTER_DS_STALE_KEPT,       /* dropped: a data server wanted an older connection to end, and only a
	                                connection server knows that it has */
	COUNTER_DS_REFUSED,
	COUNTER_DS_FORWARDED,        /* unwrapped */
	COUNTER_DS_DELIVERED,        /* plain packets with a socket */
	COUNTER_DS_UNASSIGNED,       /* the kernel refused to make the socket (tcp_syncookies=0?) */
	COUNTER_DS_NO_WAY,           /* dropped: no way to another node is known, or the message did not leave */
	COUNTER_DS_AHEAD,            /* dropped: ADOPT of a request behind one that has not come */
	COUNTER_DS_RELEASED,         /* an idle connection was handed to another DS, and the socket here ended */
	COUNTER_DS_RELEASE_REFUSED,  /* a connection was not handed to another DS: it is not idle, no other DS may
	                                have it, or there is no way to that DS */
	COUNTER_DS_RELEASE_GONE,     /* a connection was not handed to another DS: it is not here (anymore) */
	COUNTER_DS_MOVED,            /* an agent's connection went to another DS, and the socket here ended */
	COUNTER_DS_MOVE_REFUSED,     /* an agent's connection did not go to another DS: something is under way on it, or
	                                there is no way to that DS */
	COUNTER_DS_MOVE_AGAIN,       /* ADOPT was sent again for an agent's connection that went */
	COUNTER_DS_REST,             /* the CS was told that a connection is at rest */
	COUNTER_DS_NONE,             /* a packet of no connection here was sent back to its CS */
	COUNTER_DS_NO_SOCKET,        /* dropped in silence: a RST is the CS's to send */
	COUNTER_DS_CLAIMED,          /* CLAIM for a connection that is here: delivered, and MOVED sent */
	COUNTER_DS_CLAIM_PASSED_ON,
	COUNTER_DS_CLAIM_FOLLOWED,   /* CLAIM for a connection that went from here with this very request: it follows */
	COUNTER_DS_UNCLAIMED,        /* this DS was the last to be asked: NONE was sent */
	COUNTER_DS_ALIVE,            /* a connection server asked whether this host lives */
	COUNTER_DS_FENCED,           /* a packet of a connection that may be another node's by now: a question to its
	                                client left instead of it */
	COUNTER_DS_RESUMED,          /* a connection was adopted into the agent that has the rest of a response */
	COUNTER_DS_YIELDING,         /* a response is to go on elsewhere: nothing new is sent from now on */
	COUNTER_DS_YIELD_CLOSED,     /* a client's packet, delivered with a closed window */
	COUNTER_DS_YIELDED,          /* the client has everything that was sent: the connection went to the other
	                                data server */
	COUNTER_DS_YIELD_REFUSED,    /* the connection cannot leave, or there is no way to the other data server */
	COUNTER_DS_YIELD_GONE,       /* the connection is not here (anymore) */
	COUNTER_DS_YIELD_STOPPED,    /* the connection is to stay after all */
	COUNTER_DS_YIELD_ENDED,      /* the client has sent something, so the connection stays */
	/* A connection that can no longer move, because it is not known where its responses end: */
	COUNTER_DS_RESPONSE_UNKNOWN, /* the framing of a response is not understood */
	COUNTER_DS_RESPONSE_EARLIER, /* the server had begun to respond before its responses were followed */
	COUNTER_DS_RESPONSE_GAP,     /* some data has left that the program did not see */
	COUNTER_DS_RESPONSE_NO_ROOM, /* the kernel had no memory for what was seen */
	COUNTER_DS_HEAD,             /* a response begins that could be resumed: its head was shown to the daemon */
	COUNTER_DS_HEAD_FULL,        /* its head was not shown: the ring had no room */
	COUNTER_DS_REQUEST_KEPT,     /* a request whose response could go on from another data server */
	COUNTER_DS_REQUEST_TOO_LONG, /* such a request was not kept: it is longer than HEAD can hold */
	/* Connections whose owner judges each request: see data_server/door/at_door.h. */
	COUNTER_DS_DOOR_REQUEST,     /* a request is this data server's: let in */
	COUNTER_DS_DOOR_HANDED_ON,   /* a request is another data server's: the connection went there, and the socket
	                                here ended */
	COUNTER_DS_DOOR_FOLLOWED,    /* a packet of a connection that has gone: sent on to where it went */
	COUNTER_DS_DOOR_AGAIN,       /* the same, and the connection went with this packet: sent as ADOPT once more,
	                                because the first one may have been lost */
	COUNTER_DS_DOOR_BACK,        /* the data server that it went to has died: the connection begins here once
	                                more with this request */
	COUNTER_DS_DOOR_WITHHELD,    /* waits: a request for another data server, and the connection is not quiet */
	COUNTER_DS_DOOR_LATER,       /* waits: something before it has not come */
	COUNTER_DS_DOOR_WAITS,       /* waiting data that comes again from user space; the client sends the rest
	                                again */
	COUNTER_DS_DOOR_NO_ROOM,     /* user space has no room for such data */
	COUNTER_DS_DOOR_BROKEN,      /* dropped: it was to wait, and its TCP checksum is wrong */
	COUNTER_DS_DOOR_CAME,        /* dropped: data that waited, but the client has sent it again meanwhile */
	COUNTER_DS_DOOR_BATCH,       /* put back: TCP has not yet seen the packets before it */
	COUNTER_DS_DOOR_CUT,         /* delivered up to where the next request begins; the rest waits */
	COUNTER_DS_DOOR_UNRENEWED,   /* dropped: data that waited, but its acknowledgement or timestamps could not be
	                                brought up to date */
	COUNTER_DS_DOOR_CHANGED,     /* dropped: the current request again, with different content */
	COUNTER_DS_DOOR_READS,       /* one packet does not tell which data server a request belongs to, or where the
	                                request ends: the agent reads it */
	COUNTER_DS_DOOR_READ,        /* the agent has read a request that is this data server's: the server has the
	                                connection */
	COUNTER_DS_DOOR_REPEATED,    /* data that an agent has read and sends again is already here: that agent's
	                                node is told */
	COUNTER_DS_DOOR_RECEIVED,    /* an agent here is told that its data has been received (RECEIVED) */
	COUNTER_DS_DOOR_GONE,        /* the connection of data that an agent has read is not here: that agent's node
	                                is told */
	COUNTER_DS_DOOR_UNREADABLE,  /* ended or refused: one packet does not decide, and there is no agent */
	COUNTER_DS_DOOR_NOBODY,      /* no data server answers for the pool of a request that the agent has read: the
	                                agent tells the client */
	COUNTER_DS_DOOR_LAST,        /* dropped: a request behind a response that ends its connection */
	COUNTER_DS_DOOR_STAYS,       /* ended: the connection was to leave, and it is not known where its response
	                                ends */
	COUNTER_DS_DOOR_DESERTED,    /* a request would be this data server's, but no server listens: another data
	                                server of the pool is to answer */
	COUNTER_DS_DOOR_FIXED,       /* ended: a request for another pool, where connections stay with their data
	                                server */
	COUNTER_DS_DOOR_UNKNOWN,     /* ended: it is not known where the requests of this connection begin */
	COUNTER_DS_DOOR_ASKS,        /* waits: a dispatcher on another node is asked which data server a request
	                                belongs to */
	COUNTER_DS_ANSWERED,         /* a choice was made by a recent answer of a dispatcher */
	COUNTER_DS_UNANSWERED,       /* a dispatcher named no data server that can serve, or was late: chosen here */
	COUNTER_DS_ASKED,            /* the daemon asked a dispatcher on another node */
	COUNTER_DS_ASK_LATE,         /* a dispatcher did not answer in time */
	COUNTER_DS_ASK_DEAD,         /* not asked, because a dispatcher was late many times: chosen here */
	COUNTER_DS_ASK_STALE,        /* not asked, because the daemon gives no sign of life: chosen here */
	COUNTER_DS_ASK_LIE,          /* an answer that names no data server that can serve, or that belongs to no
	                                question */
	COUNTER_DS_RELAY_ANSWER,     /* a packet of a server in a container, delivered to the relay's socket */
	/* switch */
	COUNTER_SWITCH_SYN,          /* a connection begins */
	COUNTER_SWITCH_FORWARD,      /* to the only connection server of a place in the table */
	COUNTER_SWITCH_KEPT,         /* to the connection server that had the place before */
	COUNTER_SWITCH_BEGUN,        /* to the connection server with which the connection began, at a place that has
	                                changed */
	COUNTER_SWITCH_ICMP,         /* an ICMP error about a response */
	COUNTER_SWITCH_PLAIN,        /* such an ICMP error that is too big to travel inside another frame */
	COUNTER_SWITCH_NOBODY,       /* dropped: no connection server */
	COUNTER_SWITCH_NO_ROOM,      /* dropped: the driver leaves no room for another header */
	COUNTER_MAX,
};

struct counters {
	unsigned long long value[COUNTER_MAX];
};

#endif
