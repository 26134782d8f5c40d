/* SPDX-License-Identifier: BSD-3-Clause */
/* Definitions that kernel headers lack if they are older than UDP segmentation offload. */
#ifndef PSOCK_OFFLOAD_H
#define PSOCK_OFFLOAD_H

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

#endif
