/* SPDX-License-Identifier: BSD-3-Clause */
/* The socket calls. IP stream sockets become rsockets; the C library handles all other sockets. */
#include "real.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdlib.h>

#include <rdma/rsocket.h>

#include "epolls.h"
#include "fds.h"

/* Set the size of a queue from an environment variable. */
static void set_size(int rsocket, int option, const char *variable)
{
	const char *text = getenv(variable);
	const int value = text ? atoi(text) : 0;

	if (value > 0)
		(void)rsetsockopt(rsocket, SOL_RDMA, option, &value, sizeof(value));
}

static bool is_for_us(int domain, int type, int protocol)
{
	return (domain == AF_INET || domain == AF_INET6) &&
	       (type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) == SOCK_STREAM &&
	       (protocol == 0 || protocol == IPPROTO_TCP);
}

int socket(int domain, int type, int protocol)
{
	int fd;

	if (!is_for_us(domain, type, protocol) || REAL_OWN_CALLS())
		return real()->socket(domain, type, protocol);
	fd = rsocket(domain, type, protocol);
	if (fd < 0)
		return -1;
	if (!fds_add(fd)) {
		(void)rclose(fd);
		errno = EMFILE;
		return -1;
	}
	set_size(fd, RDMA_SQSIZE, "RS_SQ_SIZE");
	set_size(fd, RDMA_RQSIZE, "RS_RQ_SIZE");
	set_size(fd, RDMA_INLINE, "RS_INLINE");
	return fd;
}

int accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	const int listener = fds_get(fd);
	int child;

	if (listener < 0)
		return real()->accept4(fd, addr, len, flags);
	if (flags & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) {
		errno = EINVAL;
		return -1;
	}
	child = (int)epolls_has_read(listener, raccept(listener, addr, len));
	if (child < 0)
		return -1;
	if (!fds_add(child)) {
		(void)rclose(child);
		errno = EMFILE;
		return -1;
	}
	if (flags & SOCK_NONBLOCK)
		(void)rfcntl(child, F_SETFL, O_NONBLOCK);
	if (flags & SOCK_CLOEXEC)
		(void)rfcntl(child, F_SETFD, FD_CLOEXEC);
	return child;
}

int accept(int fd, struct sockaddr *addr, socklen_t *len)
{
	return fds_get(fd) >= 0 ? accept4(fd, addr, len, 0) : real()->accept(fd, addr, len);
}

int bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	return EITHER(fd, bind, addr, len);
}

int listen(int fd, int backlog)
{
	return EITHER(fd, listen, backlog);
}

int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	return REAL_RSOCKET(fd) >= 0
		       ? epolls_has_begun(fds_get(fd), rconnect(fds_get(fd), addr, len))
		       : real()->connect(fd, addr, len);
}

int shutdown(int fd, int how)
{
	return EITHER(fd, shutdown, how);
}

int getpeername(int fd, struct sockaddr *addr, socklen_t *len)
{
	return EITHER(fd, getpeername, addr, len);
}

int getsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
	return EITHER(fd, getsockname, addr, len);
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	return EITHER(fd, setsockopt, level, name, value, len);
}

int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	return EITHER(fd, getsockopt, level, name, value, len);
}

static int duplicate(int fd, int other)
{
	if (other >= 0 && !fds_alias(other, fds_get(fd))) {
		(void)real()->close(other);
		errno = EMFILE;
		return -1;
	}
	return other;
}

static int duplicate_above(int fd, int cmd, long arg)
{
	return duplicate(fd, real()->fcntl(fd, cmd, arg));
}

/* Handle the commands that rsockets support. The argument is passed in its widest type. */
static int control(int fd, int cmd, long arg)
{
	if (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC)
		return duplicate_above(fd, cmd, arg);
	if (cmd == F_GETFD || cmd == F_SETFD)
		return real()->fcntl(fd, cmd, arg);
	return rfcntl(fds_get(fd), cmd, (int)arg);
}

/* Note a duplicate of a descriptor that is no rsocket. */
static int duplicate_other(int fd, int made)
{
	epolls_alias(made, fd);
	return made;
}

static int control_other(int fd, int cmd, int rc)
{
	return cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC ? duplicate_other(fd, rc) : rc;
}

#define FCNTL(name)                                                                                \
	int name(int fd, int cmd, ...)                                                             \
	{                                                                                          \
		va_list args;                                                                      \
		long arg;                                                                          \
                                                                                                   \
		va_start(args, cmd);                                                               \
		arg = va_arg(args, long);                                                          \
		va_end(args);                                                                      \
		return REAL_RSOCKET(fd) >= 0 ? control(fd, cmd, arg)                               \
					     : control_other(fd, cmd, real()->name(fd, cmd, arg)); \
	}
FCNTL(fcntl)
FCNTL(fcntl64)

/* Count the bytes that a read would return, without an error that is pending. */
static int count_bytes(int rsocket, int *count)
{
	const ssize_t ready = rrecv(rsocket, NULL, INT_MAX, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
	int listens = 0;
	socklen_t len = sizeof(listens);

	if (rgetsockopt(rsocket, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) == 0 && listens) {
		errno = EINVAL;
		return -1;
	}
	*count = ready > 0 ? (int)ready : 0;
	return 0;
}

/* Handle FIONBIO, which some programs use instead of O_NONBLOCK, and FIONREAD. */
static int control_io(int fd, unsigned long request, void *arg)
{
	switch (request) {
	case FIONBIO:
		return rfcntl(fd, F_SETFL, *(int *)arg ? O_NONBLOCK : 0);
	case FIONREAD:
		return count_bytes(fd, arg);
	case FIOCLEX:
		return rfcntl(fd, F_SETFD, FD_CLOEXEC);
	case FIONCLEX:
		return rfcntl(fd, F_SETFD, 0);
	default:
		errno = ENOTTY;
		return -1;
	}
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	return REAL_RSOCKET(fd) >= 0 ? control_io(fds_get(fd), request, arg)
				     : real()->ioctl(fd, request, arg);
}

static int close_number(int fd)
{
	int rsocket;
	const bool last = fds_remove(fd, &rsocket);

	if (rsocket < 0) {
		epolls_close(fd);
		return real()->close(fd);
	}
	if (last)
		epolls_forget(rsocket);
	/* Keep the own number of the rsocket open while aliases of it exist. */
	if (fd != rsocket)
		(void)real()->close(fd);
	return last ? rclose(rsocket) : 0;
}

int close(int fd)
{
	return REAL_OWN_CALLS() ? real()->close(fd) : close_number(fd);
}

int dup(int fd)
{
	return fds_get(fd) >= 0 ? duplicate(fd, real()->dup(fd))
				: duplicate_other(fd, real()->dup(fd));
}

/* Check everything before `other` is closed: a call that fails must leave it open. */
static int duplicate_to(int fd, int other, int flags)
{
	int made;

	if (flags & ~O_CLOEXEC) {
		errno = EINVAL;
		return -1;
	}
	if (real()->fcntl(fd, F_GETFD) < 0)
		return -1;
	if (fds_get(fd) >= 0 && fds_get(fd) == fds_get(other))
		return real()->fcntl(other, F_SETFD, flags ? FD_CLOEXEC : 0) < 0 ? -1 : other;
	if (fds_has_aliases(other)) {
		errno = EBUSY;
		return -1;
	}
	if (fds_get(other) >= 0)
		(void)close_number(other);
	made = real()->dup3(fd, other, flags);
	if (made >= 0)
		epolls_close(other);
	return fds_get(fd) >= 0 ? duplicate(fd, made) : duplicate_other(fd, made);
}

int dup2(int fd, int other)
{
	return fd == other ? real()->dup2(fd, other) : duplicate_to(fd, other, 0);
}

int dup3(int fd, int other, int flags)
{
	return fd == other ? real()->dup3(fd, other, flags) : duplicate_to(fd, other, flags);
}
