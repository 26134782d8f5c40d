/* SPDX-License-Identifier: BSD-3-Clause */
/* A memif port between two untrusting programs, which get the two ends of its sockets from a third.
 */
#ifndef PORT_MEMIF_DIRECT_H
#define PORT_MEMIF_DIRECT_H

#include <stdbool.h>
#include <stdint.h>

struct port;

struct memif_direct_config {
	bool is_server;
	int socket_fd;	 /* non-blocking; the port takes it over */
	int doorbell_fd; /* our end of the doorbells (memif/doorbell.h); the port takes it over */
	/* The wake_fd of a memif port of this process that outlives this one. Packets in either
	 * port make it readable, once both are armed. That port is armed first: this takes the
	 * notifications of both. */
	int wake_epoll_fd;
	const uint8_t *mac;
	uint32_t mtu_bytes;
};

/**
 * Make a port one end of such a connection. It connects when it is opened and port_conn_run is
 * called, once. When the connection has ended, the port is lost (port_lost). It logs nothing,
 * because the other end could cause a message at any time. Not MT-safe.
 *
 * @return
 *   0; -ENOMEM: the descriptors are still the caller's.
 */
int memif_prepare_direct(struct port *port, const struct memif_direct_config *config);

/** Return true if packets wait in such a port. Engine's thread. */
bool memif_direct_waits(const struct port *port);

#endif
