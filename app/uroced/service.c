/* SPDX-License-Identifier: BSD-3-Clause */
/* Takes listening sockets from the service manager (socket activation), and sends it messages. */
#include "service.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define FIRST_FD 3 /* sd_listen_fds(3): the passed descriptors begin here */

void service_path(int fd, char *path, size_t size)
{
	struct sockaddr_un address = {0};
	socklen_t len = sizeof(address);

	if (getsockname(fd, (struct sockaddr *)&address, &len) != 0 ||
	    address.sun_family != AF_UNIX)
		address.sun_path[0] = '\0';
	snprintf(path, size, "%.*s", (int)sizeof(address.sun_path), address.sun_path);
}

static int service_option(int fd, int option)
{
	int value;
	socklen_t len = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, option, &value, &len) == 0 ? value : -1;
}

static bool service_fits(int fd)
{
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path) + 1];

	service_path(fd, path, sizeof(path));
	return path[0] != '\0' && service_option(fd, SO_TYPE) == SOCK_SEQPACKET &&
	       service_option(fd, SO_ACCEPTCONN) == 1;
}

/* Read a number of the environment; 0 if it is missing or not a number. */
static long service_number(const char *variable)
{
	const char *text = getenv(variable);
	char *end;
	long number;

	if (!text || *text == '\0')
		return 0;
	number = strtol(text, &end, 10);
	return *end == '\0' && number > 0 ? number : 0;
}

int service_take(int *fds, size_t max, char *error, size_t error_size)
{
	/* A child inherits the variables, but the descriptors are for the process that LISTEN_PID
	 * names. */
	const bool are_ours = service_number("LISTEN_PID") == getpid();
	const long count = are_ours ? service_number("LISTEN_FDS") : 0;

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
		if (!service_fits(fds[i])) {
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

int service_notify(const char *state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *path = getenv("NOTIFY_SOCKET");
	size_t len;
	int fd, rc = 0;

	if (!path)
		return 0;
	len = strlen(path);
	if (len >= sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@'))
		return -EINVAL;
	memcpy(address.sun_path, path, len);
	/* '@' stands for the zero byte with which an abstract name begins. */
	if (path[0] == '@')
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) < 0)
		rc = -errno;
	close(fd);
	return rc;
}
