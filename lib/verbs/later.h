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

/* Fields behind wr_atomic_write in struct ibv_qp_ex. verbs.h has them since rdma-core 45. They have
 * the same place whatever verbs.h this library is compiled with. */
struct later_qp_ex {
	void (*wr_flush)(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, size_t length,
			 uint8_t type, uint8_t level);
};

#define LATER_QP_EX_OFF                                \
	(offsetof(struct ibv_qp_ex, wr_atomic_write) + \
	 sizeof(((struct ibv_qp_ex *)NULL)->wr_atomic_write))

static inline struct later_qp_ex *later_qp_ex(struct ibv_qp_ex *ex)
{
	return (struct later_qp_ex *)((char *)ex + LATER_QP_EX_OFF);
}

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

struct later_comp_cntr_caps {
	uint64_t max_value;
	uint32_t max_counters;
	uint32_t supported_qp_attach_ops; /* 1 << enum comp_cntr_op */
};

/* enum ibv_comp_cntr_type */
enum later_comp_cntr_type {
	LATER_COMP_CNTR_WRS,
	LATER_COMP_CNTR_BYTES,
};

/* struct ibv_comp_cntr */
struct later_comp_cntr {
	struct ibv_context *context;
	uint32_t handle;
};

struct later_comp_cntr_init_attr {
	uint32_t comp_mask;
	enum later_comp_cntr_type type;
	uint32_t flags;
};

struct later_qp_attach_comp_cntr_attr {
	uint32_t comp_mask;
	uint32_t op_mask; /* 1 << enum comp_cntr_op */
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

/** Query what counters can do. MT-safe. 0 or an errno value, as all below;
 * ibv_query_comp_cntr_caps(3). */
int later_query_comp_cntr_caps(struct ibv_context *ibv, struct later_comp_cntr_caps *caps,
			       size_t caps_bytes) LATER_CALL(_ibv_query_comp_cntr_caps);

/** Create a completion counter. MT-safe. NULL with errno; ibv_create_comp_cntr(3). */
struct later_comp_cntr *later_create_comp_cntr(struct ibv_context *ibv,
					       struct later_comp_cntr_init_attr *attr)
	LATER_CALL(ibv_create_comp_cntr);

/** Destroy a counter that no queue pair uses. MT-safe. */
int later_destroy_comp_cntr(struct later_comp_cntr *cntr) LATER_CALL(ibv_destroy_comp_cntr);

/** Let a counter count operations of a queue pair, until that is destroyed. MT-safe;
 * ibv_qp_attach_comp_cntr(3). */
int later_qp_attach_comp_cntr(struct ibv_qp *qp, struct later_comp_cntr *cntr,
			      struct later_qp_attach_comp_cntr_attr *attr)
	LATER_CALL(ibv_qp_attach_comp_cntr);

/** Set, increment and read the count of completions, or of errors. MT-safe. */
int later_set_comp_cntr(struct later_comp_cntr *cntr, uint64_t value) LATER_CALL(ibv_set_comp_cntr);
int later_set_err_comp_cntr(struct later_comp_cntr *cntr, uint64_t value)
	LATER_CALL(ibv_set_err_comp_cntr);
int later_inc_comp_cntr(struct later_comp_cntr *cntr, uint64_t amount)
	LATER_CALL(ibv_inc_comp_cntr);
int later_inc_err_comp_cntr(struct later_comp_cntr *cntr, uint64_t amount)
	LATER_CALL(ibv_inc_err_comp_cntr);
int later_read_comp_cntr(struct later_comp_cntr *cntr, uint64_t *value)
	LATER_CALL(ibv_read_comp_cntr);
int later_read_err_comp_cntr(struct later_comp_cntr *cntr, uint64_t *value)
	LATER_CALL(ibv_read_err_comp_cntr);

#endif
