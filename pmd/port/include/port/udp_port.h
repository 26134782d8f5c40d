/* SPDX-License-Identifier: BSD-3-Clause */
/* The addresses of a kernel interface as a port, by an ordinary UDP socket (udp/udp_socket.h). */
#ifndef PORT_UDP_PORT_H
#define PORT_UDP_PORT_H

#include <stdint.h>

struct port;

/* The next hop of every packet: the kernel finds the true one. */
#define UDP_GATEWAY_MAC                            \
	{                                          \
		0x02, 0x00, 0x00, 0x00, 0x00, 0x01 \
	}

/**
 * Make `port` a port by which packets go as the kernel routes them. Before EAL starts. Not MT-safe.
 *
 * @param ifname
 *   The interface whose MTU and MAC address the port has.
 * @param mtu_bytes
 *   The MTU that the user has set, or 0.
 * @return
 *   0 or -errno (logged).
 */
int udp_port_prepare(struct port *port, const char *ifname, uint32_t mtu_bytes);

#endif
