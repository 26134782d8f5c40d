/* SPDX-License-Identifier: BSD-3-Clause */
/* The socket that answers Prometheus. */
#ifndef SCRAPE_H
#define SCRAPE_H

#include <stddef.h>
#include <sys/types.h>

#include "report/set.h"

struct scrape_config {
	const char *path;
	mode_t mode;
	uid_t owner; /* (uid_t)-1: the process's own */
	gid_t group; /* (gid_t)-1: the process's own */
	struct report_set *reports;
};

/** Listen, and start the thread that answers. Once per process. 0 or -errno (logged). */
int scrape_start(const struct scrape_config *config);

/** End the thread, and remove the socket. Does nothing if it was not started. */
void scrape_stop(void);

/* The resource that a request asks for. */
enum scrape_request {
	SCRAPE_METRICS,
	SCRAPE_METRICS_QP,  /* with each queue pair */
	SCRAPE_NOT_FOUND,   /* another path */
	SCRAPE_NOT_ALLOWED, /* another method */
	SCRAPE_BAD,	    /* not HTTP */
};

/** Parse the first line of a request. MT-safe. */
enum scrape_request scrape_parse(const char *line);

#endif
