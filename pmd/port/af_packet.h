/* SPDX-License-Identifier: BSD-3-Clause */
/* What ports on kernel interfaces need before and after they are made. */
#ifndef AF_PACKET_PORT_H
#define AF_PACKET_PORT_H

#include <stddef.h>
#include <stdint.h>

#include "eal/footprint.h"
#include "port/port.h"

/** Learn of a kernel interface, by whichever way its packets are taken: privilege, MTU, speed. 0 or
 * -errno (logged). */
int af_packet_learn(struct port *port, const char *ifname);

/** Return the bytes of a buffer that holds the interface's longest frame, or our longest. */
uint32_t af_packet_frame_bytes(uint32_t mtu_bytes);

/**
 * Add what the user left out for DPDK's driver: rings whose frames are that long.
 *
 * @param frame_bytes
 *   Set to that, or to what the user says.
 * @return
 *   0 or -errno (logged).
 */
int af_packet_prepare(struct port *port, uint32_t *frame_bytes);

/** The packet socket that appeared since `before`, or -1. */
int af_packet_find_socket(const struct fd_list *before);

/** Have groups' frames delivered, for as long as the socket lives. 0 or -errno (logged). */
int af_packet_listen_to_groups(int fd, const char *ifname);

#endif
