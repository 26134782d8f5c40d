/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of app/uroce-run/run_local.c. Programs test the rest (test/programs/tools/local.py). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "config/settings.h"
#include "run_local.h"
#include "test.h"

static char dir[] = "/tmp/uroce-test-XXXXXX", path[64], error[256];
static struct settings common, ports[SETTINGS_PORTS_MAX];

static int make_dir(TEST_STATE)
{
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/uroced.conf", dir);
	return 0;
}

static int remove_dir(TEST_STATE)
{
	return rmdir(dir);
}

TEST_GROUP(make_dir, remove_dir);

/* Write a file, and read it as uroced does. Return the number of ports. */
static int write_and_read(const struct settings *settings, uint32_t devices)
{
	int count;

	assert_int_equal(local_write_config(dir, settings, devices), 0);
	settings_init(&common);
	assert_int_equal(settings_read_file(&common, path, error, sizeof(error)), 0);
	count = settings_read_ports(&common, path, ports, SETTINGS_PORTS_MAX, error, sizeof(error));
	unlink(path);
	return count;
}

TEST(local_write_config__gives_one_device_its_name)
{
	struct settings settings;

	settings_init(&settings);
	assert_int_equal(settings_set(&settings, "name", "mlx5_0", error, sizeof(error)), 0);
	assert_int_equal(write_and_read(&settings, 1), 1);
	assert_string_equal(ports[0].name, "mlx5_0");
	assert_string_equal(ports[0].port, "local0");
	assert_int_equal(ports[0].ip_count, 2);
	assert_int_equal(strncmp(ports[0].socket, dir, strlen(dir)), 0);
	assert_int_equal(ports[0].socket_mode, 0600);
}

TEST(local_write_config__devices_differ)
{
	struct settings settings;

	settings_init(&settings);
	assert_int_equal(write_and_read(&settings, LOCAL_DEVICES_MAX), LOCAL_DEVICES_MAX);
	assert_string_equal(ports[0].name, "uroce0");
	assert_string_equal(ports[15].name, "uroce15");
	for (size_t i = 1; i < LOCAL_DEVICES_MAX; i++) {
		assert_string_not_equal(ports[i].port, ports[0].port);
		for (size_t ip = 0; ip < 2; ip++)
			assert_memory_not_equal(ports[i].ips[ip].gid, ports[0].ips[ip].gid, 16);
	}
}

TEST(local_write_config__warnings_are_asked_for)
{
	struct settings settings;

	settings_init(&settings);
	write_and_read(&settings, 1);
	assert_int_equal(common.log_level, LOG_LEVEL_ERROR);
	settings.log_level = LOG_LEVEL_DEBUG;
	write_and_read(&settings, 1);
	assert_int_equal(common.log_level, LOG_LEVEL_DEBUG);
}

TEST(local_write_config__needs_a_directory)
{
	struct settings settings;

	settings_init(&settings);
	assert_int_equal(local_write_config("/nonexistent", &settings, 1), -ENOENT);
}

TEST(local_is_safe_dir__only_if_nobody_else_can_write_there)
{
	char own[] = "/tmp/own-dir-XXXXXX";

	assert_non_null(mkdtemp(own));
	assert_true(local_is_safe_dir(own));
	assert_int_equal(chmod(own, 0720), 0);
	assert_false(local_is_safe_dir(own));
	assert_int_equal(chmod(own, 0702), 0);
	assert_false(local_is_safe_dir(own));
	assert_int_equal(chmod(own, 01777), 0);
	assert_true(local_is_safe_dir(own));
	if (geteuid() == 0) {
		assert_int_equal(chown(own, 65534, (gid_t)-1), 0);
		assert_false(local_is_safe_dir(own));
		assert_int_equal(chmod(own, 0700), 0);
		assert_false(local_is_safe_dir(own));
	}
	assert_int_equal(rmdir(own), 0);
	assert_false(local_is_safe_dir(own));
	assert_false(local_is_safe_dir(NULL));
	assert_false(local_is_safe_dir("/tmp/two\nlines"));
	assert_false(local_is_safe_dir("."));
}
