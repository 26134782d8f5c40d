/* SPDX-License-Identifier: BSD-3-Clause */
/* How calls wait for rsockets, and rpoll: poll rsockets together with any other descriptors; and
 * rselect, which it implements. */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <rte_pause.h>

#include "base/monotonic.h"
#include "rs.h"
#include "rs_datagram.h"

#define NS_PER_MS 1000000
#define NS_PER_US 1000
#define NS_PER_S  1000000000
#define CHANNELS  4 /* most channels handled after one sleep */
#define LOOK_NS	  UINT64_C(10000000)

uint64_t rs_wait_now_ns(void)
{
	return monotonic_ns();
}

void rs_wait_changed(struct rsocket *s)
{
	const int saved_errno = errno;
	struct rs_waker *waker;

	LIST_FOREACH (waker, &s->wakers, next)
		(void)eventfd_write(waker->fd, 1);
	errno = saved_errno;
}

/* Poll the event channel, so that a program that polls and never sleeps notices the death of a
 * peer. */
static void look_at_channel(struct rsocket *s)
{
	const uint64_t now_ns = rs_wait_now_ns();
	struct pollfd fd = {.fd = s->channel->fd, .events = POLLIN};

	if (now_ns - s->looked_ns < LOOK_NS)
		return;
	s->looked_ns = now_ns;
	if (poll(&fd, 1, 0) > 0)
		rs_connect_take_events(s);
}

void rs_wait_progress(struct rsocket *s)
{
	if (s->datagrams)
		rs_datagram_poll(s);
	/* Handle events first: messages that arrived before the connection was established wait in
	 * the queue. */
	if (rs_is_opening(s))
		rs_connect_take_events(s);
	if (s->link.qp)
		rs_message_poll(s);
	if (s->state == RS_CONNECTED)
		look_at_channel(s);
}

void rs_wait_arm(struct rsocket *s)
{
	if (s->datagrams)
		rs_datagram_arm(s);
	if (s->link.cq)
		(void)ibv_req_notify_cq(s->link.cq, 0);
}

/* Drop the events: they only wake the thread, and a poll finds the completions. */
static void drop_cq_events(struct rsocket *s)
{
	struct ibv_cq *cq;
	void *context;

	while (ibv_get_cq_event(s->link.channel, &cq, &context) == 0)
		s->link.unacked++;
}

/* Drop the events of the completion queue, and handle those of the connection manager. */
static void take_stream_events(struct rsocket *s)
{
	struct epoll_event ready[CHANNELS];
	bool has_events = false;
	int count;

	count = epoll_wait(s->fd, ready, CHANNELS, 0);
	for (int i = 0; i < count; i++) {
		if (s->link.channel && ready[i].data.fd == s->link.channel->fd)
			drop_cq_events(s);
		else if (ready[i].data.fd == s->channel->fd)
			has_events = s->state != RS_LISTENING;
	}
	if (has_events)
		rs_connect_take_events(s);
}

void rs_wait_woken(struct rsocket *s)
{
	if (s->datagrams)
		rs_datagram_drop_events(s);
	else
		take_stream_events(s);
	/*
	 * An event that was dropped may belong to a thread that has armed the queue, has polled the
	 * event's completions itself, and sleeps now. The poll below then finds nothing and does
	 * not wake that thread, so request the next event for it.
	 */
	if (!LIST_EMPTY(&s->wakers))
		rs_wait_arm(s);
	rs_wait_progress(s);
}

static uint64_t deadline_after(int timeout_ms)
{
	return timeout_ms < 0 ? UINT64_MAX : rs_wait_now_ns() + (uint64_t)timeout_ms * NS_PER_MS;
}

/* Sleep without the lock until a descriptor is readable. Return 0, -EAGAIN after the deadline, or
 * -EINTR. */
static int sleep_once(struct rsocket *s, struct rs_waker *waker, uint64_t deadline_ns)
{
	struct pollfd fds[] = {{.fd = s->fd, .events = POLLIN},
			       {.fd = waker->fd, .events = POLLIN}};
	const uint64_t now_ns = rs_wait_now_ns();
	struct timespec left, *timeout = NULL;
	eventfd_t unit;
	int rc;

	if (deadline_ns != UINT64_MAX) {
		const uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;

		left.tv_sec = (time_t)(left_ns / NS_PER_S);
		left.tv_nsec = (long)(left_ns % NS_PER_S);
		timeout = &left;
	}
	LIST_INSERT_HEAD(&s->wakers, waker, next);
	pthread_mutex_unlock(&s->lock);
	devices_wait();
	rc = ppoll(fds, 2, timeout, NULL);
	if (rc < 0)
		rc = -errno;
	pthread_mutex_lock(&s->lock);
	LIST_REMOVE(waker, next);
	if (fds[1].revents)
		(void)eventfd_read(waker->fd, &unit);
	if (rc <= 0)
		return rc == 0 ? -EAGAIN : rc;
	rs_wait_woken(s);
	return 0;
}

static int sleep_for(struct rsocket *s, rs_test test, uint64_t deadline_ns)
{
	struct rs_waker waker = {.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
	int rc = waker.fd < 0 ? -errno : 0;

	while (rc == 0) {
		rs_wait_arm(s);
		rs_wait_progress(s);
		if (test(s) || s->closed)
			break;
		rc = sleep_once(s, &waker, deadline_ns);
		if (test(s) || s->closed) {
			rc = 0;
			break;
		}
	}
	if (waker.fd >= 0)
		close(waker.fd);
	return rc;
}

/* Poll for spin_us, because a sleep costs more. Return true if the wait is over. */
static bool spin_for(struct rsocket *s, rs_test test)
{
	const uint64_t end_ns = rs_wait_now_ns() + (uint64_t)s->options.spin_us * NS_PER_US;

	do {
		/* Give other threads a chance to take the lock. */
		pthread_mutex_unlock(&s->lock);
		rte_pause();
		pthread_mutex_lock(&s->lock);
		rs_wait_progress(s);
		if (test(s) || s->closed)
			return true;
	} while (rs_wait_now_ns() < end_ns);
	return false;
}

int rs_wait_out(struct rsocket *s, rs_test test, int timeout_ms)
{
	const uint64_t deadline_ns = deadline_after(timeout_ms);
	int rc;

	do {
		const uint64_t now_ns = rs_wait_now_ns();
		const uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;

		if (timeout_ms >= 0)
			timeout_ms = (int)((left_ns + NS_PER_MS - 1) / NS_PER_MS);
		rc = rs_wait_for(s, test, false, timeout_ms);
	} while (rc == -EINTR);
	return rc;
}

int rs_wait_for(struct rsocket *s, rs_test test, bool nonblock, int timeout_ms)
{
	int rc = 0;

	rs_wait_progress(s);
	if (!test(s) && !s->closed) {
		if (nonblock)
			rc = -EAGAIN;
		else if (!spin_for(s, test))
			rc = sleep_for(s, test, deadline_after(timeout_ms));
	}
	if (s->closed)
		rc = -EBADF;
	return rc;
}

#define NS_PER_US 1000
#define NS_PER_MS 1000000

/* A descriptor that the program polls. */
struct entry {
	struct rsocket *s; /* NULL: a kernel descriptor */
	struct rs_waker waker;
	bool waits; /* the waker is in the rsocket's list */
};

struct polling {
	struct pollfd *fds;  /* the program's */
	struct pollfd *real; /* descriptors to sleep on: one for each of fds, and the waker */
	struct entry *entries;
	nfds_t count;
	int waker;
	bool has_others;  /* there are kernel descriptors */
	uint32_t spin_us; /* polling time before the call sleeps */
};

/* Return the events that poll(2) would report. */
static short rs_poll_events(const struct rsocket *s, short events)
{
	const short in = POLLIN | POLLRDNORM, out = POLLOUT | POLLWRNORM;
	short ready = 0;

	if (s->closed)
		return POLLNVAL;
	if (s->datagrams)
		return rs_datagram_poll_events(s, events);
	if (s->state == RS_LISTENING) {
		if (rs_listen_is_lost(s))
			return (short)(POLLERR | (events & in));
		return STAILQ_EMPTY(&s->backlog) ? 0 : events & in;
	}
	if (s->state < RS_ADDRESS)
		return (short)(POLLHUP | (events & out));
	if (rs_is_opening(s))
		return 0;
	if (rs_recv_is_ready(s))
		ready |= events & (in | POLLRDHUP);
	if (!(s->shut & (RS_SHUT_PEER | RS_SHUT_READ)) && s->state == RS_CONNECTED)
		ready &= ~POLLRDHUP;
	if (rs_send_is_ready(s))
		ready |= events & out;
	/* Report a hang-up only after all data is read: programs take it for the end of the stream.
	 */
	if ((s->state == RS_ENDED || rs_is_over(s->shut)) && s->in.ready == 0)
		ready |= POLLHUP;
	return (short)(s->error ? ready | POLLERR : ready);
}

/* Return true if an rsocket is ready. If it is not, and the caller is about to sleep, put the waker
 * into its list. */
static bool look_at(struct polling *polling, nfds_t i, bool sleeps)
{
	struct entry *entry = &polling->entries[i];
	struct pollfd *fd = &polling->fds[i];

	pthread_mutex_lock(&entry->s->lock);
	if (sleeps)
		rs_wait_arm(entry->s);
	rs_wait_progress(entry->s);
	fd->revents = rs_poll_events(entry->s, fd->events);
	if (sleeps && fd->revents == 0 && !entry->waits) {
		entry->waker.fd = polling->waker;
		LIST_INSERT_HEAD(&entry->s->wakers, &entry->waker, next);
		entry->waits = true;
	}
	pthread_mutex_unlock(&entry->s->lock);
	return fd->revents != 0;
}

static int look_at_all(struct polling *polling, bool sleeps)
{
	int ready = 0;

	for (nfds_t i = 0; i < polling->count; i++) {
		if (polling->entries[i].s)
			ready += look_at(polling, i, sleeps);
	}
	return ready;
}

/* Poll the kernel descriptors; if `rsockets` is set, also the descriptors of the rsockets. */
static int ask_kernel(struct polling *polling, bool rsockets, const struct timespec *timeout)
{
	int ready = 0;
	int rc;

	for (nfds_t i = 0; i < polling->count; i++) {
		const bool is_ours = polling->entries[i].s != NULL;

		polling->real[i] = polling->fds[i];
		if (is_ours)
			polling->real[i] = (struct pollfd){.fd = rsockets ? polling->fds[i].fd : -1,
							   .events = POLLIN};
	}
	polling->real[polling->count] = (struct pollfd){.fd = polling->waker, .events = POLLIN};
	rc = ppoll(polling->real, polling->count + 1, timeout, NULL);
	if (rc < 0)
		return -errno;
	for (nfds_t i = 0; i < polling->count; i++) {
		if (polling->entries[i].s)
			continue;
		polling->fds[i].revents = polling->real[i].revents;
		ready += polling->real[i].revents != 0;
	}
	return ready;
}

static int look_everywhere(struct polling *polling)
{
	static const struct timespec now = {0};
	const int ready = look_at_all(polling, false);
	const int others = polling->has_others ? ask_kernel(polling, false, &now) : 0;

	return others < 0 ? others : ready + others;
}

static void stop_waiting(struct polling *polling)
{
	eventfd_t unit;

	for (nfds_t i = 0; i < polling->count; i++) {
		struct entry *entry = &polling->entries[i];

		if (!entry->waits)
			continue;
		pthread_mutex_lock(&entry->s->lock);
		LIST_REMOVE(&entry->waker, next);
		entry->waits = false;
		if (polling->real[i].revents)
			rs_wait_woken(entry->s);
		pthread_mutex_unlock(&entry->s->lock);
	}
	(void)eventfd_read(polling->waker, &unit);
}

static int polling_sleep(struct polling *polling, uint64_t deadline_ns)
{
	const uint64_t now_ns = rs_wait_now_ns();
	const uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
	const struct timespec left = {.tv_sec = (time_t)(left_ns / (1000 * NS_PER_MS)),
				      .tv_nsec = (long)(left_ns % (1000 * NS_PER_MS))};
	int rc;

	devices_wait();
	rc = ask_kernel(polling, true, deadline_ns == UINT64_MAX ? NULL : &left);
	stop_waiting(polling);
	return rc;
}

static int sleep_until(struct polling *polling, uint64_t deadline_ns)
{
	int rc;

	polling->waker = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (polling->waker < 0)
		return -errno;
	for (;;) {
		if (look_at_all(polling, true) > 0) {
			for (nfds_t i = 0; i < polling->count; i++)
				polling->real[i].revents = 0;
			stop_waiting(polling);
			rc = look_everywhere(polling);
		} else {
			rc = polling_sleep(polling, deadline_ns);
			if (rc >= 0)
				rc = look_everywhere(polling);
		}
		if (rc != 0 || rs_wait_now_ns() >= deadline_ns)
			break;
	}
	close(polling->waker);
	polling->waker = -1;
	return rc;
}

static int poll_until(struct polling *polling, uint64_t deadline_ns)
{
	const uint64_t spin_end_ns = rs_wait_now_ns() + (uint64_t)polling->spin_us * NS_PER_US;
	uint64_t now_ns;
	int rc;

	do {
		rc = look_everywhere(polling);
		now_ns = rs_wait_now_ns();
		if (rc != 0 || now_ns >= deadline_ns)
			return rc;
	} while (now_ns < spin_end_ns);
	return sleep_until(polling, deadline_ns);
}

/* Look up all rsockets. Return false if all descriptors are kernel descriptors. */
static bool find_all(struct polling *polling)
{
	bool found = false;

	for (nfds_t i = 0; i < polling->count; i++) {
		struct entry *entry = &polling->entries[i];

		polling->fds[i].revents = 0;
		entry->s = rs_table_get(polling->fds[i].fd);
		found |= entry->s != NULL;
		if (entry->s)
			polling->spin_us = entry->s->options.spin_us;
		polling->has_others |= !entry->s && polling->fds[i].fd >= 0;
	}
	return found;
}

static int poll_all(struct polling *polling, int timeout_ms)
{
	const uint64_t deadline_ns =
		timeout_ms < 0 ? UINT64_MAX : rs_wait_now_ns() + (uint64_t)timeout_ms * NS_PER_MS;
	int rc;

	if (!find_all(polling)) {
		rc = poll(polling->fds, polling->count, timeout_ms);
		return rc < 0 ? -errno : rc;
	}
	rc = poll_until(polling, deadline_ns);
	for (nfds_t i = 0; i < polling->count; i++) {
		if (polling->entries[i].s)
			rs_table_put(polling->entries[i].s);
	}
	return rc;
}

int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	struct polling polling = {.fds = fds, .count = nfds, .waker = -1};
	int rc = -ENOMEM;

	polling.entries = calloc(nfds + 1, sizeof(*polling.entries));
	polling.real = calloc(nfds + 1, sizeof(*polling.real));
	if (polling.entries && polling.real)
		rc = poll_all(&polling, timeout);
	free(polling.entries);
	free(polling.real);
	return (int)rs_result(rc);
}

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
