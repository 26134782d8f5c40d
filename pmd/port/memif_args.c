/* SPDX-License-Identifier: BSD-3-Clause */
/* Completes and checks the user's device arguments of a memif port. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_ether.h>

#include "base/host.h"
#include "base/log.h"
#include "memif_port.h"
#include "port/drivers.h"
#include "wire/build.h"

#define MEMIF_SOCKET "/run/memif.sock" /* the driver's default; there it is abstract */

/* Return true if this end is the server. The default is the client. */
static bool memif_is_server(const struct devargs *devargs)
{
	char role[16];

	return devargs_get(devargs, "role", role, sizeof(role)) &&
	       (strcmp(role, "server") == 0 || strcmp(role, "master") == 0);
}

/* Return true if the socket is abstract. An abstract socket is open to every user of the host, but
 * to no other network namespace. So a path is a file's path unless the user says otherwise. */
static bool memif_is_abstract(const struct devargs *devargs, const char *path)
{
	char value[8];

	if (!devargs_get(devargs, "socket-abstract", value, sizeof(value)))
		return path[0] != '/';
	return strcmp(value, "no") != 0;
}

/* Get the name of the socket, which fits into an address, and tell if it is abstract. */
static void memif_place_of(const struct devargs *devargs, char *path, size_t size,
			   bool *is_abstract)
{
	snprintf(path, size, "%s", MEMIF_SOCKET);
	devargs_get(devargs, "socket", path, size);
	*is_abstract = memif_is_abstract(devargs, path);
}

static int memif_check_path(const char *path, bool is_abstract)
{
	char dir[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	const char *slash = strrchr(path, '/');

	if (strlen(path) >= sizeof(dir) - 1) {
		log_error("memif socket %s: the name is too long (at most %zu characters)", path,
			  sizeof(dir) - 2);
		return -EINVAL;
	}
	if (is_abstract)
		return 0;
	if (!slash) {
		log_error("memif socket %s: give its whole path, like /run/%s", path, path);
		return -EINVAL;
	}
	snprintf(dir, sizeof(dir), "%.*s", slash == path ? 1 : (int)(slash - path), path);
	if (access(dir, R_OK | W_OK | X_OK) < 0) {
		log_error("memif socket %s: cannot write to directory %s: %s", path, dir,
			  strerror(errno));
		return -EACCES;
	}
	return 0;
}

/*
 * Derive the port's MAC address from the socket's path, the id and the role. The two ends of a
 * connection need different addresses, and a peer that remembers ours should reach us after a
 * restart.
 */
static int memif_add_mac(struct devargs *devargs, const char *path)
{
	char end[DEVARGS_TEXT_MAX];
	unsigned long id = 0;
	char text[18];
	uint64_t hash;

	if (devargs_get_number(devargs, "id", &id) != 0)
		return -EINVAL;
	snprintf(end, sizeof(end), "%s %lu %s", path, id,
		 memif_is_server(devargs) ? "server" : "client");
	hash = hash_unique(end);
	/* Locally administered, no group. */
	snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x",
		 (unsigned int)((hash & 0xfc) | 0x02), (unsigned int)(hash >> 8 & 0xff),
		 (unsigned int)(hash >> 16 & 0xff), (unsigned int)(hash >> 24 & 0xff),
		 (unsigned int)(hash >> 32 & 0xff), (unsigned int)(hash >> 40 & 0xff));
	return devargs_default(devargs, "mac", text);
}

/* Check the role. The driver accepts the old names, too. */
static int memif_check_role(const struct devargs *devargs)
{
	static const char *const roles[] = {"server", "master", "client", "slave"};
	char role[DEVARGS_TEXT_MAX];

	if (!devargs_get(devargs, "role", role, sizeof(role)))
		return 0;
	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
		if (strcmp(role, roles[i]) == 0)
			return 0;
	}
	log_error("port '%s': the role is server or client, not '%s'", devargs->name, role);
	return -EINVAL;
}

static int memif_check_abstract(const struct devargs *devargs)
{
	char value[DEVARGS_TEXT_MAX];

	if (!devargs_get(devargs, "socket-abstract", value, sizeof(value)) ||
	    strcmp(value, "yes") == 0 || strcmp(value, "no") == 0)
		return 0;
	log_error("port '%s': socket-abstract is yes or no, not '%s'", devargs->name, value);
	return -EINVAL;
}

/* Return 1, with the name, if we do not know the argument. DPDK's driver knows more. */
static int memif_find_unknown(const char *key, const char *value, void *arg)
{
	static const char *const known[] = {"role",  "socket", "socket-abstract",
					    "id",    "mac",    "secret",
					    "bsize", "rsize",  "zero-copy"};
	char *unknown = arg;

	(void)value;
	for (size_t i = 0; i < RTE_DIM(known); i++) {
		if (strcmp(key, known[i]) == 0)
			return 0;
	}
	snprintf(unknown, DEVARGS_NAME_MAX, "%s", key);
	return 1;
}

static int memif_check_known(const struct devargs *devargs)
{
	char value[DEVARGS_TEXT_MAX], unknown[DEVARGS_NAME_MAX];

	if (devargs_each(devargs, memif_find_unknown, unknown) != 0) {
		log_error("port '%s': uroce's memif has no argument '%s'", devargs->name, unknown);
		return -EINVAL;
	}
	/* zero-copy=no is what we do. */
	if (!devargs_get(devargs, "zero-copy", value, sizeof(value)) || strcmp(value, "no") == 0)
		return 0;
	log_error("port '%s': zero-copy=%s is not supported: memif packets are copied; "
		  "leave the argument out",
		  devargs->name, value);
	return -EINVAL;
}

int memif_args_complete(struct devargs *devargs)
{
	char path[DEVARGS_TEXT_MAX] = MEMIF_SOCKET;
	bool is_abstract;
	int rc;

	devargs_get(devargs, "socket", path, sizeof(path));
	is_abstract = memif_is_abstract(devargs, path);
	rc = memif_check_known(devargs);
	if (rc == 0)
		rc = memif_check_role(devargs);
	if (rc == 0)
		rc = memif_check_abstract(devargs);
	if (rc == 0)
		rc = memif_check_path(path, is_abstract);
	if (rc != 0)
		return rc;
	if (!is_abstract)
		rc = devargs_default(devargs, "socket-abstract", "no");
	if (rc == 0)
		rc = devargs_default(devargs, "bsize", RTE_STR(MEMIF_BUFFER_BYTES));
	if (rc == 0)
		rc = devargs_default(devargs, "rsize", RTE_STR(MEMIF_RING_LOG2));
	if (rc == 0)
		rc = memif_add_mac(devargs, path);
	if (rc == -ENOSPC)
		log_error("the arguments of port '%s' are too long", devargs->name);
	return rc;
}

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

	rc = memif_args_complete(&port->devargs);
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
