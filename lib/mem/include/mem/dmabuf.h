/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions of dma-bufs: buffers of other devices, which are reached here through mmap(2). */
#ifndef MEM_DMABUF_H
#define MEM_DMABUF_H

#include <stddef.h>
#include <stdint.h>

struct mr;
struct pd;

/**
 * Register a part of a dma-buf, to be deregistered with mr_deregister. MT-safe. The buffer lives at
 * least as long as the region, whatever becomes of `fd`. CPU access to it begins now and ends with
 * the region (DMA_BUF_IOCTL_SYNC), where its exporter wants to know.
 *
 * @param iova
 *   The address of the first byte in keys' address space; of the same page offset.
 * @param access
 *   Local write and remote access; the optional range is ignored.
 * @return
 *   0; -EBADF for no descriptor; -EINVAL for one that is no dma-buf, what is not in it, page
 * offsets that differ, any other access; -EOPNOTSUPP for a buffer that cannot be mapped; -EACCES
 * where it may not be written and shall; -ENOMEM. Source: ibv_reg_dmabuf_mr(3).
 */
int dmabuf_register(struct pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
		    unsigned int access, struct mr **mr);

#endif
