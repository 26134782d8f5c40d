/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/link/dma.c: finding regions. Mapping them needs VFIO: test/interop/nic. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "link/dma.h"

static struct dma dma;
static uint8_t memory[3 * 4096];

static int setup(void **state)
{
	static struct port port;

	(void)state;
	memset(&dma, 0, sizeof(dma));
	dma_init(&dma, &port);
	return 0;
}

static void dma_map__of_a_port_without_dma_maps_nothing(void **state)
{
	(void)state;
	assert_null(dma_map(&dma, memory, sizeof(memory)));
	assert_null(dma_find(&dma, memory, 1));
}

static void dma_find__finds_what_lies_in_one_region(void **state)
{
	struct dma_region first = {.addr = (uintptr_t)memory, .length = 4096};
	struct dma_region second = {.addr = (uintptr_t)memory + 4096, .length = 4096};

	(void)state;
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

static void dma_forget__finds_a_region_no_more(void **state)
{
	struct dma_region region = {.addr = (uintptr_t)memory, .length = 4096};

	(void)state;
	LIST_INSERT_HEAD(&dma.regions, &region, link);
	assert_ptr_equal(dma_find(&dma, memory, 4096), &region);
	dma_forget(&dma, &region);
	assert_null(dma_find(&dma, memory, 4096));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(dma_map__of_a_port_without_dma_maps_nothing, setup),
		cmocka_unit_test_setup(dma_find__finds_what_lies_in_one_region, setup),
		cmocka_unit_test_setup(dma_forget__finds_a_region_no_more, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
