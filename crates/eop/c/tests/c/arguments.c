/* Wrong arguments are reported with an errno, and nothing crashes. */
#include <eop.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define EXPECT(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "line %d: not " #condition ", errno %d\n", __LINE__, errno); \
			return 1; \
		} \
	} while (0)

int main(void)
{
	struct eop_options bad_speak = { .speak = 9 }, bad_allow = { .allow = "10.0.0.0/99" };
	struct eop_options bad_key = { .cluster_key = "short" }, no_key = { .redirected_only = 1 };
	struct eop_listener *listener;
	struct eop_socket *client, *server;
	char byte;

	EXPECT(!eop_connect(NULL, 80, NULL) && errno == EFAULT);
	EXPECT(!eop_connect("nowhere", 80, NULL) && errno == EINVAL);
	EXPECT(!eop_connect("127.0.0.1", 80, &bad_speak) && errno == EINVAL);
	EXPECT(!eop_connect("127.0.0.1", 80, &bad_allow) && errno == EINVAL);
	EXPECT(!eop_listen("127.0.0.1", 0, &bad_key) && errno == EINVAL);
	EXPECT(!eop_listen("127.0.0.1", 0, &no_key) && errno == EINVAL);
	EXPECT(!eop_connect("127.0.0.1", 1, NULL) && errno == ECONNREFUSED);
	EXPECT(!eop_accept(NULL) && errno == EFAULT);
	EXPECT(eop_send(NULL, "x", 1) == -1 && errno == EFAULT);
	EXPECT(eop_recv(NULL, &byte, 1) == -1 && errno == EFAULT);
	EXPECT(eop_fd(NULL) == -1);
	eop_close(NULL);
	eop_listener_close(NULL);

	listener = eop_listen("127.0.0.1", 0, NULL);
	EXPECT(listener && eop_listener_fd(listener) >= 0);
	client = eop_connect("127.0.0.1", eop_listener_port(listener), NULL);
	EXPECT(client && eop_fd(client) >= 0 && eop_peer(client) == 1);
	server = eop_accept(listener);
	EXPECT(server);
	EXPECT(eop_redirect(client, NULL, 0, "127.0.0.1", 80) == -1 && errno == EINVAL);
	EXPECT(eop_send(client, NULL, 5) == -1 && errno == EFAULT);
	EXPECT(eop_send(client, NULL, 0) == 0);
	EXPECT(eop_recv(server, &byte, 1) == 0 && !eop_ended(server));
	eop_close(client);
	EXPECT(eop_recv(server, &byte, 1) == 0 && eop_ended(server));
	eop_close(server);
	eop_listener_close(listener);
	EXPECT(strstr(eop_strerror(EREDO), "send again"));
	return 0;
}
