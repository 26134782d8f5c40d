/* SPDX-License-Identifier: BSD-3-Clause */
/* What ports on kernel interfaces need before and after they are made. */
#ifndef AF_PACKET_PORT_H
#define AF_PACKET_PORT_H

#include <stddef.h>
#include <stdint.h>

#include "link/devargs.h"
#include "link/footprint.h"

#define AF_PACKET_DRIVER "net_af_packet"

/**
 * Add what the user left out: rings whose frames hold the interface's largest, or our largest.
 *
 * @param mtu_bytes
 *   The interface's.
 * @return
 *   0 or -errno (logged).
 */
int af_packet_prepare(struct devargs *devargs, uint32_t mtu_bytes);

/** The packet socket that appeared since `before`, or -1. */
int af_packet_find_socket(const struct fd_list *before);

/** Have groups' frames delivered, for as long as the socket lives. 0 or -errno (logged). */
int af_packet_listen_to_groups(int fd, const char *ifname);

/** Whether this process may open packet sockets. 0 or -errno (logged). */
int af_packet_check_privilege(void);

#endif
