/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of libibverbs that verbs.h of rdma-core 44 lacks. Later releases declare them with types of
 * other names, so each is declared here under a name of ours, with the symbol that programs use.
 * Manual pages: those of rdma-core 65.
 */
#ifndef VERBS_LATER_H
#define VERBS_LATER_H

#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#define LATER_CALL(symbol) __asm__(#symbol)

/* enum ibv_mr_init_attr_mask */
#define LATER_REG_MR_IOVA      (1u << 0)
#define LATER_REG_MR_ADDR      (1u << 1)
#define LATER_REG_MR_FD	       (1u << 2)
#define LATER_REG_MR_FD_OFFSET (1u << 3)
#define LATER_REG_MR_DMAH      (1u << 4)
#define LATER_REG_MR_BUF       (1u << 5)

/* A buffer of ibv_alloc_buf(3). */
struct later_buf;

/* struct ibv_mr_init_attr. The fields from iova on count only if comp_mask has their bit, and a
 * caller of a release without them may not have their memory. */
struct later_mr_init_attr {
	size_t length;
	int access;
	uint64_t comp_mask;
	uint64_t iova;
	void *addr;
	int fd;
	uint64_t fd_offset;
	void *dmah;
	struct later_buf *buf;
};

/** Return a name of an opcode, or "unknown". MT-safe. */
const char *later_wr_opcode_str(enum ibv_wr_opcode opcode) LATER_CALL(ibv_wr_opcode_str);

/** Query the rate of a port in units of 100 Mb/s. MT-safe. 0 or an errno value;
 * ibv_query_port_speed(3). */
int later_query_port_speed(struct ibv_context *ibv, uint32_t port_num, uint64_t *speed)
	LATER_CALL(ibv_query_port_speed);

/** Register memory, a dma-buf, or a part of a buffer. MT-safe. NULL with errno;
 * ibv_reg_mr_ex(3). */
struct ibv_mr *later_reg_mr_ex(struct ibv_pd *pd, struct later_mr_init_attr *attr)
	LATER_CALL(ibv_reg_mr_ex);

/** Allocate `size` bytes of whole pages, which read as zero. MT-safe. NULL with errno;
 * ibv_alloc_buf(3). */
void *later_alloc_buf(struct ibv_pd *pd, size_t size, struct later_buf **buf)
	LATER_CALL(ibv_alloc_buf);

/** Free a buffer, which no region uses any more. MT-safe. */
void later_free_buf(struct later_buf *buf) LATER_CALL(ibv_free_buf);

/** Register a part of a buffer of the same domain. MT-safe. NULL with errno. */
struct ibv_mr *later_reg_buf_mr(struct ibv_pd *pd, struct later_buf *buf, void *addr, size_t length,
				int access) LATER_CALL(ibv_reg_buf_mr);

/** Fail with ENODATA: no buffer is a dma-buf. MT-safe. -1 with errno. */
int later_export_buf_dmabuf_fd(struct later_buf *buf) LATER_CALL(ibv_export_buf_dmabuf_fd);

#endif
