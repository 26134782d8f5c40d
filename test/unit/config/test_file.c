/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/config/file.c. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/settings.h"
#include "test.h"

/* Make a file with this text. `path` ends with XXXXXX, as mkstemp wants it. */
static void write_file(char *path, const char *text)
{
	const int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

/* Read settings from a file with this text. */
static int read_text(const char *text, struct settings *settings, char *error, size_t error_size)
{
	char path[] = "/tmp/uroce-test-XXXXXX";
	int ret;

	write_file(path, text);
	settings_init(settings);
	ret = settings_read_file(settings, path, error, error_size);
	if (ret != 0)
		assert_memory_equal(error, path, strlen(path));
	unlink(path);
	return ret;
}

static void assert_bad(const char *text, int expected, const char *why)
{
	struct settings settings;
	char error[512] = "";

	assert_int_equal(read_text(text, &settings, error, sizeof(error)), expected);
	if (strstr(error, why) == NULL || strchr(error, '\n') != NULL)
		fail_msg("the message is '%s'", error);
}

TEST(settings_read_file__every_setting)
{
	static const char text[] = "# a comment\n"
				   "\n"
				   "[uroce]\n"
				   "port = net_memif0,role=client,socket=/run/x.sock # the wire\n"
				   "ip = 10.0.0.1/24, fd00::1/64\n"
				   "ip = 10.0.0.2/24\n"
				   "  name=nic1\n"
				   "mtu = 4200\n"
				   "progress = inline\n"
				   "log-level = info";
	struct settings settings;
	char error[512] = "";

	assert_int_equal(read_text(text, &settings, error, sizeof(error)), 0);
	assert_string_equal(settings.port, "net_memif0,role=client,socket=/run/x.sock");
	assert_int_equal(settings.ip_count, 3);
	assert_int_equal(settings.ips[1].prefix_len, 64);
	assert_string_equal(settings.name, "nic1");
	assert_int_equal(settings.mtu, 4200);
	assert_int_equal(settings.progress, SETTINGS_PROGRESS_INLINE);
	assert_int_equal(settings.log_level, 2);
}

TEST(settings_read_file__without_settings_changes_nothing)
{
	struct settings settings, defaults;
	char error[512];

	settings_init(&defaults);
	assert_int_equal(read_text("", &settings, error, sizeof(error)), 0);
	assert_memory_equal(&settings, &defaults, sizeof(settings));
	assert_int_equal(read_text("[uroce]\n", &settings, error, sizeof(error)), 0);
	assert_memory_equal(&settings, &defaults, sizeof(settings));
}

TEST(settings_read_file__section_in_two_parts)
{
	struct settings settings;
	char error[512];

	assert_int_equal(read_text("[uroce]\nmtu = 1500\n[uroce]\nname = x\n", &settings, error,
				   sizeof(error)),
			 0);
	assert_int_equal(settings.mtu, 1500);
	assert_string_equal(settings.name, "x");
}

/* Read the ports of a file with this text, beside what is common to them. */
static int read_ports(const char *text, struct settings *ports, size_t max, char *error,
		      size_t error_size)
{
	char path[] = "/tmp/uroce-test-XXXXXX";
	struct settings common;
	int ret;

	write_file(path, text);
	settings_init(&common);
	ret = settings_read_file(&common, path, error, error_size);
	if (ret == 0)
		ret = settings_read_ports(&common, path, ports, max, error, error_size);
	unlink(path);
	return ret;
}

TEST(settings_read_ports__each_section)
{
	static const char text[] = "[port a]\nnetdev = eth1\n"
				   "[uroce]\nmax-qp = 5\nnetdev = eth0\nmtu = 2000\n"
				   "[port b]\nport = net_null0\nip = 10.0.0.1/24\nmtu = 4200\n";
	static const char beside[] = "[uroce]\nport = net_null0\nkernel = a\n"
				     "[port b]\nport = net_null1\nkernel = b\n"
				     "[port c]\nnetdev = eth0\n";
	static const char by_udp[] = "[uroce]\nudp = eth0\n"
				     "[port b]\nudp = eth1\n"
				     "[port c]\nnetdev = eth2\n";
	struct settings ports[2];
	char error[512] = "";

	assert_int_equal(read_ports(text, ports, 2, error, sizeof(error)), 2);
	assert_string_equal(ports[0].name, "a");
	assert_string_equal(ports[0].netdev, "eth1");
	assert_int_equal(ports[0].mtu, 0);
	assert_int_equal(ports[0].max_qp, 5);
	assert_string_equal(ports[1].name, "b");
	assert_string_equal(ports[1].port, "net_null0");
	assert_string_equal(ports[1].netdev, "");
	assert_int_equal(ports[1].ip_count, 1);
	assert_int_equal(ports[1].mtu, 4200);
	assert_int_equal(read_ports("[uroce]\nmtu = 2000\n", ports, 2, error, sizeof(error)), 0);
	assert_int_equal(read_ports(text, ports, 1, error, sizeof(error)), -ENOSPC);
	assert_int_equal(read_ports(beside, ports, 2, error, sizeof(error)), 2);
	assert_string_equal(ports[0].kernel, "b");
	assert_string_equal(ports[1].kernel, "");
	assert_int_equal(read_ports(by_udp, ports, 2, error, sizeof(error)), 2);
	assert_true(ports[0].udp);
	assert_string_equal(ports[0].netdev, "eth1");
	assert_false(ports[1].udp);
}

static void assert_bad_port(const char *text, const char *why)
{
	struct settings ports[2];
	char error[512] = "";

	assert_int_equal(read_ports(text, ports, 2, error, sizeof(error)), -EINVAL);
	if (strstr(error, why) == NULL || strchr(error, '\n') != NULL)
		fail_msg("the message is '%s'", error);
}

TEST(settings_read_ports__bad_contents)
{
	assert_bad_port("[port a]\nmtu = 2000\n", "none of netdev, udp and port");
	assert_bad_port("[port a]\nnetdev = x\nport = net_null0\n", "both set");
	assert_bad_port("[port a/b]\nnetdev = x\n", "[port a/b]");
	assert_bad_port("[port a]\nnetdev = x\nname = b\n", "the section's");
	assert_bad_port("[port a]\nnetdev = x\n[port a]\nnetdev = y\n", "twice");
	assert_bad_port("[port a]\nnetdev = x\nmtu = 12\n", "mtu: '12'");
	assert_bad_port("[port a]\nnetdev = x\nsocket-mode = 0600\n",
			"section [port a]: socket-mode cannot be set for one port");
	assert_bad_port("[port a]\nport = x\nip = 10.0.0.1/24\nsecondary = 1\n",
			"secondary cannot be set for one port");
}

/* Read the tenants of a file with this text. */
static int read_tenants(const char *text, struct tenant_settings *tenants, size_t max, char *error,
			size_t error_size)
{
	char path[] = "/tmp/uroce-test-XXXXXX";
	struct settings common;
	int ret;

	write_file(path, text);
	settings_init(&common);
	ret = settings_read_file(&common, path, error, error_size);
	if (ret == 0)
		ret = tenant_read_file(path, tenants, max, error, error_size);
	unlink(path);
	return ret;
}

TEST(tenant_read_file__each_section)
{
	static const char text[] = "[tenant alice]\nweight = 4\nrate = 1G\n"
				   "[uroce]\nmax-qp = 5\n"
				   "[tenant 1001]\nmax-qp = 100\nconnection-rate = 7\n"
				   "[tenants]\nrate = 1000000\n"
				   "[attached]\nweight = 1000\n";
	struct tenant_settings tenants[4];
	char error[512] = "";

	assert_int_equal(read_tenants(text, tenants, 4, error, sizeof(error)), 4);
	assert_int_equal(tenants[0].kind, TENANT_USER);
	assert_string_equal(tenants[0].user, "alice");
	assert_int_equal(tenants[0].weight, 4);
	assert_int_equal(tenants[0].rate, 1 << 30);
	assert_int_equal(tenants[0].max_qp, 0);
	assert_string_equal(tenants[1].user, "1001");
	assert_int_equal(tenants[1].weight, 0);
	assert_int_equal(tenants[1].max_qp, 100);
	assert_int_equal(tenants[1].connection_rate, 7);
	assert_int_equal(tenants[2].kind, TENANT_OTHERS);
	assert_int_equal(tenants[2].rate, TENANT_RATE_MIN);
	assert_int_equal(tenants[3].kind, TENANT_ATTACHED);
	assert_int_equal(tenants[3].weight, TENANT_WEIGHT_MAX);
	assert_int_equal(read_tenants("[uroce]\nmtu = 2000\n", tenants, 4, error, sizeof(error)),
			 0);
	assert_int_equal(read_tenants(text, tenants, 3, error, sizeof(error)), -ENOSPC);
}

static void assert_bad_tenant(const char *text, int expected, const char *why)
{
	struct tenant_settings tenants[4];
	char error[512] = "";

	assert_int_equal(read_tenants(text, tenants, 4, error, sizeof(error)), expected);
	if (strstr(error, why) == NULL || strchr(error, '\n') != NULL)
		fail_msg("the message is '%s'", error);
}

TEST(tenant_read_file__bad_contents)
{
	assert_bad_tenant("[tenant a]\nweight = 0\n", -EINVAL,
			  "section [tenant a]: weight: '0' is not a number from 1 to 1000");
	assert_bad_tenant("[tenant a]\nweight = 1001\n", -EINVAL, "from 1 to 1000");
	assert_bad_tenant("[tenants]\nrate = 999999\n", -EINVAL,
			  "section [tenants]: rate: '999999' is not a number of bytes a second "
			  "from 1000000 to 1000000000000");
	assert_bad_tenant("[tenants]\nrate = 1T\n", -EINVAL, "from 1000000 to 1000000000000");
	assert_bad_tenant("[tenants]\nrate = fast\n", -EINVAL, "number of bytes as in 512M");
	assert_bad_tenant("[tenants]\nmax-qp = 0\n", -EINVAL, "max-qp: '0'");
	assert_bad_tenant("[tenants]\nconnection-rate = 1000001\n", -EINVAL, "from 1 to 1000000");
	assert_bad_tenant("[tenants]\nmtu = 2000\n", -ENOENT,
			  "section [tenants]: a tenant has no setting 'mtu'");
	assert_bad_tenant("[attached]\nrate = 1G\n", -EINVAL,
			  "section [attached]: rate: attached programs have a weight only");
	assert_bad_tenant("[tenant a]\nweight = 1\n[tenant a]\nrate = 1G\n", -EINVAL,
			  "section [tenant a] is there twice");
	assert_bad_tenant("[tenant a b]\nweight = 1\n", -EINVAL,
			  "'a b' is not a user's name or number");
	assert_bad_tenant("[tenant]\nweight = 1\n", -EINVAL, "section [tenant] is unknown");
}

TEST(settings_read_file__bad_lines_are_named)
{
	assert_bad("[uroce]\nmtu 1500\n", -EINVAL, "line 2");
	assert_bad("[uroce]\n\n[uroce\n", -EINVAL, "line 3");
	assert_bad("[uroce]\nmtu =\n", -EINVAL, "line 2");
	assert_bad("mtu = 1500\n", -EINVAL, "follow a line [uroce]");
}

TEST(settings_read_file__bad_contents)
{
	assert_bad("[uroce]\nmtu = 12\n", -EINVAL, "mtu: '12'");
	assert_bad("[uroce]\nspeed = 12\n", -ENOENT, "there is no setting 'speed'");
	assert_bad("[other]\nmtu = 1500\n", -EINVAL, "section [other] is unknown");
}

TEST(settings_read_file__long_value_is_not_cut)
{
	char text[600];
	struct settings settings;
	char error[512] = "";

	snprintf(text, sizeof(text), "[uroce]\nport = %0254d\n", 1);
	assert_int_equal(read_text(text, &settings, error, sizeof(error)), 0);
	assert_int_equal(strlen(settings.port), 254);
	snprintf(text, sizeof(text), "[uroce]\nport = %0256d\n", 1);
	assert_bad(text, -EINVAL, "longer than 254");
	snprintf(text, sizeof(text), "[uroce]\nport = %0400d\n", 1);
	assert_bad(text, -EINVAL, "line 2");
}

/* Read the example as it is when the lines that start with "#key" are settings. */
TEST(settings_read_file__the_example_is_true)
{
	struct settings settings;
	char line[256], text[4096] = "[uroce]\n", error[512] = "";
	int least = 0, most = 0;
	FILE *file = fopen(EXAMPLE, "r");

	assert_non_null(file);
	while (fgets(line, sizeof(line), file) != NULL) {
		sscanf(line, "# The largest IP packet in bytes, %d to %d;", &least, &most);
		/* Take the line as a setting. */
		if (line[0] == '#' && line[1] >= 'a' && line[1] <= 'z')
			strcat(text, line + 1);
	}
	fclose(file);
	if (read_text(text, &settings, error, sizeof(error)) != 0 ||
	    settings_check(&settings, error, sizeof(error)) != 0)
		fail_msg("%s", error);
	assert_int_equal(settings.mtu, 4200);
	assert_int_equal(settings.ip_count, 2);

	for (int end = 0; end < 2; end++) {
		const int good = end == 0 ? least : most;

		snprintf(text, sizeof(text), "%d", good);
		assert_int_equal(settings_set(&settings, "mtu", text, error, sizeof(error)), 0);
		snprintf(text, sizeof(text), "%d", end == 0 ? good - 1 : good + 1);
		assert_int_equal(settings_set(&settings, "mtu", text, error, sizeof(error)),
				 -EINVAL);
	}
}

TEST(settings_read_file__missing)
{
	struct settings settings;
	char error[512] = "";

	settings_init(&settings);
	assert_int_equal(
		settings_read_file(&settings, "/nonexistent/uroce.conf", error, sizeof(error)),
		-ENOENT);
	assert_string_equal(error, "/nonexistent/uroce.conf: No such file or directory");
}

TEST(settings_read_file__folder)
{
	struct settings settings;
	char error[512] = "";

	settings_init(&settings);
	assert_int_equal(settings_read_file(&settings, "/tmp", error, sizeof(error)), -EISDIR);
}
