/* SPDX-License-Identifier: BSD-3-Clause */
/* A file that does not end by itself. */
#include <stdio.h>
#include <unistd.h>

#include "test.h"

TEST(stuck__for_ever)
{
	puts("it hangs now");
	fflush(stdout);
	for (;;)
		pause();
}
