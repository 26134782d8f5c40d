/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/engine/embed.c: uroce_attach_port, on a port of the test's own. */
#include <errno.h>
#include <stddef.h>

#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_ring.h>

#include "device/device.h"
#include "device/registry.h"
#include "eal/runtime.h"
#include "open_fds.h"
#include "test.h"
#include "uroce/port.h"

#define MEMORY	(128 << 20)
#define PORT	"net_null0"
#define QUEUES	1
#define RING	64
#define BUFFERS 255

static struct rte_mempool *pool;
static struct uroce_port_config config = {
	.rx_queue = UROCE_NO_QUEUE, .tx_queue = UROCE_NO_QUEUE, .ips = "10.0.0.1/24"};

static int group_setup(TEST_STATE)
{
	const struct runtime_config runtime = {.memory_bytes = MEMORY};
	const struct rte_eth_conf conf = {.rxmode.mq_mode = RTE_ETH_MQ_RX_NONE};

	if (runtime_start(&runtime) != 0 || rte_eal_hotplug_add("vdev", PORT, "") != 0 ||
	    rte_eth_dev_get_port_by_name(PORT, &config.port_id) != 0)
		return -1;
	pool = rte_pktmbuf_pool_create("small", BUFFERS, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
	if (!pool || rte_eth_dev_configure(config.port_id, QUEUES, QUEUES, &conf) != 0 ||
	    rte_eth_rx_queue_setup(config.port_id, 0, RING, 0, NULL, pool) != 0)
		return -1;
	return rte_eth_tx_queue_setup(config.port_id, 0, RING, 0, NULL);
}

TEST_GROUP(group_setup, NULL);

/* Fail to attach, and leave nothing. */
static void refuse(const struct uroce_port_config *wrong, int rc)
{
	struct uroce_port *port = NULL;
	const unsigned int fds = fds_count();

	assert_int_equal(uroce_attach_port(wrong, &port), rc);
	assert_null(port);
	assert_int_equal(fds_count(), fds);
	assert_null(rte_mempool_lookup("uroce_guest_0"));
	assert_null(rte_ring_lookup("uroce_in_0"));
	assert_null(rte_ring_lookup("uroce_out_0"));
}

/* The tests of this file run in this order, in one process, which attaches once. */
TEST(uroce_attach_port__of_a_port_that_is_not_started)
{
	refuse(&config, -EINVAL);
}

TEST(uroce_attach_port__of_a_port_that_does_not_exist)
{
	struct uroce_port_config wrong = config;

	wrong.port_id = RTE_MAX_ETHPORTS - 1;
	refuse(&wrong, -EINVAL);
	wrong.port_id = UINT16_MAX;
	refuse(&wrong, -EINVAL);
}

TEST(uroce_attach_port__of_a_queue_that_the_port_does_not_have)
{
	struct uroce_port_config wrong = config;

	assert_int_equal(rte_eth_dev_start(config.port_id), 0);
	wrong.rx_queue = QUEUES;
	refuse(&wrong, -EINVAL);
	wrong.rx_queue = UROCE_NO_QUEUE - 1;
	refuse(&wrong, -EINVAL);
	wrong = config;
	wrong.tx_queue = QUEUES;
	refuse(&wrong, -EINVAL);
}

TEST(uroce_attach_port__of_a_pool_with_small_buffers)
{
	struct uroce_port_config wrong = config;

	assert_int_equal(rte_eth_dev_set_mtu(config.port_id, 4200), 0);
	wrong.pool = pool;
	refuse(&wrong, -EINVAL);
}

/* The port is open already when the device cannot be made. */
TEST(uroce_attach_port__of_a_port_that_is_too_small_for_roce)
{
	assert_int_equal(rte_eth_dev_set_mtu(config.port_id, 100), 0);
	refuse(&config, -EINVAL);
	assert_int_equal(rte_eth_dev_set_mtu(config.port_id, 1500), 0);
}

TEST(uroce_attach_port__works_after_errors)
{
	struct uroce_port *port = NULL, *other = NULL;
	struct device *const *devices;

	config.rx_queue = config.tx_queue = 0;
	assert_int_equal(uroce_attach_port(&config, &port), 0);
	assert_non_null(port);
	assert_int_equal(registry_devices(&devices), 1);
	assert_int_equal(uroce_attach_port(&config, &other), -EBUSY);
	assert_int_equal(registry_devices(&devices), 1);
}
