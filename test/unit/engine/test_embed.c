/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/engine/owning.c: uroce_attach_port, on ports of the test's own. */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_ring.h>

#include "device/device.h"
#include "device/registry.h"
#include "eal/runtime.h"
#include "net/arp.h"
#include "open_fds.h"
#include "test.h"
#include "uroce/port.h"

#define MEMORY	(128 << 20)
#define PORTS	3
#define QUEUES	1
#define RING	64
#define BUFFERS 255
#define WAIT_MS 20000

static struct rte_mempool *pool;
static struct uroce_port_config config = {
	.rx_queue = UROCE_NO_QUEUE, .tx_queue = UROCE_NO_QUEUE, .ips = "10.0.0.1/24"};
static uint16_t ids[PORTS + 1]; /* the first one is that of config, the last one comes too late */

/* Make a port, which is not started yet. */
static int make_port(int number)
{
	const struct rte_eth_conf conf = {.rxmode.mq_mode = RTE_ETH_MQ_RX_NONE};
	char name[] = "net_null0";
	uint16_t *id = &ids[number];

	name[sizeof(name) - 2] = (char)('0' + number);
	if (rte_eal_hotplug_add("vdev", name, "") != 0 ||
	    rte_eth_dev_get_port_by_name(name, id) != 0 ||
	    rte_eth_dev_configure(*id, QUEUES, QUEUES, &conf) != 0 ||
	    rte_eth_rx_queue_setup(*id, 0, RING, 0, NULL, pool) != 0)
		return -1;
	return rte_eth_tx_queue_setup(*id, 0, RING, 0, NULL);
}

static int group_setup(TEST_STATE)
{
	const struct runtime_config runtime = {.memory_bytes = MEMORY};

	if (runtime_start(&runtime) != 0)
		return -1;
	pool = rte_pktmbuf_pool_create("small", BUFFERS, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
	if (!pool)
		return -1;
	for (int i = 0; i < PORTS + 1; i++) {
		if (make_port(i) != 0)
			return -1;
	}
	config.port_id = ids[0];
	return 0;
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

/* The tests of this file run in this order, in one process. */
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

	config.rx_queue = config.tx_queue = 0;
	assert_int_equal(uroce_attach_port(&config, &port), 0);
	assert_non_null(port);
	assert_int_equal(uroce_attach_port(&config, &other), -EBUSY);
	assert_null(other);
}

/* Ask a port's device for the link address of 10.0.0.1, and return it in `mac`. */
static void ask(struct uroce_port *port, uint8_t mac[6])
{
	static const uint8_t peer_mac[6] = {2, 0, 0, 0, 0, 0xb};
	static const uint8_t peer_ip[4] = {10, 0, 0, 2}, ip[4] = {10, 0, 0, 1};
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);
	struct arp arp;

	assert_non_null(mbuf);
	arp_build_request((uint8_t *)rte_pktmbuf_append(mbuf, ARP_FRAME_LEN), peer_mac, peer_ip,
			  ip);
	assert_int_equal(uroce_port_input(port, &mbuf, 1), 0);
	for (int i = 0; uroce_port_output(port, &mbuf, 1) == 0; i++) {
		assert_int_not_equal(i, WAIT_MS);
		usleep(1000);
	}
	assert_true(arp_parse(rte_pktmbuf_mtod(mbuf, uint8_t *), mbuf->data_len, &arp));
	assert_false(arp.request);
	memcpy(mac, arp.sender_mac, sizeof(arp.sender_mac));
	rte_pktmbuf_free(mbuf);
}

TEST(uroce_attach_port__gives_each_port_a_device)
{
	struct uroce_port_config more = {
		.rx_queue = UROCE_NO_QUEUE, .tx_queue = UROCE_NO_QUEUE, .ips = "10.0.0.1/24"};
	struct uroce_port *ports[PORTS] = {0};
	struct device *const *devices;
	uint8_t mac[6];

	more.port_id = ids[1];
	assert_int_equal(uroce_attach_port(&more, &ports[1]), -EINVAL); /* not started */
	assert_int_equal(rte_eth_dev_start(ids[1]), 0);
	assert_int_equal(uroce_attach_port(&more, &ports[1]), 0);
	more.port_id = ids[2];
	more.name = "uroce1";
	assert_int_equal(rte_eth_dev_start(ids[2]), 0);
	assert_int_equal(uroce_attach_port(&more, &ports[2]), -EINVAL);
	more.name = "third";
	assert_int_equal(uroce_attach_port(&more, &ports[2]), 0);
	assert_int_equal(registry_devices(&devices), PORTS);
	assert_string_equal(devices[0]->config.name, "uroce0");
	assert_string_equal(devices[1]->config.name, "uroce1");
	assert_string_equal(devices[2]->config.name, "third");
	for (int i = 1; i < PORTS; i++) {
		ask(ports[i], mac);
		assert_memory_equal(mac, devices[i]->config.mac, sizeof(mac));
		assert_memory_not_equal(mac, devices[i - 1]->config.mac, sizeof(mac));
	}
}

TEST(uroce_attach_port__comes_too_late_after_the_first_list)
{
	struct uroce_port_config late = config;
	struct uroce_port *port = NULL;
	struct device *const *devices;

	late.port_id = ids[PORTS];
	late.name = "late";
	assert_int_equal(rte_eth_dev_start(late.port_id), 0);
	assert_int_equal(registry_devices(&devices), PORTS);
	assert_int_equal(uroce_attach_port(&late, &port), -EBUSY);
	assert_int_equal(registry_devices(&devices), PORTS);
}
