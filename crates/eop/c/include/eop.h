/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redirectable sockets: a server may send the other end of its connection to another server. See eop(3).
 *
 * A socket or listener may be used by one thread at a time. Functions that fail return -1 or NULL and set
 * errno.
 */
#ifndef EOP_H
#define EOP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An errno: the server redirected the client without an answer. Requests without an answer must be sent again. */
#define EREDO 1000

struct eop_socket;
struct eop_listener;

enum {
	EOP_SPEAK_EOP = 0, /* both ends agree on EOP */
	EOP_SPEAK_PLAIN = 1, /* both ends agree on plain TCP */
	EOP_SPEAK_EITHER = 2, /* this end finds out what the other one speaks */
};

/* A field that is 0 or NULL has its default. A number behind a semicolon is the default. */
struct eop_options {
	uint32_t speak; /* EOP_SPEAK_... */
	uint32_t limit; /* length of the longest message that is accepted, in bytes; 16 MiB */
	uint32_t resend_limit; /* client: the session itself sends again, without EREDO; bytes kept for that */
	uint32_t idempotent; /* client: 1: requests are also sent again when a connection dies */
	uint32_t hops; /* client: how many redirects in a row may come without an answer; 8 */
	uint32_t connect_timeout_ms; /* client: how long a connection may take to be made; 5000 */
	uint32_t patience_ms; /* how long to wait for a sign of what the other end speaks; client 1000, server 200 */
	uint32_t nagle; /* 1: small messages are collected */
	const char *allow; /* client: the only targets that are accepted, as "10.0.0.0/8,fd00::/8"; see eop(3) */
	const char *cluster_key; /* server: 64 hex digits, to make and check tokens */
	uint32_t redirected_only; /* server: 1: only clients that were redirected here are served */
};

/* The address is one of IPv4 or IPv6, in digits; options may be NULL. */
struct eop_socket *eop_connect(const char *address, uint16_t port, const struct eop_options *options);
struct eop_listener *eop_listen(const char *address, uint16_t port, const struct eop_options *options);
struct eop_socket *eop_accept(struct eop_listener *listener);

/* Sends all of the message and returns 0. */
int eop_send(struct eop_socket *socket, const void *message, size_t length);

/*
 * Returns as many bytes of the next message as fit. eop_more() says how many bytes of it are left; the next calls
 * return these. 0: the other end has ended the session (eop_ended()), or the message has no bytes.
 */
ssize_t eop_recv(struct eop_socket *socket, void *buffer, size_t size);
size_t eop_more(const struct eop_socket *socket);
int eop_ended(const struct eop_socket *socket);

/*
 * A server sends the client to another server, after it has delivered the answer, if that is not NULL. Nothing but
 * eop_close() can be done with the socket after that. EOPNOTSUPP: the client is plain; the socket can still be used.
 */
int eop_redirect(struct eop_socket *socket, const void *answer, size_t length, const char *address,
		 uint16_t port);

/* 1: the other end speaks EOP; 0: plain TCP; -1: not known yet. */
int eop_peer(const struct eop_socket *socket);

/* The descriptor, which is another one after each redirect. Care is needed with poll(2): messages may be buffered. */
int eop_fd(const struct eop_socket *socket);
int eop_listener_fd(const struct eop_listener *listener);
uint16_t eop_listener_port(const struct eop_listener *listener);

/* NULL is allowed. */
void eop_close(struct eop_socket *socket);
void eop_listener_close(struct eop_listener *listener);

/* The text of an errno, as from strerror(3), which does not know EREDO. */
const char *eop_strerror(int error);

#ifdef __cplusplus
}
#endif

#endif
