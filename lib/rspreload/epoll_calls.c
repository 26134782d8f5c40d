/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of epoll(7). */
#include "real.h"

#include <limits.h>
#include <signal.h>

#include "epolls.h"
#include "fds.h"

#define SECOND_NS INT64_C(1000000000)
#define NS_PER_MS 1000000

static int64_t ns_of_ms(int ms)
{
	return ms < 0 ? -1 : (int64_t)ms * NS_PER_MS;
}

static int64_t ns_of(const struct timespec *time)
{
	if (!time)
		return -1;
	return time->tv_sec < INT64_MAX / 2 / SECOND_NS ? time->tv_sec * SECOND_NS + time->tv_nsec
							: INT64_MAX / 2;
}

/* End a wait in the kernel. If the instance has got its first rsocket meanwhile, wait for the
 * rsockets too, for the rest of the time. */
static int finish(int epfd, struct epoll_event *events, int max, int64_t timeout_ns,
		  int64_t began_ns, int rc)
{
	const int64_t spent_ns = epolls_now_ns() - began_ns;

	if (rc <= 0 || !epolls_has(epfd))
		return rc;
	rc = epolls_sift(epfd, events, rc);
	if (rc > 0)
		return rc;
	if (timeout_ns >= 0)
		timeout_ns = timeout_ns > spent_ns ? timeout_ns - spent_ns : 0;
	return epolls_wait(epfd, events, max, timeout_ns);
}

int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	return REAL_RSOCKET(fd) >= 0 ? epolls_ctl(epfd, op, fd, event)
				     : real()->epoll_ctl(epfd, op, fd, event);
}

int epoll_wait(int epfd, struct epoll_event *events, int max, int timeout)
{
	const int64_t began_ns = epolls_now_ns();

	if (REAL_OWN_CALLS())
		return real()->epoll_wait(epfd, events, max, timeout);
	if (epolls_has(epfd))
		return epolls_wait(epfd, events, max, ns_of_ms(timeout));
	return finish(epfd, events, max, ns_of_ms(timeout), began_ns,
		      real()->epoll_wait(epfd, events, max, timeout));
}

/* Wait with a signal mask. */
static int wait_masked(int epfd, struct epoll_event *events, int max, int64_t timeout_ns,
		       const sigset_t *mask)
{
	sigset_t before;
	int rc;

	if (mask)
		pthread_sigmask(SIG_SETMASK, mask, &before);
	rc = epolls_wait(epfd, events, max, timeout_ns);
	if (mask)
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

int epoll_pwait(int epfd, struct epoll_event *events, int max, int timeout, const sigset_t *mask)
{
	const int64_t began_ns = epolls_now_ns();

	if (REAL_OWN_CALLS())
		return real()->epoll_pwait(epfd, events, max, timeout, mask);
	if (epolls_has(epfd))
		return wait_masked(epfd, events, max, ns_of_ms(timeout), mask);
	return finish(epfd, events, max, ns_of_ms(timeout), began_ns,
		      real()->epoll_pwait(epfd, events, max, timeout, mask));
}

int epoll_pwait2(int epfd, struct epoll_event *events, int max, const struct timespec *timeout,
		 const sigset_t *mask)
{
	const int64_t began_ns = epolls_now_ns();

	if (REAL_OWN_CALLS())
		return real()->epoll_pwait2(epfd, events, max, timeout, mask);
	if (epolls_has(epfd))
		return wait_masked(epfd, events, max, ns_of(timeout), mask);
	return finish(epfd, events, max, ns_of(timeout), began_ns,
		      real()->epoll_pwait2(epfd, events, max, timeout, mask));
}
