/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/owner/uroce_primary.c: a port of the application's own. */
#include <errno.h>
#include <stddef.h>

#include <rte_dev.h>
#include <rte_ethdev.h>

#include "eal/runtime.h"
#include "test.h"
#include "uroce/primary.h"

#define MEMORY (32 << 20)
#define PORT   "net_null0"

static uint16_t port_id;

static int group_setup(TEST_STATE)
{
	const struct runtime_config config = {.memory_bytes = MEMORY};

	if (runtime_start(&config) != 0 || rte_eal_hotplug_add("vdev", PORT, "") != 0)
		return -1;
	return rte_eth_dev_get_port_by_name(PORT, &port_id);
}

static int group_teardown(TEST_STATE)
{
	return rte_eal_hotplug_remove("vdev", PORT);
}

TEST_GROUP(group_setup, group_teardown);

/* A failed call has created nothing, so the application may try again. */
TEST(uroce_primary_create__of_bad_addresses_may_be_called_again)
{
	struct uroce_primary_config config = {.tx_queue = UROCE_NO_QUEUE, .ips = "10.0.0.1/99"};
	struct uroce_primary *primary = NULL;

	config.port_id = port_id;
	assert_int_equal(uroce_primary_create(&config, &primary), -EINVAL);
	assert_int_equal(uroce_primary_create(&config, &primary), -EINVAL);
	assert_null(primary);
}
