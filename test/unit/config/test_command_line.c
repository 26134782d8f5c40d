/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/config/command_line.c. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "config/command_line.h"

enum { CODE_SETTING = 256, CODE_OTHER };

static const struct option options[] = {
	{"mtu", required_argument, NULL, CODE_SETTING},
	{"config", required_argument, NULL, CODE_OTHER},
	{NULL, 0, NULL, 0},
};

static struct settings settings;
static char error[256];

static void make_way(bool netdev, bool port, bool ip)
{
	settings_init(&settings);
	strcpy(settings.netdev, "eth0");
	strcpy(settings.port, "net_null0");
	strcpy(settings.kernel, "tap0");
	settings.ip_count = 2;
	command_line_make_way(&settings, netdev, port, ip);
}

static void command_line_make_way__a_port_takes_the_place_of_the_files(void **state)
{
	(void)state;
	make_way(false, false, false);
	assert_string_equal(settings.netdev, "eth0");
	assert_string_equal(settings.port, "net_null0");
	assert_int_equal(settings.ip_count, 2);
	make_way(true, false, false);
	assert_string_equal(settings.netdev, "eth0");
	assert_string_equal(settings.port, "");
	assert_string_equal(settings.kernel, "");
	assert_int_equal(settings.ip_count, 0);
	make_way(false, true, false);
	assert_string_equal(settings.netdev, "");
	assert_string_equal(settings.kernel, "tap0");
	assert_int_equal(settings.ip_count, 2);
	make_way(false, false, true);
	assert_int_equal(settings.ip_count, 0);
	assert_string_equal(settings.kernel, "");
}

static void command_line_apply__sets_settings_and_nothing_else(void **state)
{
	char *good[] = {"x", "--config", "no-such-file", "--mtu", "1500", NULL};
	char *bad[] = {"x", "--mtu", "nonsense", "--mtu", "1500", NULL};

	(void)state;
	settings_init(&settings);
	assert_int_equal(command_line_apply(5, good, "", options, CODE_SETTING, &settings, error,
					    sizeof(error)),
			 0);
	assert_int_equal(settings.mtu, 1500);
	settings_init(&settings);
	assert_int_equal(command_line_apply(5, bad, "", options, CODE_SETTING, &settings, error,
					    sizeof(error)),
			 -EINVAL);
	assert_int_equal(settings.mtu, 0);
	assert_non_null(strstr(error, "nonsense"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(command_line_make_way__a_port_takes_the_place_of_the_files),
		cmocka_unit_test(command_line_apply__sets_settings_and_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
