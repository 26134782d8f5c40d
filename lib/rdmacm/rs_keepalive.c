/* SPDX-License-Identifier: BSD-3-Clause */
/* Keepalive: a periodic WRITE of 0 bytes, which fails if the peer is gone. */
#include <stdio.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "rs.h"

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
