/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redirectable sockets: a server may send the other end of its connection to another server. eop(3).
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

/* The server redirected the client without an answer: send what has none again. */
#define EREDO 1000

struct eop_socket;
struct eop_listener;

enum {
	EOP_SPEAK_EOP = 0, /* the other end speaks EOP, by agreement */
	EOP_SPEAK_PLAIN = 1, /* plain TCP, by agreement */
	EOP_SPEAK_EITHER = 2, /* find out */
};

/* 0 or NULL everywhere: the default. */
struct eop_options {
	uint32_t speak; /* EOP_SPEAK_... */
	uint32_t limit; /* bytes of the longest message taken; 16 MiB */
	uint32_t resend_limit; /* client: send again without EREDO; bytes kept for it */
	uint32_t idempotent; /* client: 1: also when a connection dies */
	uint32_t hops; /* client: redirects in a row without an answer; 8 */
	uint32_t connect_timeout_ms; /* client: 5000 */
	uint32_t patience_ms; /* waiting for what the other end speaks; client 1000, server 200 */
	uint32_t nagle; /* 1: collect small messages */
	const char *allow; /* client: "10.0.0.0/8,fd00::/8": the only targets accepted; see eop(3) */
	const char *cluster_key; /* server: 64 hex digits, for tokens */
	uint32_t redirected_only; /* server: 1: serve only clients that were redirected here */
};

/* address: of either version of IP, in digits. options: may be NULL. */
struct eop_socket *eop_connect(const char *address, uint16_t port, const struct eop_options *options);
struct eop_listener *eop_listen(const char *address, uint16_t port, const struct eop_options *options);
struct eop_socket *eop_accept(struct eop_listener *listener);

/* 0; all of the message is sent. */
int eop_send(struct eop_socket *socket, const void *message, size_t length);

/*
 * The bytes of the next message, as many as fit; eop_more() says how many are left of it, which the next
 * calls bring. 0: the other end has ended the session (eop_ended()), or the message has no bytes.
 */
ssize_t eop_recv(struct eop_socket *socket, void *buffer, size_t size);
size_t eop_more(const struct eop_socket *socket);
int eop_ended(const struct eop_socket *socket);

/*
 * Server: sends the client elsewhere; first delivers the answer, if it is not NULL. The socket is over, but
 * for eop_close(). EOPNOTSUPP: a plain client; the socket can still be used.
 */
int eop_redirect(struct eop_socket *socket, const void *answer, size_t length, const char *address,
		 uint16_t port);

/* 1: the other end speaks EOP; 0: plain TCP; -1: not known yet. */
int eop_peer(const struct eop_socket *socket);

/* The descriptor, another one after each redirect; for poll(2) with care: messages may be buffered. */
int eop_fd(const struct eop_socket *socket);
int eop_listener_fd(const struct eop_listener *listener);
uint16_t eop_listener_port(const struct eop_listener *listener);

/* NULL is allowed. */
void eop_close(struct eop_socket *socket);
void eop_listener_close(struct eop_listener *listener);

/* As strerror(3), which does not know EREDO. */
const char *eop_strerror(int error);

#ifdef __cplusplus
}
#endif

#endif
