/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/config/devargs.c. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "config/devargs.h"
#include "test.h"

static struct devargs d;

TEST(devargs_parse__takes_virtual_devices)
{
	assert_int_equal(devargs_parse("net_memif0,role=server,id=3", &d), 0);
	assert_int_equal(d.bus, DEVARGS_VDEV);
	assert_string_equal(d.name, "net_memif0");
	assert_string_equal(d.args, "role=server,id=3");
	assert_int_equal(devargs_parse("vdev:net_null0", &d), 0);
	assert_int_equal(d.bus, DEVARGS_VDEV);
	assert_string_equal(d.name, "net_null0");
	assert_string_equal(d.args, "");
}

TEST(devargs_parse__takes_pci_addresses_and_adds_the_domain)
{
	static const char *const texts[] = {"0000:03:1f.7", "03:1f.7", "pci:0000:03:1f.7",
					    "pci:03:1f.7"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(devargs_parse(texts[i], &d), 0);
		assert_int_equal(d.bus, DEVARGS_PCI);
		assert_string_equal(d.name, "0000:03:1f.7");
	}
	assert_int_equal(devargs_parse("0000:03:00.0,promisc=1", &d), 0);
	assert_string_equal(d.args, "promisc=1");
}

TEST(devargs_parse__leaves_other_buses_to_eal)
{
	assert_int_equal(devargs_parse("auxiliary:mlx5_core.sf.2", &d), 0);
	assert_int_equal(d.bus, DEVARGS_OTHER);
	assert_string_equal(d.name, "auxiliary:mlx5_core.sf.2");
}

TEST(devargs_parse__refuses_what_is_no_device)
{
	char text[DEVARGS_TEXT_MAX + DEVARGS_NAME_MAX];

	assert_int_equal(devargs_parse("", &d), -EINVAL);
	assert_int_equal(devargs_parse(",role=server", &d), -EINVAL);
	assert_int_equal(devargs_parse("pci:net_memif0", &d), -EINVAL);
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(devargs_parse(text, &d), -EINVAL);
	memcpy(text, "net_null0,", 10);
	assert_int_equal(devargs_parse(text, &d), -EINVAL);
}

TEST(devargs_is__wants_the_driver_and_a_number)
{
	devargs_parse("net_memif12", &d);
	assert_true(devargs_is(&d, "net_memif"));
	assert_false(devargs_is(&d, "net_null"));
	devargs_parse("net_memif_x", &d);
	assert_false(devargs_is(&d, "net_memif"));
}

TEST(devargs_get__finds_whole_keys_only)
{
	unsigned long number = 7;
	char value[8];

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

TEST(devargs_get_number__takes_numbers_only)
{
	static const char *const odd[] = {"abc", "4k", "0x10",
					  "",	 " 1", "-1",
					  "+1",	 "1 ", "99999999999999999999999999999999999"};
	unsigned long number = 7;
	char text[64];

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

TEST(devargs_get__does_not_cut_a_value)
{
	char value[4];

	devargs_parse("net_memif0,secret=abcd", &d);
	assert_false(devargs_get(&d, "secret", value, sizeof(value)));
}

/* The value is a file's name, or a secret. */
TEST(devargs_get__takes_a_value_to_its_end)
{
	char value[32];

	assert_int_equal(
		devargs_parse("net_memif0,socket=/run/a=b.sock,secret=aGk==,role=server,x==", &d),
		0);
	assert_true(devargs_get(&d, "socket", value, sizeof(value)));
	assert_string_equal(value, "/run/a=b.sock");
	assert_true(devargs_get(&d, "secret", value, sizeof(value)));
	assert_string_equal(value, "aGk==");
	assert_true(devargs_get(&d, "role", value, sizeof(value)));
	assert_string_equal(value, "server");
	assert_true(devargs_get(&d, "x", value, sizeof(value)));
	assert_string_equal(value, "=");
	assert_false(devargs_get(&d, "/run/a", value, sizeof(value)));
}

static int count_one(const char *key, const char *value, void *arg)
{
	unsigned int *count = arg;

	(*count)++;
	assert_true(*count == 2 || value != NULL);
	assert_true(key[0] >= 'a' && key[0] <= 'c');
	return 0;
}

/* A comma in brackets ends no argument, here as in drivers and in uroce-run. */
TEST(devargs_each__keeps_lists_whole)
{
	unsigned int count = 0;
	unsigned long number = 0;
	char value[32];

	assert_int_equal(devargs_parse("net_bonding0,a=[x,id,y],b,c=[2,3]", &d), 0);
	assert_true(devargs_get(&d, "a", value, sizeof(value)));
	assert_string_equal(value, "[x,id,y]");
	assert_true(devargs_get(&d, "c", value, sizeof(value)));
	assert_string_equal(value, "[2,3]");
	assert_false(devargs_get(&d, "b", value, sizeof(value)));
	assert_int_equal(devargs_get_number(&d, "id", &number), 0);
	assert_int_equal(number, 0);
	assert_int_equal(devargs_each(&d, count_one, &count), 0);
	assert_int_equal(count, 3);
}

TEST(devargs_parse__refuses_what_drivers_would_overlook)
{
	static const char *const bad[] = {"net_null0,",	    "net_null0,,a=1", "net_null0,=1",
					  "net_null0,a=[1", "net_null0,a=1]", "net_null0,a=[[1]]"};
	char text[256] = "net_null0";

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(devargs_parse(bad[i], &d), -EINVAL);
	/* rte_kvargs has room for fewer arguments. */
	for (int i = 0; i < 40; i++)
		strcat(text, ",a=1");
	assert_int_equal(devargs_parse(text, &d), -EINVAL);
}

TEST(devargs_default__adds_only_what_is_missing)
{
	devargs_parse("net_memif0", &d);
	assert_int_equal(devargs_default(&d, "rsize", "9"), 0);
	assert_string_equal(d.args, "rsize=9");
	assert_int_equal(devargs_default(&d, "bsize", "2048"), 0);
	assert_int_equal(devargs_default(&d, "rsize", "10"), 0);
	assert_string_equal(d.args, "rsize=9,bsize=2048");
}

TEST(devargs_default__leaves_no_half_argument)
{
	devargs_parse("net_memif0", &d);
	memset(d.args, 'a', sizeof(d.args) - 4);
	assert_int_equal(devargs_default(&d, "rsize", "9"), -ENOSPC);
	assert_int_equal(strlen(d.args), sizeof(d.args) - 4);
}
