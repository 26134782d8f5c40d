/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * On-demand regions (IBV_ACCESS_ON_DEMAND) and ibv_advise_mr(3). The region is a range of
 * addresses. The program may map and unmap memory in the range, and may prefetch pages.
 *
 *     uroce-run --port net_null0 --ip 10.0.0.1/24 -- odp_prefetch
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "loop.h"

#define RANGE_BYTES ((size_t)1 << 30)
#define PART_BYTES  ((size_t)1 << 20)

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ON_DEMAND)

static void require_support(struct ibv_context *context)
{
	struct ibv_device_attr_ex attr;

	errno = ibv_query_device_ex(context, NULL, &attr);
	if (errno != 0)
		loop_fail("ibv_query_device_ex");
	if (!(attr.odp_caps.general_caps & IBV_ODP_SUPPORT) ||
	    !(attr.odp_caps.per_transport_caps.rc_odp_caps & IBV_ODP_SUPPORT_WRITE)) {
		errno = EOPNOTSUPP;
		loop_fail("on-demand paging");
	}
}

static void *map_at(void *addr, int flags)
{
	void *map = mmap(addr, RANGE_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);

	if (map == MAP_FAILED)
		loop_fail("mmap");
	return map;
}

static size_t resident_kib(uint8_t *range)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = RANGE_BYTES / page;
	unsigned char *present = malloc(pages);
	size_t count = 0;

	if (!present || mincore(range, RANGE_BYTES, present) != 0)
		loop_fail("mincore");
	for (size_t i = 0; i < pages; i++)
		count += present[i] & 1;
	free(present);
	return count * page / 1024;
}

static void prefetch(struct ibv_mr *mr, uint8_t *addr)
{
	struct ibv_sge part = {.addr = (uintptr_t)addr, .length = PART_BYTES, .lkey = mr->lkey};

	errno = ibv_advise_mr(mr->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH,
			      &part, 1);
	if (errno != 0)
		loop_fail("ibv_advise_mr");
}

/* Write the first bytes of the range to another address in the range. */
static void write_to(struct loop *loop, struct ibv_mr *mr, uint8_t *range, uint8_t *to)
{
	struct ibv_sge from = {.addr = (uintptr_t)range, .length = 8, .lkey = mr->lkey};

	loop_send(loop->a, IBV_WR_RDMA_WRITE, &from, 1, to, mr->rkey);
	loop_wait(loop, 1);
	if (memcmp(range, to, 8) != 0) {
		errno = EIO;
		loop_fail("what was written differs");
	}
}

int main(void)
{
	struct ibv_context *context = loop_open();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	uint8_t *range = map_at(NULL, 0);
	struct ibv_mr *mr;
	struct loop loop = {.cq = NULL};

	require_support(context);
	if (!pd)
		loop_fail("ibv_alloc_pd");
	mr = ibv_reg_mr(pd, range, RANGE_BYTES, ACCESS);
	if (!mr)
		loop_fail("ibv_reg_mr");
	printf("registered 1 GiB: %zu KiB are in memory\n", resident_kib(range));
	prefetch(mr, range + RANGE_BYTES / 2);
	printf("prefetched 1 MiB: %zu KiB are in memory\n", resident_kib(range));

	loop_connect(&loop, pd);
	memcpy(range, "demanded", 8);
	write_to(&loop, mr, range, range + RANGE_BYTES / 2);
	printf("written to where it was prefetched\n");
	write_to(&loop, mr, range, range + RANGE_BYTES - 8);
	printf("written to where nothing was: the page came by itself\n");

	munmap(range, RANGE_BYTES);
	map_at(range, MAP_FIXED);
	memcpy(range, "new page", 8);
	write_to(&loop, mr, range, range + RANGE_BYTES / 2);
	printf("unmapped, mapped anew, and written to by the same key\n");

	loop_disconnect(&loop);
	ibv_dereg_mr(mr);
	munmap(range, RANGE_BYTES);
	ibv_dealloc_pd(pd);
	ibv_close_device(context);
	return 0;
}
