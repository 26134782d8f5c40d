/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/device/device_map.c: which regions an engine hears of. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "device/device.h"
#include "device/device_map.h"
#include "mem/mr.h"
#include "test.h"

static int maps, unmaps;
static uint8_t memory[64];
static bool port_reads;

static bool can_map(void *engine)
{
	(void)engine;
	return port_reads;
}

static void *map(void *engine, const void *addr, size_t length)
{
	(void)engine;
	maps++;
	assert_ptr_equal(addr, memory);
	assert_int_equal(length, sizeof(memory));
	return &maps;
}

static void unmap(void *engine, void *mapping)
{
	(void)engine;
	unmaps++;
	assert_ptr_equal(mapping, &maps);
}

static const struct engine_ops ops = {.maps = can_map, .map = map, .unmap = unmap};
static struct device_engine engine;
static struct device device = {.engines = {&engine}, .engine_count = 1};
static struct mr mr;

static int setup(TEST_STATE)
{
	maps = unmaps = 0;
	port_reads = true;
	engine.ops = &ops;
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
	static const struct engine_ops plain;

	port_reads = false;
	assert_false(device_may_map(&device, &mr));
	engine.ops = &plain;
	assert_false(device_may_map(&device, &mr));
	engine.ops = NULL;
	assert_false(device_may_map(&device, &mr));
}
