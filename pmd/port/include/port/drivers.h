/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of DPDK drivers whose ports need code of their own. */
#ifndef PORT_DRIVERS_H
#define PORT_DRIVERS_H

#define AF_PACKET_DRIVER   "net_af_packet"
#define AF_XDP_DRIVER	   "net_af_xdp"
#define BOND_DRIVER	   "net_bonding" /* its members are devices of EAL's options */
#define LOCAL_DRIVER	   "local" /* no driver of DPDK: a port without a network (local_port.h) */
#define MEMIF_DRIVER	   "net_memif" /* DPDK's name; the implementation is our own (memif_port.h) */
#define NULL_DRIVER	   "net_null"
#define TAP_DRIVER	   "net_tap"
#define VHOST_DRIVER	   "net_vhost"
#define VIRTIO_USER_DRIVER "net_virtio_user"

#endif
