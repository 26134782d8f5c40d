/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of app/uroce-run/run_devargs.c. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_version.h>

#include "run_devargs.h"
#include "test.h"

/* A directory without drivers: each driver counts as installed; test_drivers.c tests the others. */
#define NO_DRIVERS "/nonexistent"

/* The bonding driver's argument for a port that it bonds. */
#if RTE_VERSION >= RTE_VERSION_NUM(23, 11, 0, 0)
#define BONDED "member"
#else
#define BONDED "slave"
#endif

static char sysfs[] = "/tmp/uroce-test-XXXXXX";

static const struct fake {
	const char *name;
	const char *class_code;
	const char *driver; /* NULL: none */
} fakes[] = {
	{"0000:00:01.0", "0x010000\n", "ahci"},	     {"0000:00:02.0", "0x020000\n", "virtio-pci"},
	{"0000:00:03.0", "0x020000\n", "vfio-pci"},  {"0000:00:04.0", "0x020000\n", NULL},
	{"0001:af:1f.7", "0x020700\n", "mlx5_core"},
};

/* The part of a device in /sys/bus/pci/devices that is read. */
static int make_sysfs(TEST_STATE)
{
	char path[128];
	FILE *file;

	assert_non_null(mkdtemp(sysfs));
	for (size_t i = 0; i < RTE_DIM(fakes); i++) {
		snprintf(path, sizeof(path), "%s/%s", sysfs, fakes[i].name);
		assert_int_equal(mkdir(path, 0700), 0);
		snprintf(path, sizeof(path), "%s/%s/class", sysfs, fakes[i].name);
		file = fopen(path, "w");
		assert_non_null(file);
		fputs(fakes[i].class_code, file);
		fclose(file);
		if (fakes[i].driver == NULL)
			continue;
		snprintf(path, sizeof(path), "%s/%s/driver", sysfs, fakes[i].name);
		assert_int_equal(symlinkat(fakes[i].driver, AT_FDCWD, path), 0);
	}
	return 0;
}

static int remove_sysfs(TEST_STATE)
{
	char path[128];

	for (size_t i = 0; i < RTE_DIM(fakes); i++) {
		snprintf(path, sizeof(path), "%s/%s/class", sysfs, fakes[i].name);
		unlink(path);
		snprintf(path, sizeof(path), "%s/%s/driver", sysfs, fakes[i].name);
		unlink(path);
		snprintf(path, sizeof(path), "%s/%s", sysfs, fakes[i].name);
		rmdir(path);
	}
	return rmdir(sysfs);
}

TEST_GROUP(make_sysfs, remove_sysfs);

static void assert_good(const char *devargs)
{
	char error[512] = "";

	if (devargs_check(devargs, sysfs, NO_DRIVERS, error, sizeof(error)) != 0)
		fail_msg("'%s' was refused: %s", devargs, error);
}

static void assert_bad(const char *devargs, int expected, const char *why)
{
	char error[512] = "";

	assert_int_equal(devargs_check(devargs, sysfs, NO_DRIVERS, error, sizeof(error)), expected);
	if (strstr(error, why) == NULL || strchr(error, '\n') != NULL)
		fail_msg("'%s': the message is '%s'", devargs, error);
}

TEST(devargs_check__virtual_devices)
{
	assert_good("net_null0");
	assert_good("vdev:net_null0");
	assert_good("net_memif0,role=server,socket=/run/x.sock,socket-abstract=no");
	assert_good("eth_af_xdp_1,iface=veth0,xdp_prog=");
	assert_good("net_bonding0,member=[a,b],mode=1");
}

TEST(devargs_check__form)
{
	static const char *const bad[] = {
		",role=server",
		"net_memif0,",
		"net_memif0,,id=0",
		"net_memif0,=0",
		"=x",
		"net_bonding0,member=[a,b",
		"net_bonding0,member=a]",
		"net_bonding0,m=[[a]]",
	};

	for (size_t i = 0; i < RTE_DIM(bad); i++)
		assert_bad(bad[i], -EINVAL, "not of the form");
	assert_bad("net memif0", -EINVAL, "neither a driver's name");
	assert_bad("socket=/run/x.sock", -EINVAL, "neither a driver's name");
	assert_bad("../x", -EINVAL, "neither a driver's name");
}

/* This host's installed drivers say which arguments they take. */
TEST(devargs_check__arguments_that_would_be_ignored)
{
	char error[512] = "";

	assert_int_equal(devargs_check("net_memif0,role=server,sokcet=/run/x.sock", sysfs,
				       RTE_EAL_PMD_PATH, error, sizeof(error)),
			 -EINVAL);
	assert_non_null(strstr(error, "net_memif0 takes no argument 'sokcet'"));
	assert_non_null(strstr(error, "socket=<string>"));
	assert_int_equal(
		devargs_check("net_memif0,role", sysfs, RTE_EAL_PMD_PATH, error, sizeof(error)), 0);
	assert_int_equal(
		devargs_check("net_memif0,id=1,role=server,bsize=2048,rsize=8,zero-copy=no,"
			      "socket=/run/x.sock,socket-abstract=no,mac=02:00:00:00:00:01,"
			      "secret=x",
			      sysfs, RTE_EAL_PMD_PATH, error, sizeof(error)),
		0);
}

/* This host's installed drivers say which arguments they take. */
TEST(devargs_check__arguments_that_a_driver_refuses)
{
	static const struct {
		const char *devargs, *why;
	} bad[] = {
		{"net_tap0,iface=tap0,speed=9", "net_tap0 takes no argument 'speed'"},
		{"net_null0,foo=1", "net_null0 takes no argument 'foo'; it takes size=<int>"},
		{"net_null0,size=abc", "net_null0 takes 'size=<int>', not 'size=abc'"},
		{"net_null0,size=", "net_null0 takes 'size=<int>', not 'size='"},
		{"net_null0,size=-1", "not 'size=-1'"},
		{"net_null0,size=4294967296", "not 'size=4294967296'"},
		{"net_null0,no-rx=2", "net_null0 takes 'no-rx=0|1', not 'no-rx=2'"},
		{"net_memif0,id=one", "net_memif0 takes 'id=<int>', not 'id=one'"},
		{"net_vhost0", "net_vhost0 needs iface=PATH"},
		{"net_vhost0,iface=/run/x,client=yes", "not 'client=yes'"},
		{"net_virtio_user0,mac=02:00:00:00:00:01", "net_virtio_user0 needs path=PATH"},
		{"net_vhost0,iface=/run/a=b", "net_vhost0 takes no value with '=' in it"},
	};
	static const char *const good[] = {
		"net_null0,size=0x40,copy=0,no-rx=1",
		"net_vhost0,iface=/run/x,client=1",
		"net_virtio_user0,path=/run/x,queue_size=256,mac=02:00:00:00:00:01",
		"net_bonding0," BONDED "=[a,b],mode=1",
		"net_failsafe0,dev(net_null0),mac=02:00:00:00:00:01",
		"net_ring0",
		"net_memif0,socket=/run/a=b.sock,secret=aGk=",
	};
	char error[512] = "";

	for (size_t i = 0; i < RTE_DIM(bad); i++) {
		assert_int_equal(devargs_check(bad[i].devargs, sysfs, RTE_EAL_PMD_PATH, error,
					       sizeof(error)),
				 -EINVAL);
		if (strstr(error, bad[i].why) == NULL || strchr(error, '\n') != NULL)
			fail_msg("'%s': the message is '%s'", bad[i].devargs, error);
	}
	for (size_t i = 0; i < RTE_DIM(good); i++) {
		if (devargs_check(good[i], sysfs, RTE_EAL_PMD_PATH, error, sizeof(error)) != 0)
			fail_msg("'%s' was refused: %s", good[i], error);
	}
}

TEST(devargs_check__kernel_interface_is_named_as_such)
{
	assert_bad("lo", -EINVAL, "use --netdev");
}

TEST(devargs_check__pci_device_is_there_and_free)
{
	assert_good("0000:00:03.0");
	assert_good("pci:0000:00:03.0");
	assert_good("00:04.0");
}

TEST(devargs_check__pci_device_is_not_there)
{
	assert_bad("0000:00:05.0", -ENODEV, "no PCI device 0000:00:05.0");
	assert_bad("00:05.0", -ENODEV, "no PCI device 0000:00:05.0");
	assert_bad("0000:00:0g.0", -EINVAL, "is not a PCI address");
	assert_bad("0000:00:04", -EINVAL, "is not a PCI address");
}

TEST(devargs_check__pci_device_of_another_kind)
{
	assert_bad("0000:00:01.0", -ENODEV, "not a network device");
}

TEST(devargs_check__pci_device_in_use)
{
	assert_bad("0000:00:02.0", -EBUSY, "used by the kernel (virtio-pci)");
}

/* DPDK's driver of a ConnectX would call our libibverbs. */
TEST(devargs_check__pci_device_of_a_driver_that_needs_verbs)
{
	assert_bad("0001:af:1f.7,dv_flow_en=0", -EOPNOTSUPP, "use its interface");
}

static void assert_iface(const char *devargs, const char *expected)
{
	char iface[16] = "old", error[512] = "";

	assert_int_equal(devargs_find_iface(devargs, iface, sizeof(iface), error, sizeof(error)),
			 0);
	assert_string_equal(iface, expected);
}

TEST(devargs_find_iface__of_drivers_that_have_one)
{
	assert_iface("net_af_packet0,qpairs=1,iface=veth0", "veth0");
	assert_iface("vdev:net_af_xdp7,iface=veth1,start_queue=0", "veth1");
	assert_iface("net_null0", "");
	assert_iface("net_tap0,iface=tap0", "");
}

TEST(devargs_find_iface__must_be_named)
{
	char iface[16], error[512] = "";

	assert_int_equal(
		devargs_find_iface("net_af_packet0", iface, sizeof(iface), error, sizeof(error)),
		-EINVAL);
	assert_non_null(strstr(error, "needs iface=NAME"));
	assert_int_equal(devargs_find_iface("net_af_packet0,iface", iface, sizeof(iface), error,
					    sizeof(error)),
			 -EINVAL);
}
