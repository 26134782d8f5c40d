/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens a port of the process's own by EAL, for the provider. */
#include "owning.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "base/log.h"
#include "config/devargs.h"
#include "config/settings.h"
#include "device/registry.h"
#include "eal/runtime.h"
#include "net/link.h"
#include "port/drivers.h"
#include "port/guest.h"
#include "report/set.h"
#include "report/metrics.h"
#include "report/write.h"
#include "share/claim.h"
#include "uroce/port.h"

struct link;
struct settings;

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

/*
 * Start EAL as a secondary of the primary with the settings' file-prefix. Open a link there on the
 * settings' port, using the queues with our process's number. Once per process. Not MT-safe.
 * Returns 0 or -errno (logged).
 */
static int secondary_open_link(const struct settings *settings, struct link *link)
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

struct link;
struct settings;

#define EXPORTED  __attribute__((visibility("default")))
#define ERROR_MAX 256

static_assert(UROCE_NO_QUEUE == GUEST_NO_QUEUE, "passed on as it is");

struct uroce_port {
	struct guest guest;
	struct settings settings;
	struct link *link; /* set when there is a device */
};

static struct uroce_port embed_ports[SETTINGS_PORTS_MAX];
static uint32_t embed_count;
static struct uroce_port *embed_newest; /* also the one that is being attached; NULL: none */

/* Return the settings of the port that the program attaches, or has attached last; NULL if it has
 * attached none. */
static const struct settings *embed_settings(void)
{
	return embed_newest ? &embed_newest->settings : NULL;
}

/* Open the link on that port. Returns 0 or -errno (logged). */
static int embed_open_link(struct link *link)
{
	const int rc = link_open_guest(link, &embed_newest->guest, &embed_newest->settings);

	if (rc == 0)
		embed_newest->link = link;
	else
		link_close(link);
	return rc;
}

static int embed_set(struct uroce_port *port, const char *name, const char *value)
{
	char error[ERROR_MAX];

	if (!value || settings_set(&port->settings, name, value, error, sizeof(error)) == 0)
		return 0;
	log_error("%s", error);
	return -EINVAL;
}

/* Return 0 if no other port has this number, or gives its device this name. */
static int embed_check_new(const struct uroce_port *port)
{
	for (uint32_t i = 0; i < embed_count; i++) {
		if (embed_ports[i].guest.port_id == port->guest.port_id) {
			log_error("port %u has a device already", port->guest.port_id);
			return -EBUSY;
		}
		if (strcmp(embed_ports[i].settings.name, port->settings.name) == 0) {
			log_error("there is a device '%s' already", port->settings.name);
			return -EINVAL;
		}
	}
	return 0;
}

static int embed_prepare(struct uroce_port *port, const struct uroce_port_config *config)
{
	char name[sizeof(port->settings.name)];
	int rc;

	if (!config->ips) {
		log_error("port %u has no address", config->port_id);
		return -EINVAL;
	}
	settings_init(&port->settings);
	snprintf(name, sizeof(name), "uroce%u", embed_count);
	rc = embed_set(port, "ip", config->ips);
	if (rc == 0)
		rc = embed_set(port, "name", config->name ? config->name : name);
	if (rc == 0)
		rc = embed_set(port, "progress", config->progress);
	port->guest = (struct guest){
		.port_id = config->port_id,
		.rx_queue = config->rx_queue,
		.tx_queue = config->tx_queue,
		.pool = config->pool,
	};
	return rc == 0 ? embed_check_new(port) : rc;
}

/* Return true if the program's verbs have chosen the library without this function already: they
 * would never show the device. */
static bool embed_comes_too_late(void)
{
	char path[PATH_MAX];
	Dl_info object;
	char *name;

	if (dladdr(embed_ports, &object) == 0 || !object.dli_fname ||
	    !realpath(object.dli_fname, path))
		return false;
	name = strrchr(path, '/') + 1;
	snprintf(name, sizeof(path) - (size_t)(name - path), "liburoce-attached.so");
	return dlopen(path, RTLD_NOW | RTLD_NOLOAD) != NULL;
}

EXPORTED int uroce_attach_port(const struct uroce_port_config *config, struct uroce_port **port)
{
	struct uroce_port *next = &embed_ports[embed_count];
	int rc;

	if (embed_comes_too_late())
		return -EBUSY;
	if (embed_count == RTE_DIM(embed_ports))
		return -ENOSPC;
	rc = embed_prepare(next, config);
	if (rc != 0)
		return rc;
	embed_newest = next;
	rc = registry_add();
	if (rc < 0) {
		embed_newest = embed_count > 0 ? &embed_ports[embed_count - 1] : NULL;
		return rc;
	}
	embed_count++;
	*port = next;
	return 0;
}

/* If there is no room, drop the frame, as a full port does. */
static void embed_give(struct uroce_port *port, struct rte_mbuf *mbuf)
{
	if (guest_give(&port->guest, &mbuf, 1) == 0)
		rte_pktmbuf_free(mbuf);
}

EXPORTED uint16_t uroce_port_input(struct uroce_port *port, struct rte_mbuf **mbufs, uint16_t n)
{
	struct rte_mbuf *copy;
	uint16_t left = 0;

	for (uint16_t i = 0; i < n; i++) {
		switch (claim_frame(&port->link->addresses, port->link->port.mac,
				    rte_pktmbuf_mtod(mbufs[i], const uint8_t *),
				    mbufs[i]->data_len)) {
		case CLAIM_ALL:
			embed_give(port, mbufs[i]);
			break;
		case CLAIM_COPY:
			copy = rte_pktmbuf_copy(mbufs[i], port->link->port.pool, 0, UINT32_MAX);
			if (copy)
				embed_give(port, copy);
			mbufs[left++] = mbufs[i];
			break;
		case CLAIM_NOTHING:
			mbufs[left++] = mbufs[i];
			break;
		}
	}
	return left;
}

EXPORTED uint16_t uroce_port_output(struct uroce_port *port, struct rte_mbuf **mbufs, uint16_t n)
{
	return guest_fetch(&port->guest, mbufs, n);
}

/* Start EAL with what a prepared port needs. */
static int owning_start_runtime(const struct settings *settings, const struct link *link)
{
	const struct runtime_config config = {
		.devices = &link->port.devargs,
		.device_count = link->port.devargs.bus == DEVARGS_VDEV ? 0 : 1,
		.memory_bytes = port_memory_bytes(&link->port),
		.telemetry = settings->telemetry,
		.eal = settings->eal[0] ? settings->eal : NULL,
		.file_prefix = settings->file_prefix[0] ? settings->file_prefix : NULL};

	return runtime_start(&config);
}

static int owning_open_link(const struct settings *settings, struct link *link)
{
	int rc;

	if (embed_settings())
		return embed_open_link(link);
	if (settings->secondary != 0)
		return secondary_open_link(settings, link);
	rc = link_prepare(link, settings);
	provider_size_pool(settings, link);
	if (rc == 0)
		rc = owning_start_runtime(settings, link);
	if (rc == 0)
		rc = link_open(link, settings);
	return rc;
}

/* Start telemetry, only if the user asked for it: its socket is a file, which remains when the
 * process is killed. */
static int owning_start_telemetry(struct report *report)
{
	static struct report_set set;
	int rc;

	report_set_init(&set);
	rc = report_set_add(&set, report->pid, 0, report);
	if (rc == 0)
		rc = report_telemetry_start(&set);
	if (rc != 0)
		log_error("cannot answer DPDK's telemetry: %s", strerror(-rc));
	return rc;
}

static const struct owning owning_table = {
	.attached_port = embed_settings,
	.open_link = owning_open_link,
	.start_runtime = owning_start_runtime,
	.start_telemetry = owning_start_telemetry,
	.settle = runtime_settle,
};

static void __attribute__((constructor)) owning_register(void)
{
	provider_set_owning(&owning_table);
}
