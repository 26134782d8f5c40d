/* SPDX-License-Identifier: BSD-3-Clause */
/* Definitions that verbs.h of rdma-core 44 lacks and later releases have: FLUSH and ATOMIC WRITE.
 * The numbers are those of Linux's rdma/ib_user_verbs.h since 6.2. */
#ifndef BASE_VERBS_LATER_H
#define BASE_VERBS_LATER_H

/* enum ibv_access_flags */
#define LATER_ACCESS_FLUSH_GLOBAL     (1u << 8)
#define LATER_ACCESS_FLUSH_PERSISTENT (1u << 9)

/* enum ibv_wr_opcode, enum ibv_wc_opcode, enum ibv_qp_create_send_ops_flags */
#define LATER_WR_FLUSH	       14
#define LATER_WC_FLUSH	       8
#define LATER_QP_EX_WITH_FLUSH (1u << 11)

/* enum ib_uverbs_device_cap_flags */
#define LATER_DEVICE_FLUSH_GLOBAL (1ull << 38)
#define LATER_DEVICE_ATOMIC_WRITE (1ull << 40)

#endif
