/* SPDX-License-Identifier: BSD-3-Clause */
/* A file whose process is killed. */
#include <signal.h>

#include "test.h"

TEST(killed__by_a_signal)
{
	raise(SIGKILL);
}
