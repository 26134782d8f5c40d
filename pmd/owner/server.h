/* SPDX-License-Identifier: BSD-3-Clause */
/* The owner of a port, inside. Everything is its one thread's, but for what stands in shared
 * memory. Each part is described where its functions are. */
#ifndef OWNER_SERVER_H
#define OWNER_SERVER_H

#include <stdint.h>
#include <sys/queue.h>

#include "arena.h"
#include "capture.h"
#include "control.h"
#include "kernel.h"
#include "lanes.h"
#include "listen.h"
#include "mads.h"
#include "owner/serve.h"
#include "serve_status.h"
#include "slot.h"
#include "uplink.h"

struct server {
	/* constant */
	char unique[512]; /* what makes the port's GUID its own */
	char name[64];	  /* what programs call the device; "": as each likes */
	uint32_t ports;	  /* of this process */
	uint32_t number;  /* of this one among them */
	int epoll_fd;
	int wake_fd; /* eventfd, of serve_wake */

	uint64_t now_ns;    /* of the turn */
	uint64_t clock_ns;  /* of the last look at descriptors */
	uint64_t worked_ns; /* when there were packets last */
	uint32_t resting;   /* who are not listened to (rest.h) */
	struct uplink uplink;
	struct kernel kernel;
	struct arena arena;
	struct slots slots;
	struct lanes lanes;
	struct gsi gsi;			  /* QP 1 */
	LIST_HEAD(, server_group) groups; /* that processes are in */
	struct newcomers newcomers;
	struct capture capture;
	struct status status;
	struct serve_totals totals;
};

static inline uint32_t arena_buffer(const struct server *server, const struct rte_mbuf *mbuf)
{
	return (uint32_t)(((uintptr_t)mbuf->buf_addr - (uintptr_t)server->arena.memory) /
			  server->arena.stride);
}

#endif
