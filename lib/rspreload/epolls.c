/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Epoll instances with rsockets, and the rsockets in them.
 *
 * An instance has an eventfd, which is in the kernel's instance too. It wakes the threads that
 * sleep in epoll_wait, in the kernel or in rpoll, when another thread changes the members.
 */
#include "epolls.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "epoll_parts.h"
#include "fds.h"
#include "real.h"

#define EDGES_IN  (EPOLLIN | EPOLLRDNORM)
#define EDGES_OUT (EPOLLOUT | EPOLLWRNORM)

LIST_HEAD(member_list, member);

static struct epoll *epolls[FDS_MAX];	    /* by descriptor */
static struct member_list members[FDS_MAX]; /* by rsocket */
/* Members with EPOLLET, by rsocket; atomic: sends and receives read it without the lock. */
static uint32_t edges[FDS_MAX];
pthread_mutex_t epolls_lock = PTHREAD_MUTEX_INITIALIZER;

static void lock(void)
{
	pthread_mutex_lock(&epolls_lock);
}

static void unlock(void)
{
	pthread_mutex_unlock(&epolls_lock);
}

/* Hold the lock during fork(): otherwise another thread could hold it, which does not exist in the
 * child. */
static void __attribute__((constructor)) prepare_fork(void)
{
	pthread_atfork(lock, unlock, unlock);
}

static bool is_number(int fd)
{
	return fd >= 0 && fd < FDS_MAX;
}

bool epolls_has(int epfd)
{
	return is_number(epfd) && __atomic_load_n(&epolls[epfd], __ATOMIC_ACQUIRE) != NULL;
}

struct epoll *epolls_get(int epfd)
{
	struct epoll *epoll = is_number(epfd) ? epolls[epfd] : NULL;

	if (epoll)
		epoll->refs++;
	return epoll;
}

static void wake(const struct epoll *epoll)
{
	const int saved_errno = errno;

	if (epoll->sleepers > 0)
		(void)eventfd_write(epoll->doorbell, 1);
	errno = saved_errno;
}

static void set_events(struct member *member, uint32_t events)
{
	const int is_edge = (events & EPOLLET) != 0, was_edge = (member->events & EPOLLET) != 0;

	__atomic_fetch_add(&edges[member->rsocket], (uint32_t)(is_edge - was_edge),
			   __ATOMIC_RELAXED);
	member->events = events;
}

void member_put(struct member *member)
{
	if (--member->users == 0)
		free(member);
}

static void member_end(struct member *member)
{
	set_events(member, 0);
	TAILQ_REMOVE(&member->epoll->members, member, in_epoll);
	LIST_REMOVE(member, in_rsocket);
	member->epoll->count--;
	member->epoll = NULL;
	member_put(member);
}

void epolls_put(struct epoll *epoll)
{
	if (--epoll->refs > 0)
		return;
	while (!TAILQ_EMPTY(&epoll->members))
		member_end(TAILQ_FIRST(&epoll->members));
	(void)real()->close(epoll->doorbell);
	free(epoll);
}

/* Make an instance for a descriptor. Return NULL on failure, and set errno. */
static struct epoll *make(int epfd)
{
	struct epoll *epoll = calloc(1, sizeof(*epoll));
	struct epoll_event doorbell = {.events = EPOLLIN, .data.ptr = epoll};

	if (!epoll) {
		errno = ENOMEM;
		return NULL;
	}
	epoll->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	/* epoll_ctl fails if the descriptor is not an epoll instance. */
	if (epoll->doorbell < 0 ||
	    real()->epoll_ctl(epfd, EPOLL_CTL_ADD, epoll->doorbell, &doorbell) != 0) {
		const int saved_errno = errno;

		if (epoll->doorbell >= 0)
			(void)real()->close(epoll->doorbell);
		free(epoll);
		errno = saved_errno;
		return NULL;
	}
	TAILQ_INIT(&epoll->members);
	epoll->refs = 1;
	__atomic_store_n(&epolls[epfd], epoll, __ATOMIC_RELEASE);
	/* Wake the threads that sleep in the kernel's epoll_wait: they must look here, too. */
	(void)eventfd_write(epoll->doorbell, 1);
	return epoll;
}

static struct member *find(const struct epoll *epoll, int fd, int rsocket)
{
	struct member *member;

	LIST_FOREACH (member, &members[rsocket], in_rsocket) {
		if (member->epoll == epoll && member->fd == fd)
			return member;
	}
	return NULL;
}

static int add(struct epoll *epoll, int fd, int rsocket, const struct epoll_event *event)
{
	struct member *member = calloc(1, sizeof(*member));

	if (!member)
		return ENOMEM;
	member->epoll = epoll;
	member->users = 1;
	member->fd = fd;
	member->rsocket = rsocket;
	member->data = event->data;
	set_events(member, event->events);
	TAILQ_INSERT_TAIL(&epoll->members, member, in_epoll);
	LIST_INSERT_HEAD(&members[rsocket], member, in_rsocket);
	epoll->count++;
	return 0;
}

/* Change the members. Return an errno. */
static int change(struct epoll *epoll, int op, int fd, int rsocket, const struct epoll_event *event)
{
	struct member *member = find(epoll, fd, rsocket);

	switch (op) {
	case EPOLL_CTL_ADD:
		return member ? EEXIST : add(epoll, fd, rsocket, event);
	case EPOLL_CTL_MOD:
		if (!member)
			return ENOENT;
		set_events(member, event->events);
		member->data = event->data;
		member->told = 0;
		member->is_off = false;
		return 0;
	default:
		if (!member)
			return ENOENT;
		member_end(member);
		return 0;
	}
}

static int control(int epfd, int op, int fd, const struct epoll_event *event)
{
	const int rsocket = fds_get(fd);
	struct epoll *epoll = epolls[epfd];
	int rc;

	if (rsocket < 0)
		return EBADF;
	if (!epoll && op != EPOLL_CTL_ADD)
		return ENOENT;
	if (!epoll)
		epoll = make(epfd);
	if (!epoll)
		return errno;
	rc = change(epoll, op, fd, rsocket, event);
	wake(epoll);
	return rc;
}

int epolls_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	int rc;

	if (epfd < 0)
		rc = EBADF;
	else if (!is_number(epfd) || fds_get(epfd) >= 0 ||
		 (op != EPOLL_CTL_ADD && op != EPOLL_CTL_MOD && op != EPOLL_CTL_DEL))
		rc = EINVAL;
	else if (!event && op != EPOLL_CTL_DEL)
		rc = EFAULT;
	else {
		lock();
		rc = control(epfd, op, fd, event);
		unlock();
	}
	if (rc == 0)
		return 0;
	errno = rc;
	return -1;
}

void epolls_close(int epfd)
{
	struct epoll *epoll;

	if (!epolls_has(epfd))
		return;
	lock();
	epoll = epolls[epfd];
	if (epoll) {
		__atomic_store_n(&epolls[epfd], NULL, __ATOMIC_RELEASE);
		epolls_put(epoll);
	}
	unlock();
}

void epolls_alias(int fd, int original)
{
	if (!is_number(fd) || !epolls_has(original))
		return;
	lock();
	__atomic_store_n(&epolls[fd], epolls_get(original), __ATOMIC_RELEASE);
	unlock();
}

void epolls_forget(int rsocket)
{
	lock();
	while (!LIST_EMPTY(&members[rsocket]))
		member_end(LIST_FIRST(&members[rsocket]));
	unlock();
}

/* Let events of an rsocket be reported again. */
static void tell_again(int rsocket, uint32_t events)
{
	struct member *member;

	/* Another thread may have closed it meanwhile. */
	if (!is_number(rsocket) || __atomic_load_n(&edges[rsocket], __ATOMIC_RELAXED) == 0)
		return;
	lock();
	LIST_FOREACH (member, &members[rsocket], in_rsocket) {
		if (!(member->told & events))
			continue;
		member->told &= ~events;
		wake(member->epoll);
	}
	unlock();
}

ssize_t epolls_has_read(int rsocket, ssize_t rc)
{
	tell_again(rsocket, EDGES_IN);
	return rc;
}

ssize_t epolls_has_sent(int rsocket, size_t wanted, ssize_t rc)
{
	if (rc < 0 || (size_t)rc < wanted)
		tell_again(rsocket, EDGES_OUT);
	return rc;
}

int epolls_has_begun(int rsocket, int rc)
{
	tell_again(rsocket, UINT32_MAX);
	return rc;
}
