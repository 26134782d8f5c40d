/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue of a DPDK primary that does not know of us. A primary such as `dpdk-testpmd --num-procs=2
 * --proc-id=0 --rxq=2 --txq=2` leaves the queues of the other processes to them. Buffers come from
 * the primary's pool. We use none of the pool's per-lcore stacks, because they belong to the
 * primary's lcores. If we are killed, the primary loses the buffers that we hold; a user who must
 * avoid that runs uroced.
 */
#include "secondary.h"

#include <errno.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "base/log.h"
#include "config/devargs.h"
#include "config/settings.h"
#include "eal/runtime.h"
#include "net/link.h"
#include "port/drivers.h"
#include "port/guest.h"

static struct guest secondary_guest;

/* Find the pool of packet buffers that has the largest buffers. */
static void secondary_look_at_pool(struct rte_mempool *pool, void *arg)
{
	struct rte_mempool **best = arg;

	if (pool->private_data_size < sizeof(struct rte_pktmbuf_pool_private) ||
	    pool->elt_size < sizeof(struct rte_mbuf))
		return;
	if (!*best || rte_pktmbuf_data_room_size(pool) > rte_pktmbuf_data_room_size(*best))
		*best = pool;
}

static int secondary_find_port(const struct settings *settings, const char *name)
{
	struct guest *guest = &secondary_guest;
	struct rte_eth_dev_info info;
	const uint16_t queue = (uint16_t)settings->secondary;

	*guest = (struct guest){.rx_queue = queue, .tx_queue = queue, .alone = true};
	if (rte_eth_dev_get_port_by_name(name, &guest->port_id) != 0 ||
	    rte_eth_dev_info_get(guest->port_id, &info) != 0) {
		log_error("the DPDK primary has no port '%s' that another process may use", name);
		return -ENODEV;
	}
	if (queue >= info.nb_rx_queues || queue >= info.nb_tx_queues) {
		log_error(
			"port '%s' has %u receive and %u transmit queues, and none with number %u "
			"(testpmd: --rxq=%u --txq=%u)",
			name, info.nb_rx_queues, info.nb_tx_queues, queue, queue + 1u, queue + 1u);
		return -ENODEV;
	}
	rte_mempool_walk(secondary_look_at_pool, &guest->pool);
	if (guest->pool)
		return 0;
	log_error("the DPDK primary has no pool of packet buffers");
	return -ENODEV;
}

/* Tell the user that the primary must direct packets to our queue. A memif port needs no warning:
 * its other end chooses the queue. */
static void secondary_warn(const struct settings *settings, const struct devargs *devargs)
{
	if (devargs_is(devargs, MEMIF_DRIVER))
		return;
	log_warn("port '%s': only what its owner brings to queue %u arrives, which takes flow "
		 "rules for RoCE and ARP; without them give the port to uroced, or have its owner "
		 "hand RoCE over (uroce/primary.h)",
		 devargs->name, settings->secondary);
}

int secondary_open_link(const struct settings *settings, struct link *link)
{
	struct devargs devargs;
	struct runtime_config config = {
		.devices = &devargs,
		.secondary = true,
		.eal = settings->eal[0] ? settings->eal : NULL,
		.file_prefix = settings->file_prefix[0] ? settings->file_prefix : NULL};
	int rc;

	rc = devargs_parse(settings->port, &devargs);
	if (rc != 0)
		return rc;
	config.device_count = devargs.bus == DEVARGS_VDEV ? 0 : 1;
	rc = runtime_start(&config);
	if (rc == 0)
		rc = secondary_find_port(settings, devargs.name);
	if (rc == 0)
		rc = link_open_guest(link, &secondary_guest, settings);
	if (rc == 0)
		secondary_warn(settings, &devargs);
	return rc;
}
