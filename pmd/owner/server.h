/* SPDX-License-Identifier: BSD-3-Clause */
/* The owner of a port. One thread owns all of it, except shared memory. Each part's struct is in
 * the header of that part. */
#ifndef OWNER_SERVER_H
#define OWNER_SERVER_H

#include <stdint.h>
#include <sys/queue.h>

#include "arena.h"
#include "capture.h"
#include "control.h"
#include "direct.h"
#include "kernel.h"
#include "listen.h"
#include "mads.h"
#include "owner/serve.h"
#include "owner/tenants.h"
#include "psocks.h"
#include "resume.h"
#include "slot.h"
#include "unread.h"
#include "uplink.h"
#include "xrc.h"

struct report;
struct report_set;
struct server;
struct settings;

struct status {
	struct report_set *reports; /* has the reports of processes and our own */
	struct report *report;	    /* our own, in the set; or NULL */
	int report_fd;
};

/** Make the owner's report. 0 or -errno. */
int status_open_report(struct server *server, const struct settings *settings);

/** Update the report if a reader has asked for it. */
void status_answer_report(struct server *server);

struct change;

/* Settings that were read again. */
struct changes {
	struct change *wanted; /* left by serve_change; NULL: none; atomic */
	struct change *made;   /* the newest that was taken: server.tenant_limits points into it */
};

struct server {
	/* constant */
	char unique[512]; /* from which the port's GUID is made */
	char name[64];	  /* the device's name in all programs; "": each program chooses */
	uint32_t ports;	  /* that this process shares */
	uint32_t number;  /* this port's index among them */
	int epoll_fd;
	int wake_fd; /* eventfd: serve_wake writes to it */

	uint64_t now_ns;    /* time of the current poll */
	uint64_t clock_ns;  /* time of the last descriptor event */
	uint64_t worked_ns; /* time of the last poll with packets */
	uint32_t paused;    /* number of paused clients and sockets (pause.h) */
	struct uplink uplink;
	struct kernel kernel;
	struct arena arena;
	struct slots slots;
	struct tenants tenants;
	const struct serve_tenants
		*tenant_limits; /* serve_config.tenants, or the newest change's */
	struct changes changes;
	struct psocks psocks;
	struct directs directs;
	struct unread_looks unread_looks;
	struct gsi gsi;			  /* QP 1 */
	LIST_HEAD(, server_group) groups; /* that processes are in */
	struct xrc xrc;
	struct pending_clients pending_clients;
	struct capture capture;
	struct status status;
	struct serve_totals totals;
	struct resume resume;
};

static inline uint32_t arena_buffer(const struct server *server, const struct rte_mbuf *mbuf)
{
	return (uint32_t)(((uintptr_t)mbuf->buf_addr - (uintptr_t)server->arena.memory) /
			  server->arena.stride);
}

#endif
