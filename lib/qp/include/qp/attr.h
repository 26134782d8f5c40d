/* SPDX-License-Identifier: BSD-3-Clause */
/* The attributes that each transition of a queue pair's state requires and accepts
 * (ibv_modify_qp(3), IBTA 11.2.5.2). */
#ifndef QP_ATTR_H
#define QP_ATTR_H

#include <infiniband/verbs.h>

/* Limits of attribute values. */
struct attr_limits {
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
	uint32_t max_rate_kbps;
	enum ibv_mtu port_mtu;
};

/* The attributes that a queue pair keeps, with the names of struct ibv_qp_attr. */
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
 * Return the attributes of the mask that this type uses. MT-safe. An XRC queue pair ignores those
 * of the half that it does not have, as on Linux: programs set them as for RC.
 */
int attr_own(enum ibv_qp_type type, int mask);

/**
 * Check if a modification is allowed. MT-safe.
 *
 * @param from
 *   The present state.
 * @param to
 *   The requested state; `from` if the mask has no IBV_QP_STATE.
 * @return
 *   0, or -EINVAL: no such transition, a required attribute is missing, or one is given that it
 *   does not accept.
 */
int attr_check_mask(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask);

/** Return the name of a state as rdma(8) shows it; "UNKNOWN" for any other number. MT-safe. */
const char *attr_state_name(uint32_t state);

/** Check that every value of the mask is in its range. MT-safe. 0 or -EINVAL. */
int attr_check_values(const struct ibv_qp_attr *attr, int mask, const struct attr_limits *limits);

/** Store the values of the mask. */
void attr_apply(struct attr_kept *to, const struct ibv_qp_attr *from, int mask);

/** Return all values; those that are not kept are 0. */
void attr_tell(const struct attr_kept *from, struct ibv_qp_attr *to);

#endif
