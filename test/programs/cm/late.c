/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library to preload for clients of perftest 4.5: it delays their connection requests by LATE_MS
 * milliseconds (60). Without it a client may ask before its server listens, and is rejected. It
 * then asks again with ids that it has freed, and crashes (fixed in perftest's commit 3d9d8d0).
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rdma/rdma_cma.h>

#pragma GCC visibility push(default)

#define LATE_MS 60

static struct timespec late(void)
{
	const char *text = getenv("LATE_MS");
	const long ms = text ? strtol(text, NULL, 10) : LATE_MS;

	return (struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	static int (*next)(struct rdma_cm_id *, struct rdma_conn_param *);
	const struct timespec pause = late();
	void *symbol;

	if (!next) {
		symbol = dlsym(RTLD_NEXT, "rdma_connect");
		memcpy(&next, &symbol, sizeof(next));
	}
	nanosleep(&pause, NULL);
	return next(id, conn_param);
}
