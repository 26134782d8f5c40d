/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/device/device_map.c: which regions an engine hears of. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "device/device.h"
#include "device/device_map.h"
#include "mem/mr.h"
#include "test.h"

static struct mr mr;
static int maps, unmaps;
static uint8_t memory[64];

static void *map(void *user, const void *addr, size_t length)
{
	assert_ptr_equal(user, &mr);
	maps++;
	assert_ptr_equal(addr, memory);
	assert_int_equal(length, sizeof(memory));
	return &maps;
}

static void unmap(void *user, void *mapping)
{
	assert_ptr_equal(user, &mr);
	unmaps++;
	assert_ptr_equal(mapping, &maps);
}

static const struct device_dma_ops dma = {.map = map, .unmap = unmap};
static struct device device = {.dma_user = &mr};

static int setup(TEST_STATE)
{
	maps = unmaps = 0;
	device.dma = &dma;
	mr = (struct mr){.addr = memory,
			 .length = sizeof(memory),
			 .kind = MR_MEMORY,
			 .access = IBV_ACCESS_HUGETLB};
	return 0;
}

TEST_FIXTURE(setup, NULL);

TEST(device_map__tells_of_huge_pages_once)
{
	assert_true(device_may_map(&device, &mr));
	device_map(&device, &mr);
	device_unmap(&device, &mr);
	device_unmap(&device, &mr);
	assert_int_equal(maps, 1);
	assert_int_equal(unmaps, 1);
}

TEST(device_may_map__leaves_other_memory_out)
{
	mr.access = IBV_ACCESS_REMOTE_READ;
	assert_false(device_may_map(&device, &mr));
	mr.access = IBV_ACCESS_HUGETLB | IBV_ACCESS_ON_DEMAND;
	assert_false(device_may_map(&device, &mr));
	mr.access = IBV_ACCESS_HUGETLB;
	mr.kind = MR_DMABUF;
	assert_false(device_may_map(&device, &mr));
	device_unmap(&device, &mr);
	assert_int_equal(unmaps, 0);
}

TEST(device_may_map__needs_a_port_that_reads)
{
	device.dma = NULL;
	assert_false(device_may_map(&device, &mr));
}
