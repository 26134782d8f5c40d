/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce_primary_*: the owner's half of sharing, run by an application on a port of its own
 * (uroce/primary.h). */
#include "uroce/primary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_ethdev.h>

#include "base/log.h"
#include "config/settings.h"
#include "forward.h"
#include "port/guest.h"
#include "report/set.h"
#include "report/metrics.h"
#include "server.h"
#include "share/claim.h"

#define EXPORTED      __attribute__((visibility("default")))
#define ERROR_MAX     256
#define CONTROL_POLLS 256 /* polls between two looks at descriptors, each a system call */
#define MODE_DEFAULT  0660

static_assert(UROCE_NO_QUEUE == GUEST_NO_QUEUE, "passed on as it is");

struct uroce_primary {
	struct guest guest;
	struct settings settings;
	struct server *server;
	unsigned int polls;
};

static bool primary_begun; /* only one in a process, for its rings and pools have fixed names */
static struct report_set primary_reports; /* DPDK's telemetry reads it until the process ends */

static bool port_does_dma(uint16_t port_id)
{
	struct rte_eth_dev_info info;
	const struct rte_bus *bus;

	if (rte_eth_dev_info_get(port_id, &info) != 0)
		return false;
	bus = rte_dev_bus(info.device);
	return bus && strcmp(rte_bus_name(bus), "vdev") != 0;
}

static int primary_set(struct settings *settings, const char *name, const char *value)
{
	char error[ERROR_MAX];

	if (settings_set(settings, name, value, error, sizeof(error)) == 0)
		return 0;
	log_error("%s", error);
	return -EINVAL;
}

static int primary_check(const struct uroce_primary_config *config)
{
	if (primary_begun)
		return -EBUSY;
	if (!rte_eth_dev_is_valid_port(config->port_id) || !config->ips) {
		log_error("port %u does not exist, or has no address", config->port_id);
		return -EINVAL;
	}
	if (port_does_dma(config->port_id)) {
		log_error("port %u does DMA, and cannot reach memory that processes share",
			  config->port_id);
		return -EOPNOTSUPP;
	}
	return 0;
}

static int primary_serve(struct uroce_primary *primary, const struct uroce_primary_config *config)
{
	struct serve_config serve = {
		.settings = &primary->settings,
		.guest = &primary->guest,
		.socket_path = config->socket ? config->socket : SETTINGS_DEFAULT_SOCKET,
		.socket_mode = config->socket_mode ? config->socket_mode : MODE_DEFAULT,
		.socket_owner = (uid_t)-1,
		.socket_group = (gid_t)-1,
		.reports = &primary_reports,
	};
	int rc;

	settings_init(&primary->settings);
	rc = primary_set(&primary->settings, "ip", config->ips);
	if (rc != 0)
		return rc;
	/* Set this before serve_create: if that fails, not all that it made is undone. */
	primary_begun = true;
	report_set_init(&primary_reports);
	rc = serve_create(&serve, &primary->server);
	if (rc == 0 && report_telemetry_start(&primary_reports) != 0)
		log_warn("cannot register /uroce with telemetry");
	return rc;
}

EXPORTED int uroce_primary_create(const struct uroce_primary_config *config,
				  struct uroce_primary **out)
{
	struct uroce_primary *primary;
	int rc;

	rc = primary_check(config);
	if (rc != 0)
		return rc;
	primary = calloc(1, sizeof(*primary));
	if (!primary)
		return -ENOMEM;
	primary->guest = (struct guest){
		.port_id = config->port_id,
		.rx_queue = GUEST_NO_QUEUE,
		.tx_queue = config->tx_queue,
		.starts_later = true,
		.takes_nothing = true,
	};
	rc = primary_serve(primary, config);
	if (rc != 0) {
		free(primary);
		return rc;
	}
	*out = primary;
	return 0;
}

EXPORTED struct rte_mempool *uroce_primary_pool(const struct uroce_primary *primary)
{
	return primary->server->uplink.link.port.pool;
}

/* Return the packet in a buffer that processes share, copied if necessary. NULL: there is no
 * buffer. */
static struct rte_mbuf *primary_move(struct server *server, struct rte_mbuf *mbuf)
{
	struct rte_mbuf *copy;

	if (mbuf->pool == server->uplink.link.port.pool && mbuf->nb_segs == 1)
		return mbuf;
	copy = rte_pktmbuf_copy(mbuf, server->uplink.link.port.pool, 0, UINT32_MAX);
	rte_pktmbuf_free(mbuf);
	return copy;
}

EXPORTED uint16_t uroce_primary_input(struct uroce_primary *primary, struct rte_mbuf **mbufs,
				      uint16_t n)
{
	struct server *server = primary->server;
	struct rte_mbuf *mbuf;
	uint16_t left = 0;

	for (uint16_t i = 0; i < n; i++) {
		const enum claim claim = claim_frame(
			&server->uplink.link.addresses, server->uplink.link.port.mac,
			rte_pktmbuf_mtod(mbufs[i], const uint8_t *), mbufs[i]->data_len);

		if (claim != CLAIM_ALL)
			mbufs[left++] = mbufs[i];
		if (claim == CLAIM_NOTHING)
			continue;
		mbuf = claim == CLAIM_ALL
			       ? primary_move(server, mbufs[i])
			       : rte_pktmbuf_copy(mbufs[i], server->uplink.link.port.pool, 0,
						  UINT32_MAX);
		if (!mbuf) {
			server->totals.no_buffer++;
			continue;
		}
		server->totals.rx_packets++;
		forward_input(server, mbuf);
	}
	return left;
}

EXPORTED unsigned int uroce_primary_poll(struct uroce_primary *primary)
{
	const unsigned int work = serve_poll(primary->server);

	if (++primary->polls % CONTROL_POLLS == 0)
		serve_sleep(primary->server, 0);
	return work;
}

EXPORTED uint16_t uroce_primary_output(struct uroce_primary *primary, struct rte_mbuf **mbufs,
				       uint16_t n)
{
	return guest_fetch(&primary->guest, mbufs, n);
}

EXPORTED void uroce_primary_destroy(struct uroce_primary *primary)
{
	serve_destroy(primary->server);
	free(primary);
}
