/* SPDX-License-Identifier: BSD-3-Clause */
/* Thread domains, parent domains, and queues that are made with them. */
#ifndef TEST_VERBS_DOMAINS_H
#define TEST_VERBS_DOMAINS_H

#include "fake_provider.h"

/* A call that returns a pointer fails. */
#define assert_refused(call, error)             \
	do {                                    \
		errno = 0;                      \
		assert_null(call);              \
		assert_int_equal(errno, error); \
	} while (0)

struct ibv_td *domains_td(struct ibv_context *context);

/** A parent domain without allocators; `td` may be NULL. */
struct ibv_pd *domains_parent(struct ibv_pd *pd, struct ibv_td *td);

/** NULL with errno where the call fails, here and below. */
struct ibv_cq *domains_cq(struct ibv_pd *parent, uint32_t flags, uint64_t wc_flags);
struct ibv_qp *domains_qp(struct ibv_pd *pd, struct ibv_cq *cq);
struct ibv_srq *domains_srq(struct ibv_pd *pd);

#endif
