/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/config/environ.c. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/settings.h"
#include "test.h"

static int clear(TEST_STATE)
{
	return clearenv();
}

TEST_FIXTURE(clear, NULL);

static void set(struct settings *settings, const char *name, const char *value)
{
	char error[256] = "";

	if (settings_set(settings, name, value, error, sizeof(error)) != 0)
		fail_msg("%s = '%s' was refused: %s", name, value, error);
}

TEST(settings_import__what_was_exported)
{
	struct settings out, in;
	char error[256] = "";

	settings_init(&out);
	set(&out, "port", "net_memif0,role=server,socket=/run/x.sock");
	set(&out, "ip", "10.0.0.1/24, fd00::1/64");
	set(&out, "name", "nic1");
	set(&out, "mtu", "4200");
	set(&out, "progress", "dedicated");
	set(&out, "log-level", "debug");
	set(&out, "stores", "round");
	set(&out, "without", "key-cache");
	assert_int_equal(settings_export(&out), 0);
	memset(&in, 0xa5, sizeof(in));
	assert_int_equal(settings_import(&in, error, sizeof(error)), 0);
	assert_memory_equal(&in, &out, sizeof(in));
}

/* A program that attaches has no port of its own. */
TEST(settings_import__a_socket_alone)
{
	struct settings out, in;
	char error[256] = "";

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

TEST(settings_import__as_many_and_as_long_as_can_be)
{
	struct settings out, in;
	char text[64], error[256] = "";

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

TEST(settings_import__nothing_there)
{
	struct settings settings;
	char error[256];

	assert_int_equal(settings_import(&settings, error, sizeof(error)), -ENOENT);
}

TEST(settings_export__hides_an_outer_export)
{
	struct settings settings;
	char error[256];

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

TEST(settings_export__says_that_packets_pass_through_a_udp_socket)
{
	struct settings settings;
	char error[256];

	for (int udp = 1; udp >= 0; udp--) {
		settings_init(&settings);
		set(&settings, udp ? "udp" : "netdev", "veth0");
		assert_int_equal(settings_export(&settings), 0);
		assert_int_equal(settings_import(&settings, error, sizeof(error)), 0);
		assert_string_equal(settings.netdev, "veth0");
		assert_int_equal(settings.udp, udp);
	}
}

TEST(settings_import__checks_what_others_wrote)
{
	struct settings settings;
	char error[256] = "";

	setenv("UROCE_PORT", "net_null0", 1);
	assert_int_equal(settings_import(&settings, error, sizeof(error)), -EINVAL);
	assert_non_null(strstr(error, "needs an address"));
	setenv("UROCE_IP", "10.0.0.1", 1);
	assert_int_equal(settings_import(&settings, error, sizeof(error)), -EINVAL);
	assert_non_null(strstr(error, "prefix length"));
}
