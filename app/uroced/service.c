/* SPDX-License-Identifier: BSD-3-Clause */
/* Takes listening sockets from the service manager (socket activation), and sends it messages. */
#include "service.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "config/settings.h"
#include "owner/serve.h"

/* Sockets, and what is kept for each port. */
#define PASSED_MAX (SERVE_PASSED + SETTINGS_PORTS_MAX * (1 + SERVE_SLOW_FDS))
#define FIRST_FD   3 /* sd_listen_fds(3): the passed descriptors begin here */

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

/* Return the port of a passed table; -1: the descriptor has another name. */
static long service_table(const char *name, size_t len)
{
	const size_t prefix = strlen(SERVICE_TABLE);
	char number[8];
	char *end;
	long port;

	if (len <= prefix || len - prefix >= sizeof(number) ||
	    memcmp(name, SERVICE_TABLE, prefix) != 0)
		return -1;
	snprintf(number, sizeof(number), "%.*s", (int)(len - prefix), name + prefix);
	port = strtol(number, &end, 10);
	return *end == '\0' && port >= 0 ? port : -1;
}

static bool service_is_late(const char *name, size_t len)
{
	return len == strlen(SERVICE_LATE) && memcmp(name, SERVICE_LATE, len) == 0;
}

/* Take the tables out of the passed descriptors, which have names that ':' separates. Returns how
 * many descriptors are left. */
static size_t service_take_tables(int *fds, size_t count, const char *names, int *tables,
				  size_t table_count)
{
	size_t left = 0;

	for (size_t i = 0; i < count; i++) {
		const size_t len = strcspn(names, ":");
		const long port = service_table(names, len);

		if (service_is_late(names, len))
			close(fds[i]);
		else if (port < 0)
			fds[left++] = fds[i];
		else if ((size_t)port < table_count && tables[port] < 0)
			tables[port] = fds[i];
		else
			close(fds[i]);
		names += len;
		names += *names == ':';
	}
	return left;
}

int service_take(int *fds, size_t max, int *tables, size_t table_count, char *error,
		 size_t error_size)
{
	/* A child inherits the variables, but the descriptors are for the process that LISTEN_PID
	 * names. */
	const bool are_ours = service_number("LISTEN_PID") == getpid();
	long count = are_ours ? service_number("LISTEN_FDS") : 0;
	const char *names = getenv("LISTEN_FDNAMES");
	int passed[PASSED_MAX];
	char copy[4096];

	snprintf(copy, sizeof(copy), "%s", names ? names : "");
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	for (long i = 0; i < count && i < PASSED_MAX; i++) {
		passed[i] = FIRST_FD + (int)i;
		fcntl(passed[i], F_SETFD, FD_CLOEXEC);
	}
	if (count <= PASSED_MAX)
		count = (long)service_take_tables(passed, (size_t)count, copy, tables, table_count);
	if (count > (long)max) {
		snprintf(error, error_size, "%ld sockets are passed, but uroced takes at most %zu",
			 count, max);
		return -E2BIG;
	}
	memcpy(fds, passed, (size_t)count * sizeof(fds[0]));
	for (int i = 0; i < count; i++) {
		if (!service_fits(fds[i])) {
			snprintf(error, error_size,
				 "the passed descriptor %d is not a listening unix socket with "
				 "a path (ListenSequentialPacket= in the socket unit)",
				 fds[i]);
			return -ENOTSOCK;
		}
	}
	return (int)count;
}

/* Send a state to the service manager, with a descriptor if it is not -1. 0 or -errno. */
static int service_send(const char *state, int passed)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct iovec text = {.iov_base = (void *)(uintptr_t)state, .iov_len = strlen(state)};
	struct msghdr message = {.msg_name = &address, .msg_iov = &text, .msg_iovlen = 1};
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
	message.msg_namelen = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	if (passed >= 0) {
		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.head), &passed, sizeof(passed));
	}
	if (sendmsg(fd, &message, MSG_NOSIGNAL) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

int service_notify(const char *state)
{
	return service_send(state, -1);
}

pid_t service_main(void)
{
	return getenv("NOTIFY_SOCKET") ? (pid_t)service_number("MAINPID") : 0;
}

int service_set_main(pid_t pid)
{
	char state[32];

	snprintf(state, sizeof(state), "MAINPID=%d", pid);
	return service_notify(state);
}

bool service_keeps(void)
{
	/* An uroced of one command is no service, though its command may be in one. */
	return getenv("NOTIFY_SOCKET") && !getenv("UROCED_PARENT") && service_number("FDSTORE") > 0;
}

int service_keep_table(int fd, size_t number)
{
	char state[128];
	int rc;

	snprintf(state, sizeof(state), "FDSTOREREMOVE=1\nFDNAME=" SERVICE_TABLE "%zu", number);
	rc = service_notify(state);
	if (rc != 0)
		return rc;
	snprintf(state, sizeof(state), "FDSTORE=1\nFDNAME=" SERVICE_TABLE "%zu", number);
	return service_send(state, fd);
}

int service_close_late(const int *fds, size_t count)
{
	int rc = service_notify("FDSTOREREMOVE=1\nFDNAME=" SERVICE_LATE);

	/* FDPOLL: a socket of an interface that goes down has an error, and is kept all the same.
	 */
	for (size_t i = 0; i < count && rc == 0; i++)
		rc = service_send("FDSTORE=1\nFDPOLL=0\nFDNAME=" SERVICE_LATE, fds[i]);
	return rc;
}
