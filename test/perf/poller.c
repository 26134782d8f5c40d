/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that has a device, polls, and has nothing to do, until it is killed. A poll that finds
 * nothing may yield the CPU, which a busy program would not do, so it also works between polls. */
#include <stdio.h>
#include <time.h>

#include <infiniband/verbs.h>

#define WORK_NS 20000

static long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000 + now.tv_nsec;
}

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct ibv_cq *cq = context ? ibv_create_cq(context, 1, NULL, NULL, 0) : NULL;
	struct ibv_wc wc;

	while (cq && ibv_poll_cq(cq, 1, &wc) == 0) {
		const long until_ns = now_ns() + WORK_NS;

		while (now_ns() < until_ns)
			;
	}
	fputs("poller: no device, or an unexpected completion\n", stderr);
	return 1;
}
