/* The server of figure 2 (a). Arguments: name, early | late | never, target port. Prints its own port. */
#include <eop.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void failed(const char *what)
{
	fprintf(stderr, "server: %s: %s\n", what, eop_strerror(errno));
	exit(1);
}

int main(int argc, char **argv)
{
	const char *name = argv[1], *when = argv[2];
	uint16_t target = argc > 3 ? (uint16_t)atoi(argv[3]) : 0;
	struct eop_options options = { .speak = EOP_SPEAK_EITHER };
	char request[4], answer[100000];
	ssize_t length;

	struct eop_listener *listener = eop_listen("127.0.0.1", 0, &options);
	if (!listener)
		failed("listen");
	printf("%d\n", eop_listener_port(listener));
	fflush(stdout);
	struct eop_socket *s = eop_accept(listener);
	if (!s)
		failed("accept");

	if (!strcmp(when, "early")) {
		if (eop_redirect(s, NULL, 0, "127.0.0.1", target))
			failed("redirect");
		if (eop_send(s, "x", 1) != -1 || errno != EPIPE)
			failed("sending on a socket that was redirected");
		eop_close(s);
		/* The server stays until the client has followed the redirect. */
		getchar();
		eop_listener_close(listener);
		return 0;
	}
	for (;;) {
		/* The buffer is smaller than the message, which so arrives in parts. */
		size_t total = strlen(name);
		memcpy(answer, name, total);
		do {
			length = eop_recv(s, request, sizeof(request));
			if (length < 0)
				failed("recv");
			if (!length)
				break;
			memcpy(answer + total, request, (size_t)length);
			total += (size_t)length;
		} while (eop_more(s));
		if (eop_ended(s))
			break;
		if (!strcmp(when, "late")) {
			if (eop_redirect(s, answer, total, "127.0.0.1", target))
				failed("redirect");
			getchar();
			break;
		}
		if (eop_send(s, answer, total))
			failed("send");
	}
	eop_close(s);
	eop_listener_close(listener);
	return 0;
}
