/* SPDX-License-Identifier: BSD-3-Clause */
/* The main function of unit tests that have none of their own. */
#include "test.h"

int main(int argc, char **argv)
{
	test_select(argc, argv);
	return test_run_all(NULL);
}
