/* The client of figure 2 (b). It sends each argument behind the port as a request, and prints the answers. */
#include <eop.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	char response[100000];
	ssize_t length;
	struct eop_options options = { .speak = EOP_SPEAK_EITHER };
	struct eop_socket *s = eop_connect("127.0.0.1", (uint16_t)atoi(argv[1]), &options);

	if (!s) {
		fprintf(stderr, "client: connect: %s\n", eop_strerror(errno));
		return 1;
	}
	for (int i = 2; i < argc; i++) {
REDO:
		if (eop_send(s, argv[i], strlen(argv[i])) < 0 && errno != EREDO) {
			fprintf(stderr, "client: send: %s\n", eop_strerror(errno));
			return 1;
		}
		if ((length = eop_recv(s, response, sizeof(response))) < 0) {
			if (errno == EREDO) {
				puts("EREDO");
				goto REDO;
			}
			fprintf(stderr, "client: recv: %s\n", eop_strerror(errno));
			return 1;
		}
		printf("%.*s\n", (int)length, response);
	}
	eop_close(s);
	return 0;
}
