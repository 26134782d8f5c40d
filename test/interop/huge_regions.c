/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions of huge pages, which a port may read directly, with IBV_ACCESS_HUGETLB and without. They
 * are registered, changed and deregistered while requests that send from other regions are in
 * flight, and then their memory is unmapped at once.
 */
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "peer.h"

#define HUGE_BYTES (2u << 20)
#define ROUNDS	   40
#define BEHIND	   4 /* requests in flight while another region is deregistered */

/* Fill a buffer with bytes that depend on their place and on the seed. */
static void mark(uint8_t *at, uint32_t seed)
{
	for (uint32_t i = 0; i < BUFFER_BYTES; i++)
		at[i] = (uint8_t)((i >> 8) * 31 + i + seed * 17);
}

static uint8_t *map_memory(bool huge_pages)
{
	void *p = mmap(NULL, HUGE_BYTES, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | (huge_pages ? MAP_HUGETLB : 0), -1, 0);

	REQUIRE(p != MAP_FAILED);
	memset(p, 0, HUGE_BYTES);
	return p;
}

static struct ibv_mr *register_memory(uint8_t *at, bool promised)
{
	struct ibv_mr *mr =
		ibv_reg_mr(run.pd, at, HUGE_BYTES,
			   IBV_ACCESS_LOCAL_WRITE | (promised ? IBV_ACCESS_HUGETLB : 0));

	REQUIRE(mr);
	return mr;
}

static void write_from(const struct ibv_mr *mr, const uint8_t *at)
{
	struct ibv_sge sge = {.addr = (uintptr_t)at, .length = BUFFER_BYTES, .lkey = mr->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {.remote_addr = run.peer.addr, .rkey = run.peer.rkey}};
	struct ibv_send_wr *bad;

	REQUIRE(ibv_post_send(run.qp, &wr, &bad) == 0);
}

/* Have the target check that its buffer has the data of this seed. */
static void have_checked(uint32_t seed)
{
	tell(&seed, sizeof(seed));
	meet();
}

/* Register one region, send from it, and deregister it. Each third region has ordinary pages. The
 * other region stays, and its memory changes. */
static void one_round(struct ibv_mr *lasting, uint8_t **lasting_at, uint32_t round)
{
	const bool huge_pages = round % 3 != 2;
	uint8_t *at = map_memory(huge_pages), *other = map_memory(true);
	const uint32_t offset = round * 4099 % (HUGE_BYTES - BUFFER_BYTES);
	struct ibv_mr *mr = register_memory(at, huge_pages);

	mark(at + offset, round);
	write_from(mr, at + offset);
	expect(IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
	have_checked(round);

	mark(*lasting_at, round + 100);
	for (int i = 0; i < BEHIND; i++)
		write_from(lasting, *lasting_at);
	REQUIRE(ibv_dereg_mr(mr) == 0);
	REQUIRE(munmap(at, HUGE_BYTES) == 0);
	for (int i = 0; i < BEHIND; i++)
		expect(IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
	have_checked(round + 100);

	REQUIRE(ibv_rereg_mr(lasting, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, other, HUGE_BYTES,
			     0) == 0);
	REQUIRE(munmap(*lasting_at, HUGE_BYTES) == 0);
	*lasting_at = other;
}

static void huge_target(void)
{
	static uint8_t marked[BUFFER_BYTES];
	uint32_t seed;

	for (int i = 0; i < 2 * ROUNDS; i++) {
		hear(&seed, sizeof(seed));
		mark(marked, seed);
		REQUIRE(memcmp(marked, run.buffer, BUFFER_BYTES) == 0);
		meet();
	}
}

/* Post requests from a region that is deregistered at once. Each request completes, with success or
 * an error. */
static void leave_at_once(void)
{
	uint8_t *at = map_memory(true);
	struct ibv_mr *mr = register_memory(at, true);

	for (int i = 0; i < BEHIND; i++)
		write_from(mr, at);
	REQUIRE(ibv_dereg_mr(mr) == 0);
	REQUIRE(munmap(at, HUGE_BYTES) == 0);
	for (int i = 0; i < BEHIND; i++) {
		const struct ibv_wc wc = completion();

		REQUIRE(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_LOC_PROT_ERR ||
			wc.status == IBV_WC_WR_FLUSH_ERR);
	}
}

void huge(void)
{
	uint8_t *lasting_at;
	struct ibv_mr *lasting;

	if (!run.server) {
		huge_target();
		return;
	}
	lasting_at = map_memory(true);
	/* The kernel tells that its pages are huge: most packets are sent from it. */
	lasting = register_memory(lasting_at, false);
	for (uint32_t round = 0; round < ROUNDS; round++)
		one_round(lasting, &lasting_at, round);
	REQUIRE(ibv_dereg_mr(lasting) == 0);
	leave_at_once();
}
