/* SPDX-License-Identifier: BSD-3-Clause */
/* rselect, implemented by rpoll. */
#include <poll.h>
#include <stdlib.h>
#include <sys/select.h>
#include <sys/time.h>

#include "rs.h"

#define READY_IN  (POLLIN | POLLRDNORM | POLLHUP | POLLERR)
#define READY_OUT (POLLOUT | POLLWRNORM | POLLERR)

static bool is_in(int fd, const fd_set *set)
{
	return set && FD_ISSET(fd, set);
}

static nfds_t collect(int nfds, const fd_set *in, const fd_set *out, const fd_set *except,
		      struct pollfd *fds)
{
	nfds_t count = 0;

	for (int fd = 0; fd < nfds; fd++) {
		short events = 0;

		if (is_in(fd, in))
			events |= POLLIN;
		if (is_in(fd, out))
			events |= POLLOUT;
		if (is_in(fd, except))
			events |= POLLPRI;
		if (events != 0)
			fds[count++] = (struct pollfd){.fd = fd, .events = events};
	}
	return count;
}

static int keep(int fd, fd_set *set, bool asked, bool ready)
{
	if (!asked)
		return 0;
	if (!ready)
		FD_CLR(fd, set);
	return ready;
}

/* Clear descriptors that are not ready. Return the number of ready ones, or -EBADF. */
static int tell(const struct pollfd *fds, nfds_t count, fd_set *in, fd_set *out, fd_set *except)
{
	int ready = 0;

	for (nfds_t i = 0; i < count; i++) {
		if (fds[i].revents & POLLNVAL)
			return -EBADF;
	}
	for (nfds_t i = 0; i < count; i++) {
		const struct pollfd *fd = &fds[i];

		ready += keep(fd->fd, in, fd->events & POLLIN, fd->revents & READY_IN);
		ready += keep(fd->fd, out, fd->events & POLLOUT, fd->revents & READY_OUT);
		ready += keep(fd->fd, except, fd->events & POLLPRI, fd->revents & POLLPRI);
	}
	return ready;
}

static int timeout_ms(const struct timeval *timeout)
{
	if (!timeout)
		return -1;
	if (timeout->tv_sec >= INT_MAX / 1000)
		return INT_MAX;
	return (int)(timeout->tv_sec * 1000 + (timeout->tv_usec + 999) / 1000);
}

/* Write back the time that is left, as Linux does. */
static void reduce(struct timeval *timeout, uint64_t began_ns)
{
	const uint64_t spent_us = (rs_wait_now_ns() - began_ns) / 1000;
	const struct timeval spent = {.tv_sec = (time_t)(spent_us / 1000000),
				      .tv_usec = (suseconds_t)(spent_us % 1000000)};

	if (timercmp(timeout, &spent, >))
		timersub(timeout, &spent, timeout);
	else
		timerclear(timeout);
}

int rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds, struct timeval *timeout)
{
	const uint64_t began_ns = rs_wait_now_ns();
	struct pollfd *fds;
	nfds_t count;
	int rc;

	if (nfds < 0 || nfds > FD_SETSIZE ||
	    (timeout && (timeout->tv_sec < 0 || timeout->tv_usec < 0)))
		return id_result(-EINVAL);
	fds = calloc((size_t)nfds + 1, sizeof(*fds));
	if (!fds)
		return id_result(-ENOMEM);
	count = collect(nfds, readfds, writefds, exceptfds, fds);
	rc = rpoll(fds, count, timeout_ms(timeout));
	rc = rc < 0 ? -errno : tell(fds, count, readfds, writefds, exceptfds);
	free(fds);
	if (timeout && rc >= 0)
		reduce(timeout, began_ns);
	return (int)rs_result(rc);
}
