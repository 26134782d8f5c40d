/* SPDX-License-Identifier: BSD-3-Clause */
/* These tests are linked to verbs: no other library implements them. */
#include "implementation.h"

bool uroce_private_has(const void *address)
{
	(void)address;
	return false;
}
