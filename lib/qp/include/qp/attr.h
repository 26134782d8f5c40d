/* SPDX-License-Identifier: BSD-3-Clause */
/* Which attributes each transition of a queue pair's state needs and takes (ibv_modify_qp(3),
 * IBTA 11.2.5.2). */
#ifndef QP_ATTR_H
#define QP_ATTR_H

#include <infiniband/verbs.h>

/* Limits that attribute values are held against. */
struct attr_limits {
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
	uint32_t max_rate_kbps;
	enum ibv_mtu port_mtu;
};

/* What is kept of them, with the names of struct ibv_qp_attr. */
struct attr_kept {
	struct ibv_ah_attr ah_attr;
	enum ibv_mtu path_mtu;
	uint32_t qkey;
	uint32_t rq_psn;
	uint32_t sq_psn;
	uint32_t dest_qp_num;
	unsigned int qp_access_flags;
	uint32_t rate_limit;
	uint16_t pkey_index;
	uint8_t en_sqd_async_notify;
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
	uint8_t min_rnr_timer;
	uint8_t port_num;
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
};

/**
 * What a mask names of a type's own attributes. MT-safe. Those of the half that an XRC queue pair
 * does not have are passed over, as Linux does: programs set them as for RC.
 */
int attr_own(enum ibv_qp_type type, int mask);

/**
 * Whether a modification is allowed. MT-safe.
 *
 * @param from
 *   The present state.
 * @param to
 *   The state asked for; `from` where the mask has no IBV_QP_STATE.
 * @return
 *   0, or -EINVAL: no such transition, a required attribute missing, one given that it does not
 * take.
 */
int attr_check_mask(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask);

/** Whether every value that the mask names is in its range. MT-safe. 0 or -EINVAL. */
int attr_check_values(const struct ibv_qp_attr *attr, int mask, const struct attr_limits *limits);

/** Take over the values that the mask names. */
void attr_apply(struct attr_kept *to, const struct ibv_qp_attr *from, int mask);

/** Tell them all; what is not kept is 0. */
void attr_tell(const struct attr_kept *from, struct ibv_qp_attr *to);

#endif
