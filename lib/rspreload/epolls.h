/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program's epoll instances that have rsockets. The kernel's instance has the other
 * descriptors; the rsockets are members of an instance here, and epolls_wait looks at both. A call
 * costs time for each member, as poll(2) does.
 */
#ifndef RSPRELOAD_EPOLLS_H
#define RSPRELOAD_EPOLLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/types.h>

/** Return true if an epoll instance has, or had, rsockets. MT-safe. */
bool epolls_has(int epfd);

/** Do epoll_ctl(2) for a descriptor that is an rsocket. MT-safe. 0, or -1 with errno. */
int epolls_ctl(int epfd, int op, int fd, struct epoll_event *event);

/**
 * Do epoll_wait(2) for an instance of epolls_has. MT-safe.
 *
 * @param timeout_ns
 *   Less than 0: no timeout.
 * @return
 *   The number of events, or -1 with errno.
 */
int epolls_wait(int epfd, struct epoll_event *events, int max, int64_t timeout_ns);

/** Remove events of our own descriptors from those that the kernel reports. MT-safe. Return how
 * many are left. */
int epolls_sift(int epfd, struct epoll_event *events, int count);

/** Return the monotonic time. MT-safe. */
int64_t epolls_now_ns(void);

/** Note that the program closes a descriptor, which may be an instance. MT-safe. */
void epolls_close(int epfd);

/** Note that a descriptor is a duplicate of another one, which may be an instance. MT-safe. */
void epolls_alias(int fd, int original);

/** Remove an rsocket, whose last descriptor the program closes, from all instances. MT-safe. */
void epolls_forget(int rsocket);

/*
 * With EPOLLET the kernel reports an event when data arrives, and when there is room after a send
 * that found too little. Here an event may be reported again after each read, and after each send
 * that was not complete: these functions note such a call. They return `rc` and keep errno.
 * MT-safe.
 */
ssize_t epolls_has_read(int rsocket, ssize_t rc);
ssize_t epolls_has_sent(int rsocket, size_t wanted, ssize_t rc);

/** Let all events of an rsocket be reported again, because it begins to connect. MT-safe. */
int epolls_has_begun(int rsocket, int rc);

#endif
