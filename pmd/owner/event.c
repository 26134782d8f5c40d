/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors that wake an owner. */
#include "event.h"

#include <errno.h>
#include <sys/epoll.h>

#include "base/monotonic.h"
#include "server.h"

uint64_t event_now_ns(void)
{
	return monotonic_ns();
}

static int event_control(struct server *server, int operation, int fd, enum server_event event,
			 uint32_t number)
{
	/* These eventfds only wake us: edge-triggered, so they need not be read. */
	const bool wakes = event == EVENT_WAKE || event == EVENT_DOORBELL;
	struct epoll_event watch = {.events = EPOLLIN | (wakes ? EPOLLET : 0),
				    .data.u64 = (uint64_t)event << 32 | number};

	return epoll_ctl(server->epoll_fd, operation, fd, &watch) == 0 ? 0 : -errno;
}

int event_watch(struct server *server, int fd, enum server_event event, uint32_t number)
{
	return event_control(server, EPOLL_CTL_ADD, fd, event, number);
}

int event_rewatch(struct server *server, int fd, enum server_event event, uint32_t number)
{
	return event_control(server, EPOLL_CTL_MOD, fd, event, number);
}
