/* SPDX-License-Identifier: BSD-3-Clause */
/* Prepares a memif port by the user's device arguments. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_ether.h>

#include "base/log.h"
#include "memif_args.h"
#include "memif_port.h"
#include "port/drivers.h"
#include "wire/build.h"

static int memif_refuse(const struct port *port, const char *what)
{
	log_error("port '%s': %s", port->devargs.name, what);
	return -EINVAL;
}

/* Return true if the longest frame to send or receive fits into as many buffers as either end
 * accepts for a packet. */
static bool memif_holds_frames(const struct port *port, unsigned long buffer_bytes,
			       unsigned long log2_size)
{
	const unsigned long frame = RTE_MIN(port->mtu_bytes + RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN,
					    (uint32_t)PACKET_FRAME_MAX);

	return frame <= buffer_bytes * RTE_MIN(1UL << log2_size, (unsigned long)MEMIF_CHAIN_MAX);
}

static int memif_configure(struct memif_port *memif, bool is_server)
{
	const struct port *port = memif->first.port;
	unsigned long id = 0, buffer_bytes = 0, log2_size = 0;
	char secret[DEVARGS_TEXT_MAX] = "";

	if (devargs_get_number(&port->devargs, "id", &id) != 0 ||
	    devargs_get_number(&port->devargs, "bsize", &buffer_bytes) != 0 ||
	    devargs_get_number(&port->devargs, "rsize", &log2_size) != 0)
		return -EINVAL;
	devargs_get(&port->devargs, "secret", secret, sizeof(secret));
	if (id > UINT32_MAX)
		return memif_refuse(port, "id is a number of 32 bits");
	if (buffer_bytes == 0 || buffer_bytes > UINT16_MAX)
		return memif_refuse(port, "bsize is from 1 to 65535");
	if (log2_size > MEMIF_LOG2_MAX)
		return memif_refuse(port, "rsize is the logarithm of at most 16384 buffers: 14");
	/* The client provides the buffers, so only a client checks this. */
	if (!is_server && !memif_holds_frames(port, buffer_bytes, log2_size))
		return memif_refuse(port,
				    "the longest frame needs more buffers of bsize bytes than "
				    "the ring has, or than 64: make bsize larger, or rsize");
	if (strlen(secret) >= sizeof(memif->config.secret))
		return memif_refuse(port, "secret has at most 23 characters");
	memif->config.id = (uint32_t)id;
	memif->config.buffer_bytes = (uint16_t)buffer_bytes;
	memif->config.log2_size = (uint8_t)log2_size;
	snprintf(memif->config.secret, sizeof(memif->config.secret), "%s", secret);
	return 0;
}

static int memif_read_mac(struct port *port)
{
	struct rte_ether_addr mac;
	char text[64];

	if (!devargs_get(&port->devargs, "mac", text, sizeof(text)) ||
	    rte_ether_unformat_addr(text, &mac) != 0)
		return memif_refuse(port, "mac is of the form 02:00:00:00:00:01");
	if (!rte_is_valid_assigned_ether_addr(&mac))
		return memif_refuse(port, "mac is one interface's: not a group's, and not zero");
	memcpy(port->mac, &mac, sizeof(port->mac));
	return 0;
}

int memif_port_prepare(struct port *port)
{
	struct memif_port *memif;
	bool is_server;
	int rc;

	rc = memif_prepare(&port->devargs);
	if (rc != 0)
		return rc;
	memif = memif_new(port);
	if (!memif)
		return -ENOMEM;
	if (port->mtu_bytes == 0)
		port->mtu_bytes = MEMIF_MTU;
	port_size_buffers(port, 0, PORT_MBUFS_SOFTWARE);
	memif_place_of(&port->devargs, memif->path, sizeof(memif->path), &memif->is_abstract);
	is_server = memif_is_server(&port->devargs);
	memif_choose(memif, is_server);
	port->link_needs_server = !is_server;
	port->opens_files = !is_server;
	rc = memif_configure(memif, is_server);
	if (rc == 0)
		rc = memif_read_mac(port);
	memif_client_init(&memif->client, &memif->config);
	return rc;
}
