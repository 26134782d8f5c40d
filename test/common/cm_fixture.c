/* SPDX-License-Identifier: BSD-3-Clause */
/* Gives each test of a file a rig of its own. */
#include "cm_fixture.h"

struct cm_rig rig;

int cm_fixture_set_up(TEST_STATE)
{
	rig_init(&rig);
	return 0;
}

int cm_fixture_tear_down(TEST_STATE)
{
	rig_fini(&rig);
	return 0;
}
