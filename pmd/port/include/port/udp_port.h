/* SPDX-License-Identifier: BSD-3-Clause */
/* The addresses of a kernel interface as a port, by an ordinary UDP socket (udp/udp_socket.h). */
#ifndef PORT_UDP_PORT_H
#define PORT_UDP_PORT_H

#include <stdint.h>
#include <string.h>

struct port;

/** Get the MAC address that stands for every next hop of a port with this MAC address: the kernel
 * finds the true one. MT-safe. */
static inline void udp_port_gateway(const uint8_t mac[6], uint8_t gateway[6])
{
	memcpy(gateway, mac, 6);
	gateway[5] ^= 1; /* not the port's own */
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
