/* SPDX-License-Identifier: BSD-3-Clause */
/* Preparation and set-up of ports on kernel interfaces. */
#ifndef AF_PACKET_PORT_H
#define AF_PACKET_PORT_H

#include <stddef.h>
#include <stdint.h>

#include "eal/footprint.h"
#include "port/port.h"

/** Get the MTU and the speed of a port on a kernel interface. 0 or -errno (logged). */
int af_packet_learn_netdev(struct port *port, const char *ifname);

/** Return a packet socket that receives nothing yet (psock_socket), or -errno (logged): the process
 * may have none. */
int af_packet_socket(void);

/** Do the same as af_packet_learn_netdev for a port that needs packet sockets, after a check of the
 * privilege. */
int af_packet_learn(struct port *port, const char *ifname);

/** Return the size of a buffer that holds the longest frame of the interface and of ours. */
uint32_t af_packet_frame_bytes(uint32_t mtu_bytes);

/**
 * Add the driver's ring arguments that the user left out.
 *
 * @param frame_bytes
 *   Set to the ring's frame size, ours or the user's.
 * @return
 *   0 or -errno (logged).
 */
int af_packet_prepare(struct port *port, uint32_t *frame_bytes);

/** Return the packet socket that was opened since `before`, which is the driver's; -1: none. */
int af_packet_find_socket(const struct fd_list *before);

/** Receive frames of all multicast groups while the socket is open. 0 or -errno (logged). */
int af_packet_listen_to_groups(int fd, const char *ifname);

#endif
