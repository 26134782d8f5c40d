/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thread for work that cannot wait for a call of the program: it accepts connections, receives
 * datagrams by UDP, and sends keepalives. Each process has one such thread, which starts at its
 * first use.
 */
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/thread.h"
#include "rs.h"
#include "rs_datagram.h"

#define EVENTS	   16
#define STACK_SIZE (256 * 1024)

static struct {
	pthread_mutex_t lock;
	int epoll; /* less than 0: there is no thread */
} service = {.lock = PTHREAD_MUTEX_INITIALIZER, .epoll = -1};

static void before_fork(void)
{
	pthread_mutex_lock(&service.lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&service.lock);
}

/* Forget the thread: a child does not inherit it, and starts its own at the first use. */
static void after_fork_in_child(void)
{
	if (service.epoll >= 0)
		close(service.epoll);
	service.epoll = -1;
	pthread_mutex_unlock(&service.lock);
}

static void __attribute__((constructor)) prepare_fork(void)
{
	pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

/* Look up the rsocket by its descriptor, because it may have been closed meanwhile. If another
 * rsocket has got the same number, the call finds no work. */
static void serve(const struct epoll_event *event)
{
	struct rsocket *s = rs_table_get((int)(uint32_t)event->data.u64);

	if (!s)
		return;
	switch ((enum rs_duty)(event->data.u64 >> 32)) {
	case RS_DUTY_LISTEN:
		rs_listen_serve(s);
		break;
	case RS_DUTY_DATAGRAM:
		rs_datagram_serve(s);
		break;
	case RS_DUTY_KEEPALIVE:
		pthread_mutex_lock(&s->lock);
		rs_keepalive_serve(s);
		pthread_mutex_unlock(&s->lock);
		break;
	}
	rs_table_put(s);
}

static void *run(void *arg)
{
	const int epoll = (int)(intptr_t)arg;
	struct epoll_event events[EVENTS];

	(void)pthread_setname_np(pthread_self(), "uroce-rsockets");
	for (;;) {
		const int count = epoll_wait(epoll, events, EVENTS, -1);

		for (int i = 0; i < count; i++)
			serve(&events[i]);
	}
	return NULL;
}

static int start_locked(void)
{
	const int epoll = epoll_create1(EPOLL_CLOEXEC);
	int rc;

	if (epoll < 0)
		return -errno;
	rc = -thread_start(run, (void *)(intptr_t)epoll, STACK_SIZE);
	if (rc == 0)
		service.epoll = epoll;
	else
		close(epoll);
	return rc;
}

int rs_service_add(const struct rsocket *s, int fd, enum rs_duty duty)
{
	struct epoll_event event = {.events = EPOLLIN,
				    .data.u64 = (uint64_t)duty << 32 | (uint32_t)s->fd};
	int rc = 0;

	pthread_mutex_lock(&service.lock);
	if (service.epoll < 0)
		rc = start_locked();
	if (rc == 0 && epoll_ctl(service.epoll, EPOLL_CTL_ADD, fd, &event) != 0)
		rc = -errno;
	pthread_mutex_unlock(&service.lock);
	return rc;
}

void rs_service_remove(int fd)
{
	pthread_mutex_lock(&service.lock);
	if (service.epoll >= 0)
		(void)epoll_ctl(service.epoll, EPOLL_CTL_DEL, fd, NULL);
	pthread_mutex_unlock(&service.lock);
}

#define DEFAULT_S 7200

/* Return the keepalive time that the administrator has set for TCP. */
static int default_time(void)
{
	FILE *file = fopen("/proc/sys/net/ipv4/tcp_keepalive_time", "re");
	int seconds = DEFAULT_S;

	if (!file)
		return seconds;
	if (fscanf(file, "%d", &seconds) != 1 || seconds <= 0)
		seconds = DEFAULT_S;
	fclose(file);
	return seconds;
}

static int set_timer(struct rsocket *s)
{
	const struct itimerspec time = {
		.it_interval.tv_sec = s->options.keepalive_s,
		.it_value.tv_sec = s->options.keepalive_s,
	};

	return timerfd_settime(s->keepalive_fd, 0, &time, NULL) == 0 ? 0 : -errno;
}

int rs_keepalive_set(struct rsocket *s)
{
	int rc = 0;

	if (!s->options.keepalive || s->state != RS_CONNECTED) {
		rs_keepalive_end(s);
		return 0;
	}
	if (s->options.keepalive_s == 0)
		s->options.keepalive_s = default_time();
	if (s->keepalive_fd < 0) {
		s->keepalive_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
		if (s->keepalive_fd < 0)
			return -errno;
		rc = rs_service_add(s, s->keepalive_fd, RS_DUTY_KEEPALIVE);
	}
	return rc == 0 ? set_timer(s) : rc;
}

void rs_keepalive_end(struct rsocket *s)
{
	if (s->keepalive_fd < 0)
		return;
	rs_service_remove(s->keepalive_fd);
	close(s->keepalive_fd);
	s->keepalive_fd = -1;
}

void rs_keepalive_serve(struct rsocket *s)
{
	uint64_t times;

	if (s->keepalive_fd < 0 || read(s->keepalive_fd, &times, sizeof(times)) < 0)
		return;
	rs_message_poll(s);
	if (s->state == RS_ENDED)
		rs_keepalive_end(s);
	else
		(void)rs_message_control(s, RS_CONTROL_KEEPALIVE);
}
