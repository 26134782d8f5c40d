/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/port/dma.c, with VFIO's part noted down. How memory is really mapped:
 * test/interop/nic. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_eal.h>

#include "port/dma.h"
#include "port/port_eal.h"
#include "test.h"

#define WINDOW (UINT64_C(1) << 38) /* where DPDK works with physical addresses */
#define MIB    (UINT64_C(1) << 20)
#define GIB    (UINT64_C(1) << 30)

static struct dma dma;
static uint8_t memory[3 * 4096];
static int maps, unmaps;
static bool refused;
static enum rte_iova_mode iova_mode;
static struct rte_memseg_list reserved; /* DPDK's memory; of no length: none */

int __real_rte_memseg_list_walk(rte_memseg_list_walk_t func, void *arg);
int __wrap_rte_memseg_list_walk(rte_memseg_list_walk_t func, void *arg);
int __real_rte_vfio_container_dma_map(int container, uint64_t va, uint64_t iova, uint64_t len);
int __wrap_rte_vfio_container_dma_map(int container, uint64_t va, uint64_t iova, uint64_t len);
int __real_rte_vfio_container_dma_unmap(int container, uint64_t va, uint64_t iova, uint64_t len);
int __wrap_rte_vfio_container_dma_unmap(int container, uint64_t va, uint64_t iova, uint64_t len);
enum rte_iova_mode __real_rte_eal_iova_mode(void);
enum rte_iova_mode __wrap_rte_eal_iova_mode(void);

int __wrap_rte_vfio_container_dma_map(int container, uint64_t va, uint64_t iova, uint64_t len)
{
	if (!TEST_FILE_RUNS())
		return __real_rte_vfio_container_dma_map(container, va, iova, len);
	maps++;
	return refused ? -1 : 0;
}

int __wrap_rte_vfio_container_dma_unmap(int container, uint64_t va, uint64_t iova, uint64_t len)
{
	if (!TEST_FILE_RUNS())
		return __real_rte_vfio_container_dma_unmap(container, va, iova, len);
	unmaps++;
	return 0;
}

enum rte_iova_mode __wrap_rte_eal_iova_mode(void)
{
	return TEST_FILE_RUNS() ? iova_mode : __real_rte_eal_iova_mode();
}

int __wrap_rte_memseg_list_walk(rte_memseg_list_walk_t func, void *arg)
{
	if (!TEST_FILE_RUNS())
		return __real_rte_memseg_list_walk(func, arg);
	return reserved.len > 0 ? func(&reserved, arg) : 0;
}

static int setup(TEST_STATE)
{
	static struct port port = {.eal = &port_eal};

	memset(&dma, 0, sizeof(dma));
	reserved.len = 0;
	iova_mode = RTE_IOVA_PA;
	dma_init(&dma, &port);
	maps = unmaps = 0;
	refused = false;
	return 0;
}

/* A port that reads memory by itself. */
static int setup_gathering(void **state)
{
	setup(state);
	dma.parts = (struct rte_mempool *)&dma;
	return 0;
}

TEST_FIXTURE(setup_gathering, NULL);

TEST(dma_map__of_a_port_without_dma_maps_nothing, .setup = setup)
{
	assert_null(dma_map(&dma, memory, sizeof(memory)));
	assert_null(dma_find(&dma, memory, 1));
}

TEST(dma_find__finds_what_lies_in_one_region, .setup = setup)
{
	struct dma_region first = {.addr = (uintptr_t)memory, .length = 4096};
	struct dma_region second = {.addr = (uintptr_t)memory + 4096, .length = 4096};

	LIST_INSERT_HEAD(&dma.regions, &first, link);
	LIST_INSERT_HEAD(&dma.regions, &second, link);
	assert_ptr_equal(dma_find(&dma, memory, 4096), &first);
	assert_ptr_equal(dma_find(&dma, memory + 4095, 1), &first);
	assert_ptr_equal(dma_find(&dma, memory + 4096, 4096), &second);
	assert_null(dma_find(&dma, memory + 1, 4096));
	assert_null(dma_find(&dma, memory + 8192, 1));
	assert_null(dma_find(&dma, memory + 4096, SIZE_MAX));
	assert_null(dma_find(&dma, (const void *)1, 1));
}

TEST(dma_forget__finds_a_region_no_more, .setup = setup)
{
	struct dma_region region = {.addr = (uintptr_t)memory, .length = 4096};

	LIST_INSERT_HEAD(&dma.regions, &region, link);
	assert_ptr_equal(dma_find(&dma, memory, 4096), &region);
	dma_forget(&dma, &region);
	assert_null(dma_find(&dma, memory, 4096));
}

static void remove_region(struct dma_region *region)
{
	dma_forget(&dma, region);
	dma_unmap(&dma, region);
}

TEST(dma_map__has_a_place_like_the_memorys)
{
	const void *odd = (const void *)(uintptr_t)(5 * GIB + 6 * MIB + 12345);
	struct dma_region *small = dma_map(&dma, memory, 1);
	struct dma_region *large = dma_map(&dma, odd, 2 * MIB);
	struct dma_region *huge = dma_map(&dma, (const void *)(uintptr_t)(3 * GIB + 2 * MIB), GIB);

	assert_int_equal(small->length, 4096);
	assert_int_equal(large->addr, 5 * GIB + 6 * MIB + 12288);
	assert_int_equal(large->length, 2 * MIB + 4096);
	/* one entry of the IOMMU a huge page */
	assert_int_equal((large->iova - large->addr) % (2 * MIB), 0);
	assert_int_equal((huge->iova - huge->addr) % GIB, 0);
	assert_true(large->iova > small->iova + small->length);
	assert_true(huge->iova > large->iova + large->length);
	remove_region(small);
	remove_region(large);
	remove_region(huge);
	assert_int_equal(maps, 3);
	assert_int_equal(unmaps, 3);
}

TEST(dma_map__passes_by_what_lasts)
{
	const void *at = (const void *)(uintptr_t)(7 * GIB);
	struct dma_region *lasting = dma_map(&dma, at, 2 * MIB), *region;
	bool again = false;
	uint64_t before = 0;

	for (int i = 0; i < 100; i++) {
		region = dma_map(&dma, at, 8 * GIB);
		assert_non_null(region);
		assert_true(region->iova >= lasting->iova + lasting->length);
		assert_true(region->iova + region->length <= 2 * WINDOW);
		again = again || region->iova < before;
		before = region->iova;
		remove_region(region);
	}
	assert_true(again);
	/* longer than what is left beside it */
	assert_null(dma_map(&dma, at, WINDOW));
	remove_region(lasting);
}

/* Return where the first region is mapped if DPDK's memory is at these virtual addresses. */
static uint64_t first_iova(uint64_t base, size_t length)
{
	static struct port port = {.eal = &port_eal};
	struct dma_region *region;
	uint64_t iova;

	iova_mode = RTE_IOVA_VA;
	reserved.base_va = (void *)(uintptr_t)base;
	reserved.len = length;
	dma_init(&dma, &port);
	dma.parts = (struct rte_mempool *)&dma;
	region = dma_map(&dma, memory, 4096);
	iova = region->iova;
	remove_region(region);
	return iova;
}

TEST(dma_init__chooses_addresses_that_dpdk_does_not_use)
{
	const uint64_t base = 32 * 1024 * GIB, length = 512 * GIB, page = 4096;

	assert_true(first_iova(0, 0) - base < 2 * MIB);
	/* SPDK's: --base-virtaddr=0x200000000000 */
	assert_true(first_iova(base, length) >= base + length);
	/* the last byte of the first window, and the byte behind it */
	assert_true(first_iova(base + base / 2 - page, page) >= base + base / 2);
	assert_true(first_iova(base + base / 2, page) < base + base / 2);
	/* all windows */
	assert_true(first_iova(base, 64 * 1024 * GIB) - base < 2 * MIB);
}

TEST(dma_unmap__waits_for_what_the_port_holds)
{
	struct dma_region *busy = dma_map(&dma, memory, 4096), *other;
	const uint64_t iova = busy->iova;

	rte_mbuf_ext_refcnt_update(&busy->shared, 1);
	remove_region(busy);
	assert_int_equal(unmaps, 0);
	assert_null(dma_find(&dma, memory, 1));
	/* Nobody else gets its addresses meanwhile, even if the allocation of addresses starts
	 * over. */
	dma.next_iova = iova;
	other = dma_map(&dma, memory, 4096);
	assert_true(other->iova >= iova + 4096);
	assert_int_equal(unmaps, 0);
	rte_mbuf_ext_refcnt_update(&busy->shared, -1);
	remove_region(other);
	assert_int_equal(unmaps, 2);
}

TEST(dma_map__of_what_vfio_refuses_is_none)
{
	refused = true;
	assert_null(dma_map(&dma, memory, 4096));
	assert_null(dma_find(&dma, memory, 1));
	assert_int_equal(unmaps, 0);
}
