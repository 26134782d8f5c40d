/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs with mistakes that do no harm here: uroce-run --check finds them. Each ends what it has
 * created, except where that is its mistake. */
#include <stdlib.h>

#include "zoo_world.h"

static void region_left(void)
{
	struct ibv_mr *region = ibv_reg_mr(world.pd, memory[0], BYTES, ALL);

	must(region, "ibv_reg_mr");
	if (!wrong)
		must(ibv_dereg_mr(region) == 0, "ibv_dereg_mr");
	if (wrong)
		must(ibv_close_device(world.context) == 0, "ibv_close_device");
	else
		zoo_tear_down();
}

static void queue_pairs_left(void)
{
	connect_both();
	if (!wrong)
		zoo_tear_down();
}

const struct zoo_case zoo_check[] = {
	CASE(region_left),
	CASE(queue_pairs_left),
	{NULL, NULL},
};
