/* SPDX-License-Identifier: BSD-3-Clause */
/* Wait for an rsocket: poll first, then sleep. */
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
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
