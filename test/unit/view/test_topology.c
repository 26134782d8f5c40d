/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/view/attributes.c: the place of a device among the CPUs. */
#include <errno.h>
#include <string.h>

#include "test.h"
#include "attributes.h"

static void expect_mask(const char *list, const char *mask)
{
	char text[256];

	assert_int_equal(topology_mask(list, text, sizeof(text)), 0);
	assert_string_equal(text, mask);
}

TEST(topology_mask__is_in_words_of_32_cpus)
{
	expect_mask("0\n", "00000001\n");
	expect_mask("0-1", "00000003\n");
	expect_mask("0-3,8\n", "0000010f\n");
	expect_mask("31,32", "00000001,80000000\n");
	expect_mask("64", "00000001,00000000,00000000\n");
}

TEST(topology_mask__other_texts_are_refused)
{
	static const char *const lists[] = {"",	   "x",	   "1-",      "3-1",   "1,",
					    "1 2", "4096", "0-99999", "1-2-3", "-1"};
	char text[256];

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		assert_int_equal(topology_mask(lists[i], text, sizeof(text)), -EINVAL);
}

TEST(topology_mask__that_does_not_fit_is_refused)
{
	char text[9];

	assert_int_equal(topology_mask("0", text, sizeof(text)), -EINVAL);
}

TEST(topology_numa_node__without_an_interface_is_unknown)
{
	char text[16];

	topology_numa_node("", text, sizeof(text));
	assert_string_equal(text, "-1\n");
	topology_numa_node("nosuch0", text, sizeof(text));
	assert_string_equal(text, "-1\n");
}

TEST(topology_cpus__without_an_interface_are_all)
{
	char list[256], mask[256], cpus[256];

	topology_cpulist("", list, sizeof(list));
	topology_cpus("", cpus, sizeof(cpus));
	assert_int_equal(topology_mask(list, mask, sizeof(mask)), 0);
	assert_string_equal(cpus, mask);
}
