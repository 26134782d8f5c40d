/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce_attach_port: devices on ports of a program that runs DPDK itself (uroce/port.h). */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "base/log.h"
#include "config/settings.h"
#include "device/registry.h"
#include "embed.h"
#include "net/link.h"
#include "port/guest.h"
#include "share/claim.h"
#include "uroce/port.h"

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

const struct settings *embed_settings(void)
{
	return embed_newest ? &embed_newest->settings : NULL;
}

int embed_open_link(struct link *link)
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
