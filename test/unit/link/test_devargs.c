/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/link/devargs.c. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "link/devargs.h"

static struct devargs d;

static void devargs_parse__takes_virtual_devices(void **state)
{
	(void)state;
	assert_int_equal(devargs_parse("net_memif0,role=server,id=3", &d), 0);
	assert_int_equal(d.bus, DEVARGS_VDEV);
	assert_string_equal(d.name, "net_memif0");
	assert_string_equal(d.args, "role=server,id=3");
	assert_int_equal(devargs_parse("vdev:net_null0", &d), 0);
	assert_int_equal(d.bus, DEVARGS_VDEV);
	assert_string_equal(d.name, "net_null0");
	assert_string_equal(d.args, "");
}

static void devargs_parse__takes_pci_addresses_and_adds_the_domain(void **state)
{
	static const char *const texts[] = {"0000:03:1f.7", "03:1f.7", "pci:0000:03:1f.7",
					    "pci:03:1f.7"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(devargs_parse(texts[i], &d), 0);
		assert_int_equal(d.bus, DEVARGS_PCI);
		assert_string_equal(d.name, "0000:03:1f.7");
	}
	assert_int_equal(devargs_parse("0000:03:00.0,promisc=1", &d), 0);
	assert_string_equal(d.args, "promisc=1");
}

static void devargs_parse__leaves_other_buses_to_eal(void **state)
{
	(void)state;
	assert_int_equal(devargs_parse("auxiliary:mlx5_core.sf.2", &d), 0);
	assert_int_equal(d.bus, DEVARGS_OTHER);
	assert_string_equal(d.name, "auxiliary:mlx5_core.sf.2");
}

static void devargs_parse__refuses_what_is_no_device(void **state)
{
	char text[DEVARGS_TEXT_MAX + DEVARGS_NAME_MAX];

	(void)state;
	assert_int_equal(devargs_parse("", &d), -EINVAL);
	assert_int_equal(devargs_parse(",role=server", &d), -EINVAL);
	assert_int_equal(devargs_parse("pci:net_memif0", &d), -EINVAL);
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(devargs_parse(text, &d), -EINVAL);
	memcpy(text, "net_null0,", 10);
	assert_int_equal(devargs_parse(text, &d), -EINVAL);
}

static void devargs_is__wants_the_driver_and_a_number(void **state)
{
	(void)state;
	devargs_parse("net_memif12", &d);
	assert_true(devargs_is(&d, "net_memif"));
	assert_false(devargs_is(&d, "net_null"));
	devargs_parse("net_memif_x", &d);
	assert_false(devargs_is(&d, "net_memif"));
}

static void devargs_get__finds_whole_keys_only(void **state)
{
	unsigned long number = 7;
	char value[8];

	(void)state;
	devargs_parse("net_memif0,xid=1,id=22,idx=3,socket=", &d);
	assert_true(devargs_get(&d, "id", value, sizeof(value)));
	assert_string_equal(value, "22");
	assert_true(devargs_get(&d, "xid", value, sizeof(value)));
	assert_string_equal(value, "1");
	assert_true(devargs_get(&d, "socket", value, sizeof(value)));
	assert_string_equal(value, "");
	assert_false(devargs_get(&d, "role", value, sizeof(value)));
	assert_int_equal(devargs_get_number(&d, "idx", &number), 0);
	assert_int_equal(number, 3);
	assert_int_equal(devargs_get_number(&d, "rsize", &number), 0);
	assert_int_equal(number, 3);
}

static void devargs_get_number__takes_numbers_only(void **state)
{
	static const char *const odd[] = {"abc", "4k", "0x10",
					  "",	 " 1", "-1",
					  "+1",	 "1 ", "99999999999999999999999999999999999"};
	unsigned long number = 7;
	char text[64];

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		snprintf(text, sizeof(text), "net_memif0,id=%s,rsize=1", odd[i]);
		devargs_parse(text, &d);
		assert_int_equal(devargs_get_number(&d, "id", &number), -EINVAL);
		assert_int_equal(number, 7);
	}
	devargs_parse("net_memif0,id=010", &d);
	assert_int_equal(devargs_get_number(&d, "id", &number), 0);
	assert_int_equal(number, 10);
}

static void devargs_get__does_not_cut_a_value(void **state)
{
	char value[4];

	(void)state;
	devargs_parse("net_memif0,secret=abcd", &d);
	assert_false(devargs_get(&d, "secret", value, sizeof(value)));
}

static void devargs_default__adds_only_what_is_missing(void **state)
{
	(void)state;
	devargs_parse("net_memif0", &d);
	assert_int_equal(devargs_default(&d, "rsize", "9"), 0);
	assert_string_equal(d.args, "rsize=9");
	assert_int_equal(devargs_default(&d, "bsize", "2048"), 0);
	assert_int_equal(devargs_default(&d, "rsize", "10"), 0);
	assert_string_equal(d.args, "rsize=9,bsize=2048");
}

static void devargs_default__leaves_no_half_argument(void **state)
{
	(void)state;
	devargs_parse("net_memif0", &d);
	memset(d.args, 'a', sizeof(d.args) - 4);
	assert_int_equal(devargs_default(&d, "rsize", "9"), -ENOSPC);
	assert_int_equal(strlen(d.args), sizeof(d.args) - 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devargs_parse__takes_virtual_devices),
		cmocka_unit_test(devargs_parse__takes_pci_addresses_and_adds_the_domain),
		cmocka_unit_test(devargs_parse__leaves_other_buses_to_eal),
		cmocka_unit_test(devargs_parse__refuses_what_is_no_device),
		cmocka_unit_test(devargs_is__wants_the_driver_and_a_number),
		cmocka_unit_test(devargs_get__finds_whole_keys_only),
		cmocka_unit_test(devargs_get_number__takes_numbers_only),
		cmocka_unit_test(devargs_get__does_not_cut_a_value),
		cmocka_unit_test(devargs_default__adds_only_what_is_missing),
		cmocka_unit_test(devargs_default__leaves_no_half_argument),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
