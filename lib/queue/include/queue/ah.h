/* SPDX-License-Identifier: BSD-3-Clause */
/* Address handles: the resolved path that a datagram's work request names. */
#ifndef QUEUE_AH_H
#define QUEUE_AH_H

#include <stddef.h>

#include <infiniband/verbs.h>

#include "wire/build.h"

struct ah {
	struct ibv_ah ibv; /* what the application holds: first, so that a cast leads from one to
			      the other */
	struct path path;
};
static_assert(offsetof(struct ah, ibv) == 0, "a work request's ibv_ah is a struct ah");

#endif
