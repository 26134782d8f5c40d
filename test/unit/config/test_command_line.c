/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/config/command_line.c. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "config/command_line.h"
#include "test.h"

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
	settings.udp = true;
	strcpy(settings.port, "net_null0");
	strcpy(settings.kernel, "tap0");
	settings.ip_count = 2;
	command_line_make_way(&settings, netdev, port, ip);
}

TEST(command_line_make_way__a_port_takes_the_place_of_the_files)
{
	make_way(false, false, false);
	assert_string_equal(settings.netdev, "eth0");
	assert_string_equal(settings.port, "net_null0");
	assert_int_equal(settings.ip_count, 2);
	assert_true(settings.udp);
	make_way(true, false, false);
	assert_false(settings.udp);
	assert_string_equal(settings.netdev, "eth0");
	assert_string_equal(settings.port, "");
	assert_string_equal(settings.kernel, "");
	assert_int_equal(settings.ip_count, 0);
	make_way(false, true, false);
	assert_false(settings.udp);
	assert_string_equal(settings.netdev, "");
	assert_string_equal(settings.kernel, "tap0");
	assert_int_equal(settings.ip_count, 2);
	make_way(false, false, true);
	assert_int_equal(settings.ip_count, 0);
	assert_string_equal(settings.kernel, "");
}

/* Read the one argument with getopt_long, and expect this refusal; NULL: no refusal. */
static void expect_refused(char *argument, const char *text)
{
	char *argv[] = {"x", argument, NULL};
	int code;

	error[0] = '\0';
	command_line_rewind();
	code = getopt_long(2, argv, ":i", options, NULL);
	assert_int_equal(command_line_refused(code, argv, error, sizeof(error)), text != NULL);
	assert_string_equal(error, text ? text : "");
}

TEST(command_line_refused__names_the_option)
{
	expect_refused("--mtu=1500", NULL);
	expect_refused("-i", NULL);
	expect_refused("--mtu", "--mtu needs a value; see --help");
	expect_refused("--nothing", "unknown or ambiguous option '--nothing'; see --help");
	expect_refused("-n", "unknown or ambiguous option '-n'; see --help");
}

TEST(command_line_apply__sets_settings_and_nothing_else)
{
	char *good[] = {"x", "--config", "no-such-file", "--mtu", "1500", NULL};
	char *bad[] = {"x", "--mtu", "nonsense", "--mtu", "1500", NULL};

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
