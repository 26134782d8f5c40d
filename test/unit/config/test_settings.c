/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/config/settings.c. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>

#include "base/log.h"
#include "config/settings.h"
#include "test.h"

static void set(struct settings *settings, const char *name, const char *value)
{
	char error[256] = "";

	if (settings_set(settings, name, value, error, sizeof(error)) != 0)
		fail_msg("%s = '%s' was refused: %s", name, value, error);
}

/* A refused value leaves the settings as they were, and is explained. */
static void assert_refused(const char *name, const char *value, const char *why)
{
	struct settings settings, before;
	char error[256] = "";

	settings_init(&settings);
	before = settings;
	assert_int_equal(settings_set(&settings, name, value, error, sizeof(error)), -EINVAL);
	if (strstr(error, why) == NULL || strchr(error, '\n') != NULL)
		fail_msg("%s = '%s': the message is '%s'", name, value, error);
	assert_memory_equal(&settings, &before, sizeof(settings));
}

TEST(settings_init__defaults)
{
	struct settings settings;

	memset(&settings, 0xa5, sizeof(settings));
	settings_init(&settings);
	assert_string_equal(settings.netdev, "");
	assert_string_equal(settings.port, "");
	assert_string_equal(settings.name, "uroce0");
	assert_int_equal(settings.ip_count, 0);
	assert_int_equal(settings.mtu, 0);
	assert_int_equal(settings.progress, SETTINGS_PROGRESS_HYBRID);
	assert_int_equal(settings.hand_over, SETTINGS_HAND_OVER_DIRECT);
	assert_int_equal(settings.uplink, SETTINGS_UPLINK_SOCKET);
	assert_int_equal(settings.stores, SETTINGS_STORES_AUTO);
	assert_int_equal(settings.log_level, LOG_LEVEL_WARN);
}

TEST(settings_set__every_name)
{
	struct settings settings;

	settings_init(&settings);
	set(&settings, "netdev", "veth0");
	set(&settings, "port", "net_memif0,role=server,socket=/run/x.sock");
	set(&settings, "ip", "10.0.0.1/24");
	set(&settings, "name", "roce-1.a_b");
	set(&settings, "mtu", "4200");
	set(&settings, "progress", "dedicated");
	set(&settings, "hand-over", "checked");
	set(&settings, "uplink", "ring");
	set(&settings, "secondary", "1");
	set(&settings, "log-level", "debug");
	set(&settings, "telemetry", "yes");
	assert_int_equal(settings.sack, SETTINGS_SACK_AUTO);
	set(&settings, "sack", "yes");
	set(&settings, "stores", "past-caches");
	set(&settings, "file-prefix", "rdma");
	set(&settings, "max-qp", "12");
	set(&settings, "max-buffers", "1000");
	set(&settings, "max-memory", "3M");
	set(&settings, "kernel", "tap0");
	assert_string_equal(settings.netdev, "veth0");
	assert_string_equal(settings.port, "net_memif0,role=server,socket=/run/x.sock");
	assert_int_equal(settings.ip_count, 1);
	assert_string_equal(settings.name, "roce-1.a_b");
	assert_int_equal(settings.mtu, 4200);
	assert_int_equal(settings.progress, SETTINGS_PROGRESS_DEDICATED);
	assert_int_equal(settings.hand_over, SETTINGS_HAND_OVER_CHECKED);
	assert_int_equal(settings.uplink, SETTINGS_UPLINK_RING);
	assert_int_equal(settings.secondary, 1);
	assert_int_equal(settings.log_level, LOG_LEVEL_DEBUG);
	assert_true(settings.telemetry);
	assert_int_equal(settings.sack, SETTINGS_SACK_YES);
	assert_int_equal(settings.stores, SETTINGS_STORES_PAST_CACHES);
	assert_string_equal(settings.file_prefix, "rdma");
	assert_int_equal(settings.max_qp, 12);
	assert_int_equal(settings.max_buffers, 1000);
	assert_int_equal(settings.max_memory, 3 << 20);
	assert_string_equal(settings.kernel, "tap0");
	set(&settings, "max-memory", "123");
	assert_int_equal(settings.max_memory, 123);
}

TEST(settings_set__unknown_name)
{
	struct settings settings;
	char error[256];

	settings_init(&settings);
	assert_int_equal(settings_set(&settings, "speed", "fast", error, sizeof(error)), -ENOENT);
	assert_string_equal(error, "there is no setting 'speed'");
}

TEST(settings_set__ips_add_up)
{
	struct settings settings;

	settings_init(&settings);
	set(&settings, "ip", "10.0.0.1/24");
	set(&settings, "ip", " 10.0.0.2/24 ,\tfd00::1/64");
	assert_int_equal(settings.ip_count, 3);
	assert_int_equal(settings.ips[1].gid[15], 2);
	assert_int_equal(settings.ips[2].gid[0], 0xfd);
}

TEST(settings_set__ip_list_with_a_hole)
{
	assert_refused("ip", "", "an address is missing");
	assert_refused("ip", ",10.0.0.1/24", "an address is missing");
}

TEST(settings_set__ip_twice)
{
	struct settings settings;
	char error[256];

	settings_init(&settings);
	set(&settings, "ip", "10.0.0.1/24");
	assert_int_equal(settings_set(&settings, "ip", "10.0.0.1/16", error, sizeof(error)),
			 -EINVAL);
	assert_non_null(strstr(error, "twice"));
}

TEST(settings_set__too_many_ips)
{
	struct settings settings;
	char text[32], error[256];

	settings_init(&settings);
	for (int i = 1; i <= SETTINGS_IPS_MAX; i++) {
		snprintf(text, sizeof(text), "10.0.0.%d/24", i);
		set(&settings, "ip", text);
	}
	assert_int_equal(settings_set(&settings, "ip", "10.0.0.99/24", error, sizeof(error)),
			 -EINVAL);
	assert_non_null(strstr(error, "more than 16"));
	assert_int_equal(settings.ip_count, SETTINGS_IPS_MAX);
}

TEST(settings_set__routes)
{
	struct settings settings;
	char text[256];

	settings_init(&settings);
	set(&settings, "gateway", "10.0.0.254, fe80::1");
	set(&settings, "route", "10.2.0.0/16 via 10.0.0.253,fd02::/16  via fd00::2");
	set(&settings, "route", "0.0.0.0/1 via 10.0.0.253");
	assert_int_equal(settings.route_count, 5);
	assert_int_equal(settings_get(&settings, "gateway", text, sizeof(text)), 0);
	assert_string_equal(text, "10.0.0.254,fe80::1");
	assert_int_equal(settings_get(&settings, "route", text, sizeof(text)), 0);
	assert_string_equal(text, "10.2.0.0/16 via 10.0.0.253,fd02::/16 via fd00::2,"
				  "0.0.0.0/1 via 10.0.0.253");
	assert_refused("gateway", "10.0.0.0/8", "not the address of a host");
	assert_refused("gateway", "224.0.0.1", "not the address of a host");
	assert_refused("gateway", "::", "not the address of a host");
	assert_refused("route", "10.2.0.0/16", "PREFIX/LEN via GATEWAY");
	assert_refused("route", "10.2.0.0 via 10.0.0.1", "PREFIX/LEN via GATEWAY");
	assert_refused("route", "10.2.0.0/16 via 10.0.0.1 dev", "PREFIX/LEN via GATEWAY");
	assert_refused("route", "10.2.0.0/33 via 10.0.0.1", "prefix length");
	assert_refused("route", "fd00::/129 via fe80::1", "prefix length");
	assert_refused("route", "10.2.0.1/16 via 10.0.0.1", "bits behind its length");
	assert_refused("route", "224.0.0.0/4 via 10.0.0.1", "not the prefix of a network");
	assert_refused("route", "x/16 via 10.0.0.1", "not the prefix of a network");
	assert_refused("route", "10.2.0.0/16 via fe80::1", "different IP versions");
}

TEST(settings_set__a_network_has_one_route)
{
	struct settings settings;
	char error[256], text[64];

	settings_init(&settings);
	set(&settings, "gateway", "10.0.0.254");
	assert_int_equal(settings_set(&settings, "gateway", "10.0.0.253", error, sizeof(error)),
			 -EINVAL);
	assert_non_null(strstr(error, "two to that network"));
	set(&settings, "gateway", "fe80::1");
	for (int i = 2; i < SETTINGS_ROUTES_MAX; i++) {
		snprintf(text, sizeof(text), "10.%d.0.0/16 via 10.0.0.254", i);
		set(&settings, "route", text);
	}
	assert_int_equal(settings_set(&settings, "route", "10.99.0.0/16 via 10.0.0.254", error,
				      sizeof(error)),
			 -EINVAL);
	assert_non_null(strstr(error, "more than 16"));
}

TEST(settings_check__a_gateway_is_a_neighbour)
{
	struct settings settings;
	char error[256];

	settings_init(&settings);
	set(&settings, "port", "net_null0");
	set(&settings, "ip", "10.0.0.1/24");
	set(&settings, "gateway", "10.0.0.254,fe80::1");
	assert_int_equal(settings_check(&settings, error, sizeof(error)), 0);
	set(&settings, "route", "10.2.0.0/16 via 10.0.1.254");
	assert_int_equal(settings_check(&settings, error, sizeof(error)), -EINVAL);
	assert_non_null(strstr(error, "in no network of ip"));
	settings_init(&settings);
	set(&settings, "port", "net_null0");
	set(&settings, "ip", "10.0.0.1/24");
	set(&settings, "gateway", "10.0.0.1");
	assert_int_equal(settings_check(&settings, error, sizeof(error)), -EINVAL);
	assert_non_null(strstr(error, "an address of ip"));
	settings_init(&settings);
	set(&settings, "netdev", "eth1");
	set(&settings, "gateway", "fe80::1");
	assert_int_equal(settings_check(&settings, error, sizeof(error)), -EINVAL);
	assert_non_null(strstr(error, "ip route add"));
}

TEST(settings_set__mtu_range)
{
	static const char *const bad[] = {
		"351",	 "65536", "",	  "-1",	   "+1500",
		" 1500", "1500x", "1.5k", "0x600", "18446744073709553116"};
	struct settings settings;

	settings_init(&settings);
	set(&settings, "mtu", "352");
	assert_int_equal(settings.mtu, 352);
	set(&settings, "mtu", "65535");
	assert_int_equal(settings.mtu, 65535);
	for (size_t i = 0; i < RTE_DIM(bad); i++)
		assert_refused("mtu", bad[i], "from 352 to 65535");
}

TEST(settings_set__words)
{
	assert_refused("secondary", "0", "a number from 1");
	assert_refused("hand-over", "never", "direct, checked and owner");
	assert_refused("uplink", "wire", "socket and ring");
	assert_refused("progress", "fast", "hybrid, inline and dedicated");
	assert_refused("without", "batch-ack,speed", "key-cache,");
	assert_refused("progress", "", "hybrid, inline and dedicated");
	assert_refused("progress", "Hybrid", "hybrid, inline and dedicated");
	assert_refused("log-level", "9", "error, warn, info and debug");
	assert_refused("telemetry", "on", "neither yes nor no");
	assert_refused("max-qp", "0", "from 1 to 8192");
	assert_refused("capture", "yes", "no, port and all");
	assert_refused("max-qp", "8193", "from 1 to 8192");
	assert_refused("max-buffers", "5", "from 768 to 1536");
	assert_refused("max-memory", "0", "512M");
	assert_refused("max-memory", "5X", "512M");
	assert_refused("max-memory", "5MM", "512M");
	assert_refused("max-memory", "16777216T", "512M");
	assert_refused("kernel", "tap0,mac=fixed", "not the name of an interface");
	assert_refused("kernel", "a/b", "not the name of an interface");
	assert_refused("kernel", "..", "not the name of an interface");
	assert_refused("kernel", "abcdefghijklmnop", "longer than 15");
	assert_refused("kernel", "", "empty");
	assert_refused("file-prefix", "../x", "not the name of a directory");
	assert_refused("eal", " ", "no options");
	assert_refused("eal", "-n 2 -l 1", "taskset");
	assert_refused("eal", "a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a",
		       "more than 32 words");
}

/* Settings are compared bytewise, so a shorter word must leave nothing of a longer one. */
TEST(settings_set__leaves_nothing_of_what_was_there)
{
	static const char *const names[] = {"netdev", "name", "file-prefix"};
	struct settings once, twice;

	settings_init(&once);
	settings_init(&twice);
	for (size_t i = 0; i < RTE_DIM(names); i++) {
		set(&once, names[i], "e1");
		set(&twice, names[i], "longer.than.that");
		set(&twice, names[i], "e1");
	}
	set(&once, "eal", "-n 2");
	set(&twice, "eal", "--log-level lib.eal:debug");
	set(&twice, "eal", "-n 2");
	set(&once, "without", "prefetch");
	set(&twice, "without", "prefetch,buffer-cache");
	set(&twice, "without", "prefetch");
	assert_memory_equal(&once, &twice, sizeof(once));
}

TEST(settings_set__name_is_safe_in_a_path)
{
	char name[65];

	assert_refused("name", "", "empty");
	assert_refused("name", "..", "starts with a letter or digit");
	assert_refused("name", "a/b", "may only have");
	assert_refused("name", "a:1", "may only have");
	assert_refused("name", "a b", "white space");
	memset(name, 'n', 64);
	name[64] = '\0';
	assert_refused("name", name, "longer than 63");
}

TEST(settings_set__port_is_one_word)
{
	char port[513];

	assert_refused("port", "", "empty");
	assert_refused("port", "net_null0\n", "white space");
	assert_refused("netdev", "", "empty");
	memset(port, 'p', 512);
	port[512] = '\0';
	assert_refused("port", port, "longer than 511");
}

TEST(settings_set__error_is_cut_to_size)
{
	struct settings settings;
	char error[8];

	settings_init(&settings);
	memset(error, 'x', sizeof(error));
	assert_int_equal(settings_set(&settings, "mtu", "no", error, 5), -EINVAL);
	assert_memory_equal(error, "mtu:\0xxx", 8);
}

TEST(settings_get__is_what_set_takes)
{
	static const char *const values[][2] = {
		{"netdev", "veth0"},	  {"udp", "veth1"},
		{"port", "net_null0"},	  {"ip", "10.0.0.1/24,fd00::1/64"},
		{"hand-over", "owner"},	  {"uplink", "ring"},
		{"secondary", "7"},	  {"name", "x"},
		{"mtu", "1500"},	  {"progress", "inline"},
		{"log-level", "error"},	  {"telemetry", "yes"},
		{"file-prefix", "rdma"},  {"without", "batch-ack,prefetch"},
		{"max-qp", "5"},	  {"capture", "all"},
		{"max-memory", "4096"},	  {"max-buffers", "800"},
		{"kernel", "eth0"},	  {"view", "preload"},
		{"sack", "yes"},	  {"stores", "round"},
		{"eal", "-a 1:2.0 -n 2"}, {"explain", "yes"},
	};
	struct settings settings;
	char value[1024];

	settings_init(&settings);
	for (size_t i = 0; i < RTE_DIM(values); i++) {
		set(&settings, values[i][0], values[i][1]);
		assert_int_equal(settings_get(&settings, values[i][0], value, sizeof(value)), 0);
		assert_string_equal(value, values[i][1]);
	}
}

TEST(settings_get__unset_is_empty)
{
	static const char *const names[] = {"netdev", "udp", "port", "ip", "mtu"};
	struct settings settings;
	char value[1024];

	settings_init(&settings);
	for (size_t i = 0; i < RTE_DIM(names); i++) {
		strcpy(value, "old");
		assert_int_equal(settings_get(&settings, names[i], value, sizeof(value)), 0);
		assert_string_equal(value, "");
	}
}

TEST(settings_get__errors)
{
	struct settings settings;
	char value[8];

	settings_init(&settings);
	assert_int_equal(settings_get(&settings, "speed", value, sizeof(value)), -ENOENT);
	assert_int_equal(settings_get(&settings, "name", value, 6), -ENOSPC);
	assert_int_equal(settings_get(&settings, "name", value, 7), 0);
}

static void assert_unfit(const struct settings *settings, const char *why)
{
	char error[256] = "";

	assert_int_equal(settings_check(settings, error, sizeof(error)), -EINVAL);
	if (strstr(error, why) == NULL)
		fail_msg("the message is '%s'", error);
}

TEST(settings_set__who_may_attach)
{
	struct settings settings;
	char error[256], value[64];

	settings_init(&settings);
	assert_int_equal(settings.socket_mode, 0660);
	set(&settings, "socket-owner", "root");
	set(&settings, "socket-group", "1000");
	set(&settings, "socket-mode", "0600");
	assert_string_equal(settings.socket_owner, "root");
	assert_string_equal(settings.socket_group, "1000");
	assert_int_equal(settings.socket_mode, 0600);
	assert_int_equal(settings_get(&settings, "socket-mode", value, sizeof(value)), 0);
	assert_string_equal(value, "0600");
	assert_int_equal(settings_set(&settings, "socket-mode", "0888", error, sizeof(error)),
			 -EINVAL);
	assert_int_equal(settings_set(&settings, "socket-mode", "1000", error, sizeof(error)),
			 -EINVAL);
	assert_int_equal(settings_set(&settings, "socket", "x.sock", error, sizeof(error)),
			 -EINVAL);
}

TEST(settings_set__who_may_attach_isolated)
{
	struct settings settings;
	char error[256], value[64];

	settings_init(&settings);
	assert_string_equal(settings.isolated, "");
	assert_int_equal(settings.isolated_mode, 0666);
	set(&settings, "isolated", "/run/i.sock");
	set(&settings, "isolated-mode", "0640");
	assert_int_equal(settings.isolated_mode, 0640);
	assert_int_equal(settings_get(&settings, "isolated-mode", value, sizeof(value)), 0);
	assert_string_equal(value, "0640");
	assert_int_equal(settings_get(&settings, "isolated", value, sizeof(value)), 0);
	assert_string_equal(value, "/run/i.sock");
	/* The option without a value takes the default. */
	assert_int_equal(settings_set(&settings, "isolated", NULL, error, sizeof(error)), 0);
	assert_string_equal(settings.isolated, SETTINGS_DEFAULT_ISOLATED);
	assert_int_equal(settings_set(&settings, "isolated", "i.sock", error, sizeof(error)),
			 -EINVAL);
	assert_int_equal(settings_set(&settings, "isolated-mode", "x", error, sizeof(error)),
			 -EINVAL);
	assert_int_equal(settings_check(&settings, error, sizeof(error)), 0);
}

TEST(settings_check__one_port_with_addresses)
{
	struct settings settings;
	char error[256];

	settings_init(&settings);
	assert_unfit(&settings, "no port");
	set(&settings, "socket", "/run/x.sock");
	assert_int_equal(settings_check(&settings, error, sizeof(error)), 0);
	set(&settings, "mtu", "1500");
	assert_unfit(&settings, "ip and mtu");
	set(&settings, "port", "net_null0");
	assert_unfit(&settings, "needs an address");
	set(&settings, "ip", "10.0.0.1/24");
	assert_int_equal(settings_check(&settings, error, sizeof(error)), 0);
	set(&settings, "netdev", "veth0");
	assert_unfit(&settings, "both");
}

TEST(settings_check__eal_is_for_who_has_a_port)
{
	struct settings settings;
	char error[256];

	settings_init(&settings);
	set(&settings, "eal", "-n 2");
	set(&settings, "socket", "/run/x.sock");
	assert_unfit(&settings, "eal is for");
	set(&settings, "netdev", "veth0");
	assert_int_equal(settings_check(&settings, error, sizeof(error)), 0);
}

TEST(settings_check__a_udp_socket_needs_no_capture)
{
	struct settings settings;
	char error[256];

	settings_init(&settings);
	set(&settings, "udp", "veth0");
	assert_int_equal(settings_check(&settings, error, sizeof(error)), 0);
	set(&settings, "capture", "port");
	assert_int_equal(settings_check(&settings, error, sizeof(error)), -EINVAL);
	assert_non_null(strstr(error, "tcpdump"));
}

TEST(settings_check__addresses_of_a_netdev_are_the_kernels)
{
	struct settings settings;
	char error[256];

	settings_init(&settings);
	set(&settings, "netdev", "veth0");
	assert_int_equal(settings_check(&settings, error, sizeof(error)), 0);
	set(&settings, "ip", "10.0.0.1/24");
	assert_unfit(&settings, "the kernel's");
}

TEST(settings_check__addresses_of_the_kernels_end_are_the_kernels)
{
	struct settings settings;
	char error[256];

	settings_init(&settings);
	set(&settings, "kernel", "tap0");
	set(&settings, "netdev", "veth0");
	assert_unfit(&settings, "kernel needs port");
	settings_init(&settings);
	set(&settings, "kernel", "tap0");
	set(&settings, "port", "net_null0");
	assert_int_equal(settings_check(&settings, error, sizeof(error)), 0);
	set(&settings, "ip", "10.0.0.1/24");
	assert_unfit(&settings, "the addresses of tap0 are the kernel's");
}
