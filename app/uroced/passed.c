/* SPDX-License-Identifier: BSD-3-Clause */
/* Takes listening sockets from the service manager (socket activation). */
#include "passed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define FIRST_FD 3 /* sd_listen_fds(3): the passed descriptors begin here */

void passed_path(int fd, char *path, size_t size)
{
	struct sockaddr_un address = {0};
	socklen_t len = sizeof(address);

	if (getsockname(fd, (struct sockaddr *)&address, &len) != 0 ||
	    address.sun_family != AF_UNIX)
		address.sun_path[0] = '\0';
	snprintf(path, size, "%.*s", (int)sizeof(address.sun_path), address.sun_path);
}

static int passed_option(int fd, int option)
{
	int value;
	socklen_t len = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, option, &value, &len) == 0 ? value : -1;
}

static bool passed_fits(int fd)
{
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path) + 1];

	passed_path(fd, path, sizeof(path));
	return path[0] != '\0' && passed_option(fd, SO_TYPE) == SOCK_SEQPACKET &&
	       passed_option(fd, SO_ACCEPTCONN) == 1;
}

/* Read a number of the environment; 0 if it is missing or not a number. */
static long passed_number(const char *variable)
{
	const char *text = getenv(variable);
	char *end;
	long number;

	if (!text || *text == '\0')
		return 0;
	number = strtol(text, &end, 10);
	return *end == '\0' && number > 0 ? number : 0;
}

int passed_take(int *fds, size_t max, char *error, size_t error_size)
{
	/* A child inherits the variables, but the descriptors are for the process that LISTEN_PID
	 * names. */
	const bool are_ours = passed_number("LISTEN_PID") == getpid();
	const long count = are_ours ? passed_number("LISTEN_FDS") : 0;

	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	if (count > (long)max) {
		snprintf(error, error_size, "%ld sockets are passed, but uroced takes at most %zu",
			 count, max);
		return -E2BIG;
	}
	for (int i = 0; i < count; i++) {
		fds[i] = FIRST_FD + i;
		if (!passed_fits(fds[i])) {
			snprintf(error, error_size,
				 "the passed descriptor %d is not a listening unix socket with "
				 "a path (ListenSequentialPacket= in the socket unit)",
				 fds[i]);
			return -ENOTSOCK;
		}
		fcntl(fds[i], F_SETFD, FD_CLOEXEC);
	}
	return (int)count;
}
