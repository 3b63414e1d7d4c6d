/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the programs count. */
#ifndef BATON_ABI_COUNTERS_H
#define BATON_ABI_COUNTERS_H

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
	/* Of connections whose owner sees to whose each request is: see data_server/door/at_door.h. */
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
