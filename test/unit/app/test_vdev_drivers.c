/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of the virtual drivers of app/uroce-run/run_devargs.c. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>

#include "run_devargs.h"
#include "test.h"

#define INFO(name, pci_ids) \
	"PMD_INFO_STRING= {\"name\": \"" name "\", \"params\": \"x\", \"pci_ids\": [" pci_ids "]}"

#define TEXT_64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static char dir[] = "/tmp/uroce-test-XXXXXX";

static const struct fake {
	const char *name;
	const char *text;
	size_t len;
} fakes[] = {
#define FAKE(name, text)                 \
	{                                \
		name, text, sizeof(text) \
	}
	FAKE("librte_net_wire.so.23.0", "\177ELF\0\0" INFO("net_wire", "") "\0\0\1"),
	FAKE("librte_net_two.so.23.0", INFO("net_two_a", "") "\0" INFO("net_two_b", "")),
	FAKE("librte_net_card.so.23.0", INFO("net_card", "[1, 2, 3, 4]") "\0" INFO("net_soft", "")),
	FAKE("librte_net_other.so.23.0", "PMD_INFO_STRING= {\"name\": \"net_cut"),
	FAKE("librte_crypto_x.so.23.0", INFO("crypto_x", "")),
	FAKE("librte_net_long.so.23.0",
	     "PMD_INFO_STRING= {\"name\": \"net_long\", \"params\": \"" TEXT_64
	     "\", \"pci_ids\": []}"),
	{"librte_net_empty.so.23.0", "", 0},
};

static char params[64];

static int find(const char *where, const char *device)
{
	strcpy(params, "old");
	return vdev_drivers_find(where, device, params, sizeof(params));
}

static void path_of(const char *name, char *path, size_t size)
{
	snprintf(path, size, "%s/%s", dir, name);
}

static int make_dir(TEST_STATE)
{
	char path[128];
	FILE *file;

	assert_non_null(mkdtemp(dir));
	for (size_t i = 0; i < RTE_DIM(fakes); i++) {
		path_of(fakes[i].name, path, sizeof(path));
		file = fopen(path, "w");
		assert_non_null(file);
		assert_int_equal(fwrite(fakes[i].text, 1, fakes[i].len, file), fakes[i].len);
		fclose(file);
	}
	path_of("librte_net_wire.so.23", path, sizeof(path));
	assert_int_equal(symlink("librte_net_wire.so.23.0", path), 0);
	return 0;
}

static int remove_dir(TEST_STATE)
{
	char path[128];

	for (size_t i = 0; i < RTE_DIM(fakes); i++) {
		path_of(fakes[i].name, path, sizeof(path));
		unlink(path);
	}
	path_of("librte_net_wire.so.23", path, sizeof(path));
	unlink(path);
	return rmdir(dir);
}

TEST_GROUP(make_dir, remove_dir);

TEST(drivers_find__installed)
{
	assert_int_equal(find(dir, "net_wire0"), 0);
	assert_int_equal(find(dir, "net_wire_left"), 0);
	assert_int_equal(find(dir, "net_two_a1"), 0);
	assert_int_equal(find(dir, "net_two_b1"), 0);
	assert_int_equal(find(dir, "net_soft0"), 0);
}

TEST(drivers_find__tells_the_drivers_arguments)
{
	assert_int_equal(find(dir, "net_wire0"), 0);
	assert_string_equal(params, "x");
	assert_int_equal(find(dir, "net_long0"), 0);
	assert_string_equal(params, "");
	assert_int_equal(find(dir, "net_nosuch0"), -ENOENT);
	assert_string_equal(params, "");
	assert_int_equal(find(RTE_EAL_PMD_PATH, "net_null0"), 0);
	assert_non_null(strstr(params, "size=<int>"));
}

TEST(drivers_find__not_installed)
{
	assert_int_equal(find(dir, "net_wir"), -ENOENT);
	assert_int_equal(find(dir, "net_nosuch0"), -ENOENT);
	assert_int_equal(find(dir, "net_cut0"), -ENOENT);
	assert_int_equal(find(dir, "crypto_x0"), -ENOENT);
}

TEST(drivers_find__drivers_of_cards_take_no_virtual_device)
{
	assert_int_equal(find(dir, "net_card0"), -ENOENT);
}

TEST(drivers_find__cannot_tell)
{
	assert_int_equal(find("/nonexistent", "net_wire0"), -ENODATA);
	assert_int_equal(find("/proc/self/fdinfo", "net_wire0"), -ENODATA);
	assert_int_equal(find(dir, "eth_wire0"), -ENODATA);
}

TEST(drivers_find__of_this_host)
{
	assert_int_equal(find(RTE_EAL_PMD_PATH, "net_null0"), 0);
	assert_int_equal(find(RTE_EAL_PMD_PATH, "net_memif0"), 0);
	assert_int_equal(find(RTE_EAL_PMD_PATH, "net_af_packet0"), 0);
	assert_int_equal(find(RTE_EAL_PMD_PATH, "net_virtio_user0"), 0);
	assert_int_equal(find(RTE_EAL_PMD_PATH, "net_nosuch0"), -ENOENT);
}
