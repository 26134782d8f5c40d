/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens all devices at the same time, and sends a message over each of them, from one queue pair to
 * another one of the same device. Prints a line for each device. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loop.h"

#define DEVICES_MAX   16
#define MESSAGE_BYTES 100000

struct traffic {
	struct ibv_context *context;
	struct loop loop;
	struct ibv_mr *mr;
	unsigned char *memory; /* the message, and the buffer that it goes to */
};

static void traffic_open(struct traffic *traffic, struct ibv_device *device)
{
	struct ibv_pd *pd;

	traffic->context = ibv_open_device(device);
	if (!traffic->context)
		loop_fail(ibv_get_device_name(device));
	pd = ibv_alloc_pd(traffic->context);
	if (!pd)
		loop_fail("ibv_alloc_pd");
	loop_connect(&traffic->loop, pd);
	traffic->memory = calloc(2, MESSAGE_BYTES);
	if (!traffic->memory)
		loop_fail("calloc");
	traffic->mr = ibv_reg_mr(pd, traffic->memory, 2 * MESSAGE_BYTES, IBV_ACCESS_LOCAL_WRITE);
	if (!traffic->mr)
		loop_fail("ibv_reg_mr");
}

/* Send a message that no other device has. */
static void traffic_start(struct traffic *traffic, int number)
{
	struct ibv_sge from = {(uintptr_t)traffic->memory, MESSAGE_BYTES, traffic->mr->lkey};
	struct ibv_sge to = {from.addr + MESSAGE_BYTES, MESSAGE_BYTES, traffic->mr->lkey};

	for (int i = 0; i < MESSAGE_BYTES; i++)
		traffic->memory[i] = (unsigned char)(number + i * 7);
	loop_recv(traffic->loop.b, &to, 1);
	loop_send(traffic->loop.a, IBV_WR_SEND, &from, 1, NULL, 0);
}

static void traffic_end(struct traffic *traffic)
{
	loop_wait(&traffic->loop, 2);
	if (memcmp(traffic->memory, traffic->memory + MESSAGE_BYTES, MESSAGE_BYTES) != 0) {
		fprintf(stderr, "%s: another message arrived\n",
			ibv_get_device_name(traffic->context->device));
		exit(1);
	}
	printf("%s: %d bytes\n", ibv_get_device_name(traffic->context->device), MESSAGE_BYTES);
	if (ibv_dereg_mr(traffic->mr) != 0)
		loop_fail("ibv_dereg_mr");
	loop_disconnect(&traffic->loop);
	if (ibv_dealloc_pd(traffic->loop.pd) != 0 || ibv_close_device(traffic->context) != 0)
		loop_fail("closing the device");
	free(traffic->memory);
}

int main(void)
{
	static struct traffic traffics[DEVICES_MAX];
	struct ibv_device **list;
	int count;

	list = ibv_get_device_list(&count);
	if (!list)
		loop_fail("ibv_get_device_list");
	if (count > DEVICES_MAX)
		count = DEVICES_MAX;
	for (int i = 0; i < count; i++)
		traffic_open(&traffics[i], list[i]);
	ibv_free_device_list(list);
	for (int i = 0; i < count; i++)
		traffic_start(&traffics[i], i);
	for (int i = 0; i < count; i++)
		traffic_end(&traffics[i]);
	return count > 0 ? 0 : 1;
}
