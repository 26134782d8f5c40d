/* SPDX-License-Identifier: BSD-3-Clause */
/* A process forks while it has a device open. Parent and child continue, each with its own device.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop.h"

#define BYTES	 65536
#define MESSAGES 200

struct memory {
	uint8_t from[BYTES], to[BYTES];
};

static void send_and_compare(struct loop *loop, struct memory *memory, const struct ibv_mr *mr,
			     uint8_t number)
{
	struct ibv_sge from = {(uintptr_t)memory->from, BYTES, mr->lkey};
	struct ibv_sge to = {(uintptr_t)memory->to, BYTES, mr->lkey};

	memset(memory->from, number, BYTES);
	memset(memory->to, 0, BYTES);
	loop_recv(loop->b, &to, 1);
	loop_send(loop->a, IBV_WR_SEND, &from, 1, NULL, 0);
	loop_wait(loop, 2);
	if (memcmp(memory->from, memory->to, BYTES) != 0) {
		fprintf(stderr, "the data differs\n");
		exit(1);
	}
}

static void work(struct ibv_context *context, pid_t (*in_between)(struct ibv_context *context))
{
	struct memory *memory = malloc(sizeof(*memory));
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct loop loop = {.cq = NULL};
	int status = 0;
	struct ibv_mr *mr;
	pid_t child = 0;

	if (!memory || !pd)
		loop_fail("ibv_alloc_pd");
	mr = ibv_reg_mr(pd, memory, sizeof(*memory), IBV_ACCESS_LOCAL_WRITE);
	if (!mr)
		loop_fail("ibv_reg_mr");
	loop_connect(&loop, pd);
	for (int i = 0; i < MESSAGES; i++) {
		if (i == MESSAGES / 2 && in_between)
			child = in_between(context);
		send_and_compare(&loop, memory, mr, (uint8_t)i);
	}
	if (child > 0 && (waitpid(child, &status, 0) != child || status != 0)) {
		fprintf(stderr, "the child has failed\n");
		exit(1);
	}
	/* The device of the parent still works after the child has ended. */
	send_and_compare(&loop, memory, mr, 0x55);
	loop_disconnect(&loop);
	if (ibv_dereg_mr(mr) != 0 || ibv_dealloc_pd(pd) != 0)
		loop_fail("ending");
	free(memory);
}

/* Fork a child. It cannot use the objects of the parent, and opens a device as any other process
 * does. */
static pid_t fork_worker(struct ibv_context *context)
{
	const pid_t child = fork();
	struct ibv_context *own;

	if (child < 0)
		loop_fail("fork");
	if (child > 0)
		return child;
	if (ibv_alloc_pd(context) || errno != ENODEV) {
		fprintf(stderr, "the child has the parent's device\n");
		exit(1);
	}
	own = loop_open();
	work(own, NULL);
	if (ibv_close_device(own) != 0)
		loop_fail("ibv_close_device");
	exit(0);
}

int main(void)
{
	struct ibv_context *context = loop_open();

	work(context, fork_worker);
	if (ibv_close_device(context) != 0)
		loop_fail("ibv_close_device");
	printf("parent and child have sent %d messages each\n", MESSAGES + 1);
	return 0;
}
