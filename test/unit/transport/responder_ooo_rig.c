/* SPDX-License-Identifier: BSD-3-Clause */
/* A responder that keeps packets, and a region with relaxed ordering. */
#include "responder_ooo_rig.h"

static struct ooo_pool *pool;
struct region relaxed;

int responder_ooo_set_up(void **state)
{
	responder_rig_set_up(state);
	assert_int_equal(ooo_pool_create(64, &pool), 0);
	rig.responder.ooo.pool = pool;
	region_set_up(&relaxed, rig.fixture.pd, MEMORY,
		      REMOTE | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING, RELAXED_SEED);
	return 0;
}

int responder_ooo_tear_down(void **state)
{
	ooo_clear(&rig.responder.ooo);
	ooo_pool_destroy(pool);
	region_tear_down(&relaxed);
	return responder_rig_tear_down(state);
}

uint64_t counted(enum counter counter)
{
	return counters_get(&rig.fixture.counters, counter);
}
