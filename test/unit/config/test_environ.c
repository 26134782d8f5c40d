/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/config/environ.c. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/settings.h"

static int clear(void **state)
{
	(void)state;
	return clearenv();
}

static void set(struct settings *settings, const char *name, const char *value)
{
	char error[256] = "";

	if (settings_set(settings, name, value, error, sizeof(error)) != 0)
		fail_msg("%s = '%s' was refused: %s", name, value, error);
}

static void settings_import__what_was_exported(void **state)
{
	struct settings out, in;
	char error[256] = "";

	(void)state;
	settings_init(&out);
	set(&out, "port", "net_memif0,role=server,socket=/run/x.sock");
	set(&out, "ip", "10.0.0.1/24, fd00::1/64");
	set(&out, "name", "nic1");
	set(&out, "mtu", "4200");
	set(&out, "progress", "dedicated");
	set(&out, "log-level", "debug");
	set(&out, "without", "key-cache");
	assert_int_equal(settings_export(&out), 0);
	memset(&in, 0xa5, sizeof(in));
	assert_int_equal(settings_import(&in, error, sizeof(error)), 0);
	assert_memory_equal(&in, &out, sizeof(in));
}

/* A program that attaches has no port of its own. */
static void settings_import__a_socket_alone(void **state)
{
	struct settings out, in;
	char error[256] = "";

	(void)state;
	settings_init(&out);
	set(&out, "socket", "/run/x.sock");
	assert_int_equal(settings_export(&out), 0);
	assert_int_equal(settings_import(&in, error, sizeof(error)), 0);
	assert_memory_equal(&in, &out, sizeof(in));
	settings_init(&out);
	set(&out, "isolated", "/run/i.sock");
	assert_int_equal(settings_export(&out), 0);
	assert_int_equal(settings_import(&in, error, sizeof(error)), 0);
	assert_memory_equal(&in, &out, sizeof(in));
}

static void settings_import__as_many_and_as_long_as_can_be(void **state)
{
	struct settings out, in;
	char text[64], error[256] = "";

	(void)state;
	settings_init(&out);
	memset(out.port, 'p', sizeof(out.port) - 1);
	for (unsigned int i = 0; i < SETTINGS_IPS_MAX; i++) {
		snprintf(text, sizeof(text), "fd01:2345:6789:abcd:ef01:2345:6789:ab%02x/128", i);
		set(&out, "ip", text);
	}
	assert_int_equal(settings_export(&out), 0);
	assert_int_equal(settings_import(&in, error, sizeof(error)), 0);
	assert_memory_equal(&in, &out, sizeof(in));
}

static void settings_import__nothing_there(void **state)
{
	struct settings settings;
	char error[256];

	(void)state;
	assert_int_equal(settings_import(&settings, error, sizeof(error)), -ENOENT);
}

static void settings_export__hides_an_outer_export(void **state)
{
	struct settings settings;
	char error[256];

	(void)state;
	settings_init(&settings);
	set(&settings, "port", "net_null0");
	set(&settings, "ip", "10.0.0.1/24");
	set(&settings, "mtu", "1500");
	assert_int_equal(settings_export(&settings), 0);
	settings_init(&settings);
	set(&settings, "netdev", "veth0");
	assert_int_equal(settings_export(&settings), 0);

	assert_int_equal(settings_import(&settings, error, sizeof(error)), 0);
	assert_string_equal(settings.netdev, "veth0");
	assert_string_equal(settings.port, "");
	assert_int_equal(settings.ip_count, 0);
	assert_int_equal(settings.mtu, 0);
}

static void settings_import__checks_what_others_wrote(void **state)
{
	struct settings settings;
	char error[256] = "";

	(void)state;
	setenv("UROCE_PORT", "net_null0", 1);
	assert_int_equal(settings_import(&settings, error, sizeof(error)), -EINVAL);
	assert_non_null(strstr(error, "needs an address"));
	setenv("UROCE_IP", "10.0.0.1", 1);
	assert_int_equal(settings_import(&settings, error, sizeof(error)), -EINVAL);
	assert_non_null(strstr(error, "prefix length"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(settings_import__what_was_exported, clear),
		cmocka_unit_test_setup(settings_import__a_socket_alone, clear),
		cmocka_unit_test_setup(settings_import__as_many_and_as_long_as_can_be, clear),
		cmocka_unit_test_setup(settings_import__nothing_there, clear),
		cmocka_unit_test_setup(settings_export__hides_an_outer_export, clear),
		cmocka_unit_test_setup(settings_import__checks_what_others_wrote, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
