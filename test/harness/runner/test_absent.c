/* SPDX-License-Identifier: BSD-3-Clause */
/* A file that cannot run here, and says so as Meson understands it. */
#include <stdlib.h>

#include "skipped.h"
#include "test.h"

static int set_up_all(TEST_STATE)
{
	skipped_for("nothing is here");
	exit(77);
}

TEST_GROUP(set_up_all, NULL);

TEST(absent__one)
{
}

TEST(absent__two)
{
}
