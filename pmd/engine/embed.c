/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce_attach_port: a device on a port of the program that runs DPDK itself (uroce/port.h). */
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

static struct uroce_port embedded; /* one per process, as the device */
static bool embed_asked;

const struct settings *embed_settings(void)
{
	return embed_asked ? &embedded.settings : NULL;
}

int embed_open_link(struct link *link)
{
	const int rc = link_open_guest(link, &embedded.guest, &embedded.settings);

	if (rc == 0)
		embedded.link = link;
	else
		link_close(link);
	return rc;
}

static int embed_set(const char *name, const char *value)
{
	char error[ERROR_MAX];

	if (!value || settings_set(&embedded.settings, name, value, error, sizeof(error)) == 0)
		return 0;
	log_error("%s", error);
	return -EINVAL;
}

static int embed_prepare(const struct uroce_port_config *config)
{
	int rc;

	if (!config->ips) {
		log_error("port %u has no address", config->port_id);
		return -EINVAL;
	}
	settings_init(&embedded.settings);
	rc = embed_set("ip", config->ips);
	if (rc == 0)
		rc = embed_set("name", config->name);
	if (rc == 0)
		rc = embed_set("progress", config->progress);
	embedded.guest = (struct guest){
		.port_id = config->port_id,
		.rx_queue = config->rx_queue,
		.tx_queue = config->tx_queue,
		.pool = config->pool,
	};
	return rc;
}

/* Return true if the program's verbs have chosen the library without this function already: they
 * would never show the device. */
static bool embed_comes_too_late(void)
{
	char path[PATH_MAX];
	Dl_info object;
	char *name;

	if (dladdr(&embedded, &object) == 0 || !object.dli_fname ||
	    !realpath(object.dli_fname, path))
		return false;
	name = strrchr(path, '/') + 1;
	snprintf(name, sizeof(path) - (size_t)(name - path), "liburoce-attached.so");
	return dlopen(path, RTLD_NOW | RTLD_NOLOAD) != NULL;
}

EXPORTED int uroce_attach_port(const struct uroce_port_config *config, struct uroce_port **port)
{
	struct device *const *devices;
	int rc;

	if (embed_asked || embed_comes_too_late())
		return -EBUSY;
	rc = embed_prepare(config);
	if (rc != 0)
		return rc;
	embed_asked = true;
	rc = registry_devices(&devices);
	if (rc < 0) {
		/* Nothing is left of this attempt. */
		embed_asked = false;
		embedded.link = NULL;
		registry_retry();
		return rc;
	}
	/* The program has asked for devices before. */
	if (!embedded.link)
		return -EBUSY;
	*port = &embedded;
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
