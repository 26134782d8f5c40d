/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions of huge pages (IBV_ACCESS_HUGETLB): uroce verifies that all pages are huge, and refuses
 * the region otherwise.
 *
 *     uroce-run --port net_null0 --ip 10.0.0.1/24 -- huge_pages
 *
 * The program exits with code 77 if no two pages of 2 MiB are free.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "loop.h"

#define BYTES	((size_t)4 << 20) /* two pages of 2 MiB */
#define SKIPPED 77

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_HUGETLB)

static void *map(int flags)
{
	void *map = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags,
			 -1, 0);

	return map == MAP_FAILED ? NULL : map;
}

/* Try ordinary pages. The kernel may turn them into transparent huge pages, but does not guarantee
 * it. */
static void try_ordinary_pages(struct ibv_pd *pd)
{
	void *pages = map(0);

	if (!pages)
		loop_fail("mmap");
	if (ibv_reg_mr(pd, pages, BYTES, ACCESS) || errno != EINVAL)
		loop_fail("ordinary pages with IBV_ACCESS_HUGETLB");
	printf("ordinary pages: refused, as they are not huge\n");
	munmap(pages, BYTES);
}

/* Write the first half of the pages into the second half. */
static void use(struct ibv_pd *pd, uint8_t *pages, const struct ibv_mr *mr)
{
	struct ibv_sge from = {.addr = (uintptr_t)pages, .length = BYTES / 2, .lkey = mr->lkey};
	struct loop loop = {.cq = NULL};

	memset(pages, 42, BYTES / 2);
	loop_connect(&loop, pd);
	loop_send(loop.a, IBV_WR_RDMA_WRITE, &from, 1, pages + BYTES / 2, mr->rkey);
	loop_wait(&loop, 1);
	loop_disconnect(&loop);
	if (memcmp(pages, pages + BYTES / 2, BYTES / 2) != 0) {
		errno = EIO;
		loop_fail("what was written differs");
	}
	printf("huge pages: verified, and 2 MiB written from one to the other\n");
}

int main(void)
{
	struct ibv_context *context = loop_open();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	uint8_t *pages = map(MAP_HUGETLB);
	struct ibv_mr *mr;

	if (!pd)
		loop_fail("ibv_alloc_pd");
	if (!pages) {
		fprintf(stderr, "there are no free huge pages: see /proc/sys/vm/nr_hugepages\n");
		return SKIPPED;
	}
	try_ordinary_pages(pd);
	mr = ibv_reg_mr(pd, pages, BYTES, ACCESS);
	if (!mr)
		loop_fail("ibv_reg_mr");
	use(pd, pages, mr);
	ibv_dereg_mr(mr);
	munmap(pages, BYTES);
	ibv_dealloc_pd(pd);
	ibv_close_device(context);
	return 0;
}
