/* SPDX-License-Identifier: BSD-3-Clause */
/* Read, write and poll rsockets and other descriptors. */
#include "real.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rdma/rsocket.h>

#include "epolls.h"
#include "fds.h"

#define CHUNK	  16384 /* bytes of a file that one send call sends */
#define NS_PER_MS 1000000

/* Programs compiled with _FORTIFY_SOURCE call these functions. */
ssize_t __read_chk(int fd, void *buf, size_t len, size_t room);
ssize_t __recv_chk(int fd, void *buf, size_t len, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *buf, size_t len, size_t room, int flags, struct sockaddr *addr,
		       socklen_t *addr_len);
int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t room);
int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		const sigset_t *mask, size_t room);

ssize_t recv(int fd, void *buf, size_t len, int flags)
{
	return EITHER_READ(fd, recv, buf, len, flags);
}

ssize_t recvfrom(int fd, void *buf, size_t len, int flags, struct sockaddr *addr,
		 socklen_t *addr_len)
{
	return EITHER_READ(fd, recvfrom, buf, len, flags, addr, addr_len);
}

ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	return EITHER_READ(fd, recvmsg, msg, flags);
}

ssize_t read(int fd, void *buf, size_t len)
{
	return EITHER_READ(fd, read, buf, len);
}

ssize_t readv(int fd, const struct iovec *iov, int count)
{
	return EITHER_READ(fd, readv, iov, count);
}

ssize_t send(int fd, const void *buf, size_t len, int flags)
{
	return EITHER_SEND(fd, len, send, buf, len, flags);
}

ssize_t sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *addr,
	       socklen_t addr_len)
{
	return EITHER_SEND(fd, len, sendto, buf, len, flags, addr, addr_len);
}

/* Note that a vector was sent. */
static ssize_t has_sent(int rsocket, const struct iovec *iov, size_t count, ssize_t rc)
{
	size_t wanted = 0;

	for (size_t i = 0; i < count && rc >= 0; i++)
		wanted += iov[i].iov_len;
	return epolls_has_sent(rsocket, wanted, rc);
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	const int rsocket = REAL_RSOCKET(fd);
	ssize_t rc;

	if (rsocket < 0)
		return real()->sendmsg(fd, msg, flags);
	rc = rsendmsg(rsocket, msg, flags);
	return has_sent(rsocket, rc < 0 ? NULL : msg->msg_iov, rc < 0 ? 0 : msg->msg_iovlen, rc);
}

ssize_t write(int fd, const void *buf, size_t len)
{
	return EITHER_SEND(fd, len, write, buf, len);
}

ssize_t writev(int fd, const struct iovec *iov, int count)
{
	const int rsocket = REAL_RSOCKET(fd);

	if (rsocket < 0)
		return real()->writev(fd, iov, count);
	return has_sent(rsocket, iov, (size_t)count, rwritev(rsocket, iov, count));
}

ssize_t __read_chk(int fd, void *buf, size_t len, size_t room)
{
	if (len > room)
		abort();
	return read(fd, buf, len);
}

ssize_t __recv_chk(int fd, void *buf, size_t len, size_t room, int flags)
{
	if (len > room)
		abort();
	return recv(fd, buf, len, flags);
}

ssize_t __recvfrom_chk(int fd, void *buf, size_t len, size_t room, int flags, struct sockaddr *addr,
		       socklen_t *addr_len)
{
	if (len > room)
		abort();
	return recvfrom(fd, buf, len, flags, addr, addr_len);
}

/* Send bytes of a file, copied through memory. */
static ssize_t send_file(int rsocket, int file, off64_t *offset, size_t count)
{
	size_t sent = 0;
	char data[CHUNK];

	while (sent < count) {
		const size_t wanted = count - sent < CHUNK ? count - sent : CHUNK;
		const off64_t at = offset ? *offset : lseek64(file, 0, SEEK_CUR);
		const ssize_t got = pread64(file, data, wanted, at);
		const ssize_t done = got > 0 ? rsend(rsocket, data, (size_t)got, 0) : got;

		if (done <= 0)
			return sent > 0 ? (ssize_t)sent : done;
		if (offset)
			*offset += done;
		else
			(void)lseek64(file, done, SEEK_CUR);
		sent += (size_t)done;
	}
	return (ssize_t)sent;
}

ssize_t sendfile(int out, int in, off_t *offset, size_t count)
{
	if (fds_get(out) < 0)
		return real()->sendfile(out, in, offset, count);
	return epolls_has_sent(fds_get(out), count,
			       send_file(fds_get(out), in, (off64_t *)offset, count));
}

ssize_t sendfile64(int out, int in, off64_t *offset, size_t count)
{
	_Static_assert(sizeof(off_t) == sizeof(off64_t), "one call serves both");
	return sendfile(out, in, (off_t *)offset, count);
}

static bool has_rsockets(const struct pollfd *fds, nfds_t count)
{
	for (nfds_t i = 0; i < count; i++) {
		if (fds_get(fds[i].fd) >= 0)
			return true;
	}
	return false;
}

/* Poll with aliases replaced by the rsockets' own numbers. */
static int poll_mixed(struct pollfd *fds, nfds_t count, int timeout)
{
	struct pollfd *own = calloc(count, sizeof(*own));
	int rc;

	if (!own) {
		errno = ENOMEM;
		return -1;
	}
	for (nfds_t i = 0; i < count; i++) {
		const int rsocket = fds_get(fds[i].fd);

		own[i] = fds[i];
		own[i].fd = rsocket >= 0 ? rsocket : fds[i].fd;
	}
	rc = rpoll(own, count, timeout);
	for (nfds_t i = 0; i < count && rc >= 0; i++)
		fds[i].revents = own[i].revents;
	free(own);
	return rc;
}

int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	return has_rsockets(fds, count) && !REAL_OWN_CALLS() ? poll_mixed(fds, count, timeout)
							     : real()->poll(fds, count, timeout);
}

int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t room)
{
	if (count > room / sizeof(*fds))
		abort();
	return poll(fds, count, timeout);
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	sigset_t before;
	int ms = -1;
	int rc;

	if (!has_rsockets(fds, count) || REAL_OWN_CALLS())
		return real()->ppoll(fds, count, timeout, mask);
	if (timeout)
		ms = timeout->tv_sec < INT32_MAX / 1000
			     ? (int)(timeout->tv_sec * 1000 +
				     (timeout->tv_nsec + NS_PER_MS - 1) / NS_PER_MS)
			     : INT32_MAX;
	if (mask)
		pthread_sigmask(SIG_SETMASK, mask, &before);
	rc = poll_mixed(fds, count, ms);
	if (mask)
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		const sigset_t *mask, size_t room)
{
	if (count > room / sizeof(*fds))
		abort();
	return ppoll(fds, count, timeout, mask);
}

/* Return true if a set has an rsocket. An alias is polled by the rsocket's own number. */
static bool set_has_rsockets(int count, const fd_set *set)
{
	for (int fd = 0; set && fd < count && fd < FD_SETSIZE; fd++) {
		if (FD_ISSET(fd, set) && fds_get(fd) >= 0)
			return true;
	}
	return false;
}

struct sets {
	fd_set in;
	fd_set out;
	fd_set except;
};

static int translate(int count, const fd_set *from, fd_set *to)
{
	int max = 0;

	FD_ZERO(to);
	for (int fd = 0; from && fd < count; fd++) {
		const int rsocket = fds_get(fd);
		const int own = rsocket >= 0 ? rsocket : fd;

		if (!FD_ISSET(fd, from) || own >= FD_SETSIZE)
			continue;
		FD_SET(own, to);
		max = own >= max ? own + 1 : max;
	}
	return max;
}

static void translate_back(int count, fd_set *set, const fd_set *ready)
{
	for (int fd = 0; set && fd < count; fd++) {
		const int rsocket = fds_get(fd);

		if (FD_ISSET(fd, set) && !FD_ISSET(rsocket >= 0 ? rsocket : fd, ready))
			FD_CLR(fd, set);
	}
}

static int max_of(int a, int b)
{
	return a > b ? a : b;
}

int select(int count, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)
{
	struct sets own;
	int max, rc;

	if (!set_has_rsockets(count, in) && !set_has_rsockets(count, out) &&
	    !set_has_rsockets(count, except))
		return real()->select(count, in, out, except, timeout);
	/* Limit count: some programs pass the maximum number of descriptors, although their sets
	 * are shorter. */
	if (count > FD_SETSIZE)
		count = FD_SETSIZE;
	max = max_of(translate(count, in, &own.in), max_of(translate(count, out, &own.out),
							   translate(count, except, &own.except)));
	rc = rselect(max, &own.in, &own.out, &own.except, timeout);
	if (rc < 0)
		return rc;
	translate_back(count, in, &own.in);
	translate_back(count, out, &own.out);
	translate_back(count, except, &own.except);
	return rc;
}

int pselect(int count, fd_set *in, fd_set *out, fd_set *except, const struct timespec *timeout,
	    const sigset_t *mask)
{
	struct timeval time, *limit = NULL;
	sigset_t before;
	int rc;

	if (!set_has_rsockets(count, in) && !set_has_rsockets(count, out) &&
	    !set_has_rsockets(count, except))
		return real()->pselect(count, in, out, except, timeout, mask);
	if (timeout) {
		time = (struct timeval){.tv_sec = timeout->tv_sec,
					.tv_usec = (timeout->tv_nsec + 999) / 1000};
		limit = &time;
	}
	if (mask)
		pthread_sigmask(SIG_SETMASK, mask, &before);
	rc = select(count, in, out, except, limit);
	if (mask)
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}
