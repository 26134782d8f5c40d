/* SPDX-License-Identifier: BSD-3-Clause */
/* What lies at the place of a memif server's socket: another server, or the socket of a dead one.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/dir_lock.h"
#include "base/log.h"
#include "memif_port.h"

/* The occupant of a server's socket name. */
enum occupant {
	OCCUPANT_NONE,
	OCCUPANT_DEAD, /* refuses connections: left by a killed server, or not a socket at all */
	OCCUPANT_SERVER,
	OCCUPANT_UNKNOWN, /* errno says why it is unknown */
};

/*
 * Find out who has the name. Wait for the server's hello: DPDK 22.11's driver, if it is the
 * server, uses freed memory when a client disconnects before the hello.
 */
static enum occupant memif_ask(int fd, const char *path, bool is_abstract)
{
	struct sockaddr_un addr;
	const socklen_t len = memif_address(path, is_abstract, &addr);
	char hello[128];

	if (connect(fd, (const struct sockaddr *)&addr, len) == 0) {
		if (recv(fd, hello, sizeof(hello), 0) < 0)
			log_debug("memif socket %s: no hello", path);
		return OCCUPANT_SERVER;
	}
	switch (errno) {
	case ENOENT:
		return OCCUPANT_NONE;
	case ECONNREFUSED:
		return OCCUPANT_DEAD;
	case EAGAIN: /* its queue is full */
		return OCCUPANT_SERVER;
	default:
		return OCCUPANT_UNKNOWN;
	}
}

static enum occupant memif_find_occupant(const char *path, bool is_abstract)
{
	const struct timeval timeout = {.tv_sec = 1};
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	enum occupant occupant;
	int err;

	if (fd < 0)
		return OCCUPANT_UNKNOWN;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	/* For connect(), which waits while a stopped server's queue is full. */
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	occupant = memif_ask(fd, path, is_abstract);
	err = errno;
	close(fd);
	errno = err;
	return occupant;
}

/* Remove the socket of a killed server: bind() would fail. */
static int memif_remove_dead(const char *path)
{
	struct stat status;

	if (lstat(path, &status) == 0 && !S_ISSOCK(status.st_mode)) {
		log_error("memif socket %s is an ordinary file: choose another name", path);
		return -EEXIST;
	}
	if (unlink(path) == 0 || errno == ENOENT)
		return 0;
	log_error("cannot remove the old memif socket %s: %s", path, strerror(errno));
	return -EACCES;
}

static int memif_check_occupant(const char *path, enum occupant occupant)
{
	switch (occupant) {
	case OCCUPANT_NONE:
	case OCCUPANT_DEAD:
		return 0;
	case OCCUPANT_SERVER:
		log_error("another program is the server of memif socket %s: start this one with "
			  "role=client, or choose another socket",
			  path);
		return -EADDRINUSE;
	case OCCUPANT_UNKNOWN:
		break;
	}
	log_error("memif socket %s cannot be used: %s", path,
		  errno == EPROTOTYPE ? "its program does not speak memif" : strerror(errno));
	return -EADDRINUSE;
}

int memif_make_room(const char *path, bool is_abstract)
{
	enum occupant occupant = memif_find_occupant(path, is_abstract);
	int lock = -1, rc;

	/* A server that starts at the same moment has locked the place if its socket does not
	 * listen yet (server_listen). */
	if (occupant == OCCUPANT_DEAD && !is_abstract) {
		lock = dir_lock(path);
		occupant = memif_find_occupant(path, is_abstract);
	}
	rc = memif_check_occupant(path, occupant);
	if (rc == 0 && occupant == OCCUPANT_DEAD && !is_abstract)
		rc = memif_remove_dead(path);
	dir_unlock(lock);
	return rc;
}
