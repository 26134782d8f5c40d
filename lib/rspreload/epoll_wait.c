/* SPDX-License-Identifier: BSD-3-Clause */
/* Wait for the events of an epoll instance that has rsockets. */
#include "epolls.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>

#include <rdma/rsocket.h>

#include "epoll_parts.h"
#include "real.h"

#define SECOND_NS INT64_C(1000000000)
#define NS_PER_MS 1000000
/* Events of epoll(7) that poll(2) has; the numbers are the same. */
#define POLLED \
	(POLLIN | POLLPRI | POLLOUT | POLLRDHUP | POLLRDNORM | POLLRDBAND | POLLWRNORM | POLLWRBAND)
/* Events that poll(2) tells unasked. */
#define UNASKED (EPOLLERR | EPOLLHUP)

_Static_assert(EPOLLIN == POLLIN && EPOLLOUT == POLLOUT && EPOLLPRI == POLLPRI &&
		       EPOLLERR == POLLERR && EPOLLHUP == POLLHUP && EPOLLRDHUP == POLLRDHUP &&
		       EPOLLRDNORM == POLLRDNORM && EPOLLWRNORM == POLLWRNORM,
	       "events need no translation");

/* The members of an instance at one moment. */
struct look {
	struct pollfd *fds; /* the members', and one more for the kernel's instance */
	struct member **members;
	unsigned int count;
};

/* The program's array of events. */
struct told {
	struct epoll_event *events;
	int max;
	int count;
};

int64_t epolls_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
}

static void look_free(struct look *look)
{
	free(look->fds);
	free(look->members);
}

static bool look_alloc(struct look *look, unsigned int count)
{
	look->fds = calloc(count + 1, sizeof(*look->fds));
	look->members = calloc(count + 1, sizeof(struct member *));
	look->count = 0;
	if (look->fds && look->members)
		return true;
	look_free(look);
	errno = ENOMEM;
	return false;
}

/* Begin to look at all members. False: errno. */
static bool look_begin(struct look *look, struct epoll *epoll)
{
	struct member *member;
	bool rc;

	pthread_mutex_lock(&epolls_lock);
	rc = look_alloc(look, epoll->count);
	if (rc) {
		TAILQ_FOREACH (member, &epoll->members, in_epoll) {
			member->users++;
			look->fds[look->count].fd = member->is_off ? -1 : member->rsocket;
			look->fds[look->count].events = (short)(member->events & POLLED);
			look->members[look->count++] = member;
		}
	}
	pthread_mutex_unlock(&epolls_lock);
	return rc;
}

static void look_end(struct look *look)
{
	pthread_mutex_lock(&epolls_lock);
	for (unsigned int i = 0; i < look->count; i++)
		member_put(look->members[i]);
	pthread_mutex_unlock(&epolls_lock);
	look_free(look);
}

/* Ask for what has not been told yet. A member whose hang-up was told sleeps until a call of the
 * program changes that: rpoll would return because of the hang-up. */
static void look_sleep(struct look *look)
{
	pthread_mutex_lock(&epolls_lock);
	for (unsigned int i = 0; i < look->count; i++) {
		const struct member *member = look->members[i];

		look->fds[i].events = (short)(member->events & POLLED & ~member->told);
		if (member->is_off || !member->epoll || (member->told & UNASKED))
			look->fds[i].fd = -1;
	}
	pthread_mutex_unlock(&epolls_lock);
}

/* Tell the events of a member. */
static void tell(struct member *member, uint32_t ready, struct told *told)
{
	ready &= member->events | UNASKED;
	if (member->events & EPOLLET) {
		member->told &= ready;
		ready &= ~member->told;
	}
	if (ready == 0 || told->count == told->max)
		return;
	told->events[told->count++] = (struct epoll_event){.events = ready, .data = member->data};
	if (member->events & EPOLLET)
		member->told |= ready;
	member->is_off = (member->events & EPOLLONESHOT) != 0;
	/* The next call begins with the others. */
	TAILQ_REMOVE(&member->epoll->members, member, in_epoll);
	TAILQ_INSERT_TAIL(&member->epoll->members, member, in_epoll);
}

static void tell_all(const struct look *look, struct told *told)
{
	for (unsigned int i = 0; i < look->count; i++) {
		struct member *member = look->members[i];
		const uint32_t revents = (uint16_t)look->fds[i].revents;

		if (member->epoll && !member->is_off && look->fds[i].fd >= 0)
			tell(member, revents & (POLLED | UNASKED), told);
	}
}

/* Return how many places of the program's array are for the kernel's descriptors: half of them if
 * rsockets are ready, so that neither kind waits for ever. */
static int kernel_places(struct epoll *epoll, const struct told *told, int ready)
{
	const int half = told->max / 2 + (told->max % 2 != 0 && epoll->turn++ % 2 != 0);

	return ready > half ? told->max - half : told->max - ready;
}

/* Remove the event of the doorbell. Return how many events are left. */
static int sift(const struct epoll *epoll, struct epoll_event *events, int count)
{
	eventfd_t unit;
	int left = 0;

	for (int i = 0; i < count; i++) {
		if (events[i].data.ptr == epoll)
			(void)eventfd_read(epoll->doorbell, &unit);
		else
			events[left++] = events[i];
	}
	return left;
}

int epolls_sift(int epfd, struct epoll_event *events, int count)
{
	struct epoll *epoll;

	pthread_mutex_lock(&epolls_lock);
	epoll = epolls_get(epfd);
	if (epoll) {
		count = sift(epoll, events, count);
		epolls_put(epoll);
	}
	pthread_mutex_unlock(&epolls_lock);
	return count;
}

/* Take events of the kernel's descriptors. Return 0 or -1 with errno. */
static int ask_kernel(struct epoll *epoll, int epfd, struct told *told, int places)
{
	const int count = places > 0 ? real()->epoll_wait(epfd, told->events, places, 0) : 0;

	told->count = count > 0 ? sift(epoll, told->events, count) : 0;
	return count < 0 ? -1 : 0;
}

/* Take the events of both kinds. `ready` rsockets seem to be ready. Return 0 or -1 with errno. */
static int take(struct epoll *epoll, int epfd, const struct look *look, int ready,
		struct told *told)
{
	const int places = kernel_places(epoll, told, ready);

	if (ask_kernel(epoll, epfd, told, places) != 0)
		return -1;
	tell_all(look, told);
	/* Perhaps all that is ready was told before. */
	return told->count == 0 && places < told->max ? ask_kernel(epoll, epfd, told, told->max)
						      : 0;
}

/* Look at everything without sleeping. Return 0 or -1 with errno. */
static int look_once(struct epoll *epoll, int epfd, struct told *told)
{
	struct look look;
	int ready, rc = -1;

	if (!look_begin(&look, epoll))
		return -1;
	ready = look.count > 0 ? rpoll(look.fds, look.count, 0) : 0;
	pthread_mutex_lock(&epolls_lock);
	if (ready >= 0)
		rc = take(epoll, epfd, &look, ready, told);
	pthread_mutex_unlock(&epolls_lock);
	look_end(&look);
	return rc;
}

static int ms_until(int64_t deadline_ns)
{
	const int64_t left_ns = deadline_ns - epolls_now_ns();

	if (deadline_ns == INT64_MAX)
		return -1;
	if (left_ns <= 0)
		return 0;
	return left_ns / NS_PER_MS < INT_MAX ? (int)((left_ns + NS_PER_MS - 1) / NS_PER_MS)
					     : INT_MAX;
}

/* Sleep until something may be ready. Return 0, or -1 with errno. */
static int sleep_once(struct epoll *epoll, int epfd, int64_t deadline_ns)
{
	struct look look;
	int rc;

	if (!look_begin(&look, epoll))
		return -1;
	look_sleep(&look);
	look.fds[look.count] = (struct pollfd){.fd = epfd, .events = POLLIN};
	rc = rpoll(look.fds, look.count + 1, ms_until(deadline_ns));
	look_end(&look);
	return rc < 0 ? -1 : 0;
}

static int wait_until(struct epoll *epoll, int epfd, struct told *told, int64_t deadline_ns)
{
	for (;;) {
		if (look_once(epoll, epfd, told) != 0)
			return -1;
		if (told->count > 0 || epolls_now_ns() >= deadline_ns)
			return told->count;
		if (sleep_once(epoll, epfd, deadline_ns) != 0)
			return -1;
	}
}

int epolls_wait(int epfd, struct epoll_event *events, int max, int64_t timeout_ns)
{
	const int64_t deadline_ns = timeout_ns < 0 || timeout_ns > INT64_MAX / 2
					    ? INT64_MAX
					    : epolls_now_ns() + timeout_ns;
	struct told told = {.events = events, .max = max};
	struct epoll *epoll;
	int rc;

	if (max <= 0 || !events) {
		errno = max <= 0 ? EINVAL : EFAULT;
		return -1;
	}
	pthread_mutex_lock(&epolls_lock);
	epoll = epolls_get(epfd);
	if (epoll)
		epoll->sleepers++;
	pthread_mutex_unlock(&epolls_lock);
	if (!epoll) {
		errno = EBADF;
		return -1;
	}
	rc = wait_until(epoll, epfd, &told, deadline_ns);
	pthread_mutex_lock(&epolls_lock);
	epoll->sleepers--;
	epolls_put(epoll);
	pthread_mutex_unlock(&epolls_lock);
	return rc;
}
