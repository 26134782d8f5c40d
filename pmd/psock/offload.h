/* SPDX-License-Identifier: BSD-3-Clause */
/* What headers of the kernel's that are older than UDP segmentation lack. */
#ifndef PSOCK_OFFLOAD_H
#define PSOCK_OFFLOAD_H

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

#endif
