/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asserts what always holds of a queue pair between two calls of its engine: of every struct that
 * keeps indices, PSNs or lists. Only where assertions are on (checked_lib in lib/meson.build); each
 * struct's own check stands beside the struct.
 */
#include "internal.h"

#ifndef NDEBUG

void qp_check(const struct qp *qp)
{
	sq_check(&qp->sq);
}

#endif
