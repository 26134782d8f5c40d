/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/port/pci.c and of what ethdev.c refuses, on devices that are made up: a file system
 * in place of the kernel's list of PCI devices, in a mount namespace of this test. */
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "port/port.h"
#include "test.h"

#define DEVICES "/sys/bus/pci/devices"
#define DEVICE	"0000:00:1f.0"

static bool have_devices;

static int group_set_up(TEST_STATE)
{
	have_devices = unshare(CLONE_NEWNS) == 0 &&
		       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
		       mount("none", DEVICES, "tmpfs", 0, NULL) == 0 &&
		       mkdir(DEVICES "/" DEVICE, 0755) == 0;
	return 0;
}

TEST_GROUP(group_set_up, NULL);

static int prepare_with_driver(const char *driver)
{
	struct port port = {.mtu_bytes = 0};
	char target[64];
	int rc;

	(void)unlink(DEVICES "/" DEVICE "/driver");
	snprintf(target, sizeof(target), "../../../bus/pci/drivers/%s", driver);
	assert_int_equal(symlink(target, DEVICES "/" DEVICE "/driver"), 0);
	rc = port_prepare(&port, DEVICE, 0);
	port_destroy(&port);
	return rc;
}

/* DPDK's drivers of these NICs call libibverbs, in whose place programs have ours. */
TEST(port_prepare__refuses_nics_whose_driver_needs_verbs)
{
	static const char *const names[] = {"mlx4_core", "mlx5_core", "mana"};

	if (!have_devices)
		skip();
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(prepare_with_driver(names[i]), -EOPNOTSUPP);
	assert_int_equal(prepare_with_driver("vfio-pci"), 0);
}

TEST(port_prepare__refuses_af_xdp)
{
	struct port port = {.mtu_bytes = 0};

	assert_int_equal(port_prepare(&port, "net_af_xdp0,iface=lo", 0), -EOPNOTSUPP);
	port_destroy(&port);
}
