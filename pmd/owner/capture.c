/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Captures by dpdk-dumpcap, a DPDK secondary process of the owner. DPDK's pdump copies packets that
 * pass through a port. Packets between processes pass through no port, so the owner sends a copy of
 * them to a port that leads nowhere.
 */
#include "capture.h"

#include <stdio.h>

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_pdump.h>

#include "base/log.h"
#include "config/settings.h"
#include "eal/runtime.h"
#include "server.h"

#define DRIVER	    "net_null" /* the port's name begins with it, and ends with its purpose */
#define DESCRIPTORS 64

static int capture_error(const char *what, int rc)
{
	log_error("capture: %s: %s", what, rte_strerror(-rc));
	return rc;
}

/* Start pdump once, with the first port: it serves all ports of the process. */
static int capture_start_pdump(const struct server *server)
{
	if (server->number > 0)
		return 0;
	if (!runtime_has_huge_pages()) {
		log_error("capture needs huge pages, which dpdk-dumpcap maps too");
		return -ENOTSUP;
	}
	if (rte_pdump_init() != 0)
		return capture_error("DPDK's pdump does not start", -rte_errno);
	return 0;
}

static int capture_make_port(struct server *server)
{
	const struct rte_eth_conf conf = {0};
	char name[RTE_ETH_NAME_MAX_LEN];
	uint16_t id;
	int rc;

	snprintf(name, sizeof(name), DRIVER "_handed_over%u", server->number);
	rc = rte_eal_hotplug_add("vdev", name, "no-rx=1");
	if (rc == 0)
		rc = rte_eth_dev_get_port_by_name(name, &id);
	if (rc == 0)
		rc = rte_eth_dev_configure(id, 1, 1, &conf);
	if (rc == 0)
		rc = rte_eth_rx_queue_setup(id, 0, DESCRIPTORS, SOCKET_ID_ANY, NULL,
					    server->uplink.link.port.pool);
	if (rc == 0)
		rc = rte_eth_tx_queue_setup(id, 0, DESCRIPTORS, SOCKET_ID_ANY, NULL);
	if (rc == 0)
		rc = rte_eth_dev_start(id);
	if (rc != 0)
		return capture_error("no port for what is handed over", rc);
	server->capture.port = id;
	server->capture.on = true;
	return 0;
}

int capture_open(struct server *server, const struct settings *settings)
{
	int rc = 0;

	if (settings->capture != SETTINGS_CAPTURE_NO)
		rc = capture_start_pdump(server);
	if (rc == 0 && settings->capture == SETTINGS_CAPTURE_ALL)
		rc = capture_make_port(server);
	return rc;
}

struct rte_mbuf *capture_copy(const struct server *server, const struct rte_mbuf *mbuf)
{
	return server->capture.on
		       ? rte_pktmbuf_copy(mbuf, server->uplink.link.port.pool, 0, UINT32_MAX)
		       : NULL;
}

void capture_send(const struct server *server, struct rte_mbuf *copy)
{
	if (copy && rte_eth_tx_burst(server->capture.port, 0, &copy, 1) == 0)
		rte_pktmbuf_free(copy);
}
