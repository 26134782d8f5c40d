/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The null region (ibv_alloc_null_mr(3)): a send from it sends zeros, and data received into it is
 * dropped. No memory is accessed.
 *
 *     uroce-run --port net_null0 --ip 10.0.0.1/24 -- null_mr
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loop.h"

#define HEADER_BYTES  16
#define PAYLOAD_BYTES (1 << 20)

static uint8_t header[HEADER_BYTES];
static uint8_t payload[PAYLOAD_BYTES];

static struct loop loop;
static struct ibv_mr *header_mr, *payload_mr, *null_mr;

/* Return an element of the null region. Its address is ignored; only the key counts. */
static struct ibv_sge nothing(uint32_t length)
{
	return (struct ibv_sge){.addr = 0, .length = length, .lkey = null_mr->lkey};
}

static struct ibv_sge part(void *addr, uint32_t length, const struct ibv_mr *mr)
{
	return (struct ibv_sge){.addr = (uintptr_t)addr, .length = length, .lkey = mr->lkey};
}

static void require(int condition, const char *what)
{
	if (!condition) {
		fprintf(stderr, "this is not so: %s\n", what);
		exit(1);
	}
	printf("%s\n", what);
}

/* Send zeros without reading them. A use is a hole in a file: the receiver's memory is filled with
 * zeros. */
static void source_of_zeros(void)
{
	struct ibv_sge from[] = {part(header, HEADER_BYTES, header_mr), nothing(PAYLOAD_BYTES / 2)};
	struct ibv_sge to = part(payload, PAYLOAD_BYTES, payload_mr);
	int zeros = 1;

	memset(payload, 0xff, sizeof(payload));
	loop_recv(loop.b, &to, 1);
	loop_send(loop.a, IBV_WR_SEND, from, 2, NULL, 0);
	loop_wait(&loop, 2);
	for (size_t i = HEADER_BYTES; i < HEADER_BYTES + PAYLOAD_BYTES / 2; i++)
		zeros &= payload[i] == 0;
	require(zeros, "a header and half a megabyte of zeros came, that nobody had in memory");
}

/* Receive only the header of a message. The null region takes the rest and stores nothing. */
static void sink(void)
{
	struct ibv_sge from = part(payload, PAYLOAD_BYTES, payload_mr);
	struct ibv_sge to[] = {part(header, HEADER_BYTES, header_mr), nothing(PAYLOAD_BYTES)};

	memset(payload, 7, sizeof(payload));
	loop_recv(loop.b, to, 2);
	loop_send(loop.a, IBV_WR_SEND, &from, 1, NULL, 0);
	loop_wait(&loop, 2);
	require(header[0] == 7 && header[HEADER_BYTES - 1] == 7,
		"of a megabyte the header was stored, and the rest was dropped");
}

/* Check that a peer's memory can be read, without a buffer for the data. */
static void probe(void)
{
	struct ibv_sge to = nothing(PAYLOAD_BYTES);

	loop_send(loop.a, IBV_WR_RDMA_READ, &to, 1, payload, payload_mr->rkey);
	loop_wait(&loop, 1);
	require(1, "a megabyte was read from a peer, and kept nowhere");
}

int main(void)
{
	struct ibv_context *context = loop_open();
	struct ibv_pd *pd = ibv_alloc_pd(context);

	if (!pd)
		loop_fail("ibv_alloc_pd");
	null_mr = ibv_alloc_null_mr(pd);
	if (!null_mr)
		loop_fail("ibv_alloc_null_mr");
	header_mr = ibv_reg_mr(pd, header, sizeof(header), IBV_ACCESS_LOCAL_WRITE);
	payload_mr = ibv_reg_mr(pd, payload, sizeof(payload),
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	if (!header_mr || !payload_mr)
		loop_fail("ibv_reg_mr");
	loop_connect(&loop, pd);
	source_of_zeros();
	sink();
	probe();
	loop_disconnect(&loop);
	ibv_dereg_mr(header_mr);
	ibv_dereg_mr(payload_mr);
	ibv_dereg_mr(null_mr);
	ibv_dealloc_pd(pd);
	ibv_close_device(context);
	return 0;
}
