/* SPDX-License-Identifier: BSD-3-Clause */
/* The structs that the files of epoll share. A lock protects them all. */
#ifndef RSPRELOAD_EPOLL_PARTS_H
#define RSPRELOAD_EPOLL_PARTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/queue.h>

/* An rsocket in an instance. */
struct member {
	TAILQ_ENTRY(member) in_epoll;
	LIST_ENTRY(member) in_rsocket;
	struct epoll *epoll; /* NULL: removed */
	unsigned int users;  /* its instance, and threads that look at it without the lock */
	int fd;		     /* the program's number of the rsocket */
	int rsocket;
	uint32_t events; /* what the program asks for, with flags as EPOLLET */
	uint32_t told;	 /* EPOLLET: events that are not told again while they last */
	bool is_off;	 /* EPOLLONESHOT: an event was told, and EPOLL_CTL_MOD must follow */
	epoll_data_t data;
};

TAILQ_HEAD(members, member);

struct epoll {
	unsigned int refs;     /* its numbers, and threads that wait */
	unsigned int sleepers; /* threads that must be woken when the members change */
	unsigned int turn; /* changes when the kernel's descriptors and rsockets share a place */
	int doorbell;	   /* eventfd; its event in the kernel's instance has this address */
	struct members members;
	unsigned int count;
};

extern pthread_mutex_t epolls_lock;

/** Return the instance of a number with a reference, or NULL. The caller holds the lock. */
struct epoll *epolls_get(int epfd);

/** Drop a reference. The caller holds the lock. */
void epolls_put(struct epoll *epoll);

/** Drop a use of a member. The caller holds the lock. */
void member_put(struct member *member);

#endif
