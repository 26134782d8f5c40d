/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions of dma-bufs: buffers of other devices, accessed here by mmap(2). */
#ifndef MEM_DMABUF_H
#define MEM_DMABUF_H

#include <stddef.h>
#include <stdint.h>

struct mr;
struct pd;

/**
 * Register a part of a dma-buf; mr_deregister deregisters it. MT-safe. The buffer lives at least as
 * long as the region, even if the caller closes `fd`. CPU access to it begins now and ends with the
 * region (DMA_BUF_IOCTL_SYNC), if the exporter supports this.
 *
 * @param iova
 *   The address of the first byte in the key's address space; its page offset must be the same.
 * @param access
 *   Local write and remote access; the optional range is ignored.
 * @return
 *   0; -EBADF for a bad descriptor; -EINVAL for one that is not a dma-buf, a range that is not in
 *   it, page offsets that differ, or any other access flag; -EOPNOTSUPP for a buffer that cannot be
 *   mapped; -EACCES if `access` needs a writable buffer and it is read-only; -ENOMEM. Source:
 *   ibv_reg_dmabuf_mr(3).
 */
int dmabuf_register(struct pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
		    unsigned int access, struct mr **mr);

#endif
