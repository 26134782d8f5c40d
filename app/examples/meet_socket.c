/* SPDX-License-Identifier: BSD-3-Clause */
/* The Unix socket over which two example programs meet. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "meet.h"

#define TRIES	 600
#define PAUSE_NS 100000000

void meet_check(int bad, const char *what)
{
	if (!bad)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static int make_socket(struct sockaddr_un *address, const char *path)
{
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	snprintf(address->sun_path, sizeof(address->sun_path), "%s", path);
	meet_check(fd < 0, "socket");
	return fd;
}

int meet_accept(const char *path)
{
	struct sockaddr_un address;
	const int fd = make_socket(&address, path);
	int client;

	meet_check(bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 1), path);
	client = accept(fd, NULL, NULL);
	meet_check(client < 0, path);
	close(fd);
	unlink(path);
	return client;
}

int meet_connect(const char *path)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	struct sockaddr_un address;
	const int fd = make_socket(&address, path);
	int tries = TRIES;

	while (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0 && --tries > 0)
		nanosleep(&pause, NULL);
	meet_check(tries == 0, path);
	return fd;
}
