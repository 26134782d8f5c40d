/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of app/uroce-ctl/doctor*.c, on trees that take the place of /proc and /sys. */
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor.h"
#include "test.h"

#define FINDINGS_MAX 64
#define HUGE	     "/sys/kernel/mm/hugepages/hugepages-2048kB"
#define PCI	     "/sys/bus/pci/devices/0000:00:03.0"

static char root[] = "/tmp/uroce-doctor-XXXXXX";
static struct finding findings[FINDINGS_MAX];
static size_t finding_count;
static struct doctor_host host;
static enum doctor_offload segmentation; /* the fake answer about interfaces */
static bool writable;			 /* the fake answer about sockets */

static enum doctor_offload fake_segments(const char *iface)
{
	assert_string_not_equal(iface, "");
	return segmentation;
}

static bool fake_may_write(const char *path)
{
	assert_int_equal(strncmp(path, root, strlen(root)), 0);
	return writable;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *at)
{
	(void)status, (void)type, (void)at;
	return remove(path);
}

static int set_up(TEST_STATE)
{
	strcpy(root, "/tmp/uroce-doctor-XXXXXX");
	assert_non_null(mkdtemp(root));
	host = (struct doctor_host){
		.root = root,
		.drivers = root,
		.cpus = 2,
		.memlock_bytes = UINT64_MAX,
		.shm_bytes = 64 << 20,
		.shm_free_bytes = 64 << 20,
		.segments_udp = fake_segments,
		.may_write = fake_may_write,
	};
	segmentation = OFFLOAD_ON;
	writable = true;
	return 0;
}

static int tear_down(TEST_STATE)
{
	return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

TEST_FIXTURE(set_up, tear_down);

/* Make the directories of a path under the root. */
static void make_path(const char *path, char full[PATH_MAX])
{
	snprintf(full, PATH_MAX, "%s%s", root, path);
	for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(full, 0755);
		*slash = '/';
	}
}

static void put_bytes(const char *path, const char *bytes, size_t len)
{
	char full[PATH_MAX];
	FILE *file;

	make_path(path, full);
	file = fopen(full, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, len, file), len);
	fclose(file);
}

static void put(const char *path, const char *text)
{
	put_bytes(path, text, strlen(text));
}

static void put_link(const char *path, const char *target)
{
	char full[PATH_MAX];

	make_path(path, full);
	assert_int_equal(symlink(target, full), 0);
}

static void put_dir(const char *path)
{
	char full[PATH_MAX];

	make_path(path, full);
	mkdir(full, 0755);
}

static void take(void *arg, const struct finding *finding)
{
	assert_ptr_equal(arg, &host);
	assert_true(finding_count < FINDINGS_MAX);
	/* A warning says what to change. */
	assert_int_equal(finding->ok, finding->change[0] == '\0');
	findings[finding_count++] = *finding;
}

static const struct finding *look(const char *check, const char *subject)
{
	const struct doctor doctor = {.host = &host, .tell = take, .arg = &host};
	const struct finding *found = NULL;

	finding_count = 0;
	doctor_run(&doctor);
	for (size_t i = 0; i < finding_count; i++) {
		if (strcmp(findings[i].check, check) != 0 ||
		    strcmp(findings[i].subject, subject) != 0)
			continue;
		assert_null(found);
		found = &findings[i];
	}
	return found;
}

/* Expect a finding. `change` is what it should say to change; "": nothing needs to be changed. */
static void expect(const char *check, const char *subject, const char *found, const char *change)
{
	const struct finding *finding = look(check, subject);

	assert_non_null(finding);
	assert_int_equal(finding->ok, change[0] == '\0');
	if (!strstr(finding->found, found) || !strstr(finding->change, change))
		fail_msg("%s: %s: %s", check, finding->found, finding->change);
}

static void expect_ok(const char *check, const char *subject, const char *found)
{
	expect(check, subject, found, "");
}

/* Make the files of huge pages of 2 MiB. */
static void put_huge(const char *reserved, const char *free_pages)
{
	put(HUGE "/nr_hugepages", reserved);
	put(HUGE "/free_hugepages", free_pages);
}

TEST(doctor_memory__huge_pages)
{
	expect("huge-pages", "", "this kernel has none", "CONFIG_HUGETLBFS");
	put_huge("0\n", "0\n");
	expect("huge-pages", "", "0 of 2 MiB reserved, 0 free", "echo 256 >" HUGE);
	put_huge("128\n", "12\n");
	expect("huge-pages", "", "128 of 2 MiB reserved, 12 free", "echo 384 >" HUGE);
	put(HUGE "/free_hugepages", "13\n");
	expect("huge-pages", "", "not mounted", "mount -t hugetlbfs");
	put("/proc/mounts", "none /big hugetlbfs rw,pagesize=1G 0 0\n"
			    "proc /proc proc rw 0 0\n");
	expect("huge-pages", "", "not mounted", "mount -t hugetlbfs");
	put("/proc/mounts", "none /big hugetlbfs rw,pagesize=1024M 0 0\n"
			    "none /dev/hugepages hugetlbfs rw,relatime,pagesize=2M 0 0\n");
	expect_ok("huge-pages", "", "mounted at /dev/hugepages");
}

TEST(doctor_memory__locked_memory)
{
	expect_ok("memlock", "", "unlimited");
	host.memlock_bytes = 64 << 10;
	expect("memlock", "", "64 KiB", "ulimit -l");
	host.locks_freely = true;
	expect_ok("memlock", "", "CAP_IPC_LOCK");
	host.locks_freely = false;
	host.memlock_bytes = 1ull << 30;
	expect_ok("memlock", "", "1024 MiB");
}

TEST(doctor_memory__dev_shm)
{
	expect_ok("shm", "/dev/shm", "64 MiB, 64 MiB free");
	host.shm_free_bytes = 100 << 10;
	expect("shm", "/dev/shm", "64 MiB, 100 KiB free", "remount,size=");
	host.shm_error = ENOENT;
	expect("shm", "/dev/shm", "No such file", "mount -t tmpfs");
}

TEST(doctor_memory__memory_files)
{
	expect_ok("memfd", "", "sealed");
	host.memfd_error = EACCES;
	expect("memfd", "", "Permission denied", "seccomp");
	put("/proc/sys/vm/memfd_noexec", "2\n");
	expect("memfd", "", "Permission denied", "vm.memfd_noexec=1");
}

TEST(doctor_kernel__user_namespaces)
{
	expect_ok("user-namespaces", "", "allowed");
	host.user_error = EPERM;
	expect("user-namespaces", "", "Operation not permitted", "seccomp");
	put("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n");
	expect("user-namespaces", "", "", "apparmor_restrict_unprivileged_userns=0");
	put("/proc/sys/kernel/unprivileged_userns_clone", "0\n");
	expect("user-namespaces", "", "", "unprivileged_userns_clone=1");
	put("/proc/sys/user/max_user_namespaces", "0\n");
	expect("user-namespaces", "", "", "user.max_user_namespaces=");
}

TEST(doctor_kernel__packet_sockets)
{
	expect_ok("packet-sockets", "", "--netdev works");
	host.raw_error = EPERM;
	expect("packet-sockets", "", "CAP_NET_RAW", "root");
}

TEST(doctor_kernel__scheduling_groups)
{
	expect_ok("autogroup", "", "off, 2 CPUs");
	put("/proc/sys/kernel/sched_autogroup_enabled", "1\n");
	expect("autogroup", "", "on, 2 CPUs", "sched_autogroup_enabled=0");
	host.cpus = 64;
	expect_ok("autogroup", "", "64 CPUs");
}

TEST(doctor_kernel__release)
{
	assert_null(look("kernel", ""));
	put("/proc/sys/kernel/osrelease", "6.1.0-13-amd64\n");
	expect("kernel", "", "Linux 6.1.0-13-amd64", "6.2");
	put("/proc/sys/kernel/osrelease", "6.2.0\n");
	expect_ok("kernel", "", "Linux 6.2.0");
	put("/proc/sys/kernel/osrelease", "10.0-rc1\n");
	expect_ok("kernel", "", "Linux 10.0");
}

TEST(doctor_kernel__devices_of_the_kernel)
{
	put_dir("/sys/class/infiniband/mlx5_0");
	put_dir("/sys/class/infiniband/rxe0");
	expect_ok("rdma-device", "mlx5_0", "of the kernel");
	expect_ok("rdma-device", "rxe0", "of the kernel");
}

/* Make the file of a driver. The NUL belongs to it: it ends the description. */
static void put_driver(const char *path, const char *description)
{
	put_bytes(path, description, strlen(description) + 1);
}

/* Make a NIC that only the driver "net_card" knows. The list of "net_other" is cut off. */
static void put_nic(const char *device)
{
	put(PCI "/class", "0x020000\n");
	put(PCI "/vendor", "0x1af4\n");
	put(PCI "/device", device);
	put_driver("/librte_net_card.so.23.0",
		   "\177ELF PMD_INFO_STRING= {\"name\": \"net_other\", \"pci_ids\": [[4660, 1, "
		   "65535, 65535], [6900, 4161");
	put_driver(
		"/librte_net_zcard.so.23.0",
		"PMD_INFO_STRING= {\"name\": \"net_card\", \"kmod\": \"* vfio-pci\", \"pci_ids\": "
		"[[6900, 4096, 65535, 65535], [6900, 4161, 65535, 65535]]}");
}

TEST(doctor_nics__no_nic)
{
	put(PCI "/class", "0x030000\n");
	expect_ok("iommu", "", "no PCI NIC");
	assert_null(look("nic", "0000:00:03.0"));
}

TEST(doctor_nics__of_the_kernel)
{
	put_nic("0x1041\n");
	put_link(PCI "/driver", "../../../../bus/pci/drivers/virtio-pci");
	put_dir(PCI "/virtio2/net/eth7");
	/* Bound to vfio-pci, it would leave the host without a network. */
	expect_ok("nic", "0000:00:03.0", "interface eth7: this host's only NIC, so leave it");
	put("/sys/bus/pci/devices/0000:00:04.0/class", "0x020000\n");
	expect_ok("nic", "0000:00:03.0", "1af4:1041, driver virtio-pci, interface eth7");
	/* It may have another one that is not seen here. */
	expect_ok("nic", "0000:00:03.0",
		  "DPDK's net_card could take it from the kernel, with all its interfaces in any "
		  "network namespace (dpdk-devbind");
	expect("iommu", "", "vfio-pci cannot take a NIC", "intel_iommu=on");
	put("/sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "Y\n");
	expect("iommu", "", "unsafe", "intel_iommu=on");
	put_dir("/sys/kernel/iommu_groups/0");
	put_dir("/sys/kernel/iommu_groups/1");
	expect_ok("iommu", "", "2 groups");
}

/* sysfs shows the interfaces of this network namespace alone. */
TEST(doctor_nics__interface_in_another_network_namespace)
{
	put_nic("0x1041\n");
	put_link(PCI "/driver", "../../../../bus/pci/drivers/virtio-pci");
	expect_ok("nic", "0000:00:03.0", "no interface here: this host's only NIC, so leave it");
	put("/sys/bus/pci/devices/0000:00:04.0/class", "0x020000\n");
	expect_ok("nic", "0000:00:03.0", "may be in another network namespace, so leave it there");
	assert_null(strstr(look("nic", "0000:00:03.0")->found, "devbind"));
}

TEST(doctor_nics__of_no_driver)
{
	put_nic("0x1041\n");
	expect_ok("nic", "0000:00:03.0", "driver none, no interface: DPDK's net_card could take");
}

TEST(doctor_nics__any_interface_of_a_function_counts)
{
	put_nic("0x1041\n");
	put_link(PCI "/driver", "../../../../bus/pci/drivers/two_ports");
	put_dir(PCI "/net/eth7");
	put_dir(PCI "/net/eth8");
	put_dir(PCI "/net/eth9");
	put("/sys/bus/pci/devices/0000:00:04.0/class", "0x020000\n");
	expect_ok("nic", "0000:00:03.0", "could take it");
	put("/proc/net/route", "Iface\tDestination\neth8\t00000000\n");
	expect_ok("nic", "0000:00:03.0", "interface eth8: in use by the kernel, so leave it there");
}

TEST(doctor_nics__in_use_by_the_kernel)
{
	put_nic("0x1041\n");
	put_link(PCI "/driver", "../../../../bus/pci/drivers/virtio-pci");
	put_dir(PCI "/virtio2/net/eth7");
	put("/sys/bus/pci/devices/0000:00:04.0/class", "0x020000\n");
	put("/proc/net/route", "Iface\tDestination\neth70\t00000000\n");
	put("/proc/net/ipv6_route", "fe80000000 40 00000001 eth7\nff00000000 08 00000001 eth7\n");
	expect_ok("nic", "0000:00:03.0", "could take it");
	put("/proc/net/ipv6_route", "0000000000 00 00000001 eth7\n");
	expect_ok("nic", "0000:00:03.0", "in use by the kernel, so leave it there: --netdev eth7");
	put("/proc/net/ipv6_route", "");
	put("/proc/net/route", "Iface\tDestination\neth7\t00000000\n");
	expect_ok("nic", "0000:00:03.0", "in use by the kernel");
	put("/proc/net/route", "");
	expect_ok("nic", "0000:00:03.0", "could take it");
	put_dir("/sys/class/net/eth7/upper_br0");
	expect_ok("nic", "0000:00:03.0", "in use by the kernel");
}

TEST(doctor_nics__ready)
{
	put_nic("0x1000\n");
	put_link(PCI "/driver", "../../../../bus/pci/drivers/vfio-pci");
	expect_ok("nic", "0000:00:03.0", "ready for --port 0000:00:03.0, by DPDK's net_card");
}

TEST(doctor_nics__of_a_driver_that_needs_verbs)
{
	put_nic("0x1000\n");
	put_link(PCI "/driver", "../../../../bus/pci/drivers/mlx5_core");
	expect("nic", "0000:00:03.0", "not for --port", "use --netdev with its interface");
	put_dir(PCI "/net/eth9");
	expect("nic", "0000:00:03.0", "not for --port", "use --netdev eth9");
}

/* As mlx5: it is no use to bind it to vfio-pci. */
TEST(doctor_nics__bound_to_vfio_but_needs_verbs)
{
	put_nic("0x1000\n");
	put_link(PCI "/driver", "../../../../bus/pci/drivers/vfio-pci");
	put_driver(
		"/librte_net_card.so.23.0",
		"PMD_INFO_STRING= {\"name\": \"mlx5_eth\", \"kmod\": \"* ib_uverbs & mlx5_core\", "
		"\"pci_ids\": [[6900, 4096, 65535, 65535]]}");
	expect("nic", "0000:00:03.0", "not for --port", "give it to its kernel driver");
}

TEST(doctor_nics__unknown_to_dpdk)
{
	put_nic("0x0001\n");
	put_link(PCI "/driver", "../../../../bus/pci/drivers/strange");
	put_dir(PCI "/net/eth9");
	expect("nic", "0000:00:03.0", "no installed DPDK driver knows it", "use --netdev eth9");
}

static void put_iface(const char *mtu, const char *state)
{
	put("/sys/class/net/veth0/type", "1\n");
	put("/sys/class/net/veth0/mtu", mtu);
	put("/sys/class/net/veth0/operstate", state);
	put("/sys/class/net/lo/type", "772\n");
	put("/sys/class/net/lo/mtu", "65536\n");
}

TEST(doctor_ifaces__mtu)
{
	static const struct {
		const char *mtu, *found;
		bool ok;
	} cases[] = {
		{"4176\n", "4176: path MTU 4096", true},
		{"4175\n", "path MTU 2048, not 4096", false},
		{"1500\n", "1500: path MTU 1024", false},
		{"335\n", "path MTU 0", false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		put_iface(cases[i].mtu, "up\n");
		expect("mtu", "veth0", cases[i].found,
		       cases[i].ok ? "" : "ip link set dev veth0 mtu 4176");
	}
	assert_null(look("mtu", "lo"));
}

TEST(doctor_ifaces__state_and_offloads)
{
	put_iface("9000\n", "up\n");
	expect_ok("link", "veth0", "up");
	expect_ok("offloads", "veth0", "tx-udp-segmentation on");
	segmentation = OFFLOAD_OFF;
	expect("offloads", "veth0", "off", "ethtool -K veth0");
	segmentation = OFFLOAD_MISSING;
	expect_ok("offloads", "veth0", "no tx-udp-segmentation in its driver");
	segmentation = OFFLOAD_UNKNOWN;
	expect_ok("offloads", "veth0", "unknown");
	put_iface("9000\n", "down\n");
	expect("link", "veth0", "down", "ip link set dev veth0 up");
}

static void put_uroced(void)
{
	put("/proc/77/comm", "uroced\n");
	put("/proc/77/net/unix",
	    "Num       RefCount Protocol Flags    Type St Inode Path\n"
	    "0000000000000000: 00000002 00000000 00010000 0005 01 1001 /run/uroce/uroced.sock\n"
	    "0000000000000000: 00000002 00000000 00010000 0005 01 1002 /run/uroce/my isolated\n"
	    "0000000000000000: 00000002 00000000 00010000 0001 01 1003 /run/another\n"
	    "0000000000000000: 00000003 00000000 00000000 0005 03 1004 /run/uroce/uroced.sock\n"
	    "0000000000000000: 00000002 00000000 00010000 0005 01 1005 /run/not-its-own\n"
	    "0000000000000000: 00000002 00000000 00010000 0005 01 1006 @abstract\n");
	put_link("/proc/77/fd/0", "/dev/null");
	put_link("/proc/77/fd/3", "socket:[1001]");
	put_link("/proc/77/fd/4", "socket:[1002]");
	put_link("/proc/77/fd/5", "socket:[1003]");
	put_link("/proc/77/fd/6", "socket:[1004]");
	put_link("/proc/77/fd/7", "socket:[1006]");
	put("/proc/78/comm", "another\n");
	put_link("/proc/78/fd/3", "socket:[1005]");
}

TEST(doctor_sockets__who_listens)
{
	put_uroced();
	expect_ok("socket", "/run/uroce/uroced.sock", "(process 77) listens");
	expect_ok("socket", "/run/uroce/my isolated", "(process 77) listens");
	assert_null(look("socket", "/run/another"));
	assert_null(look("socket", "/run/not-its-own"));
	writable = false;
	expect("socket", "/run/uroce/uroced.sock", "may not attach", "--socket-group");
}

TEST(doctor_sockets__nobody_listens)
{
	expect_ok("socket", "/run/uroce/uroced.sock", "no uroced");
	put("/run/uroce/uroced.sock", "");
	expect("socket", "/run/uroce/uroced.sock", "no process is seen", "rm ");
}

TEST(doctor_sockets__of_another_user)
{
	put("/proc/77/comm", "uroced\n");
	expect_ok("socket", "", "(process 77) is another user's");
	assert_null(look("socket", "/run/uroce/uroced.sock"));
}

TEST(doctor_ask_host__of_this_host)
{
	struct doctor_host real;

	doctor_ask_host(&real);
	assert_string_equal(real.root, "");
	assert_true(real.cpus > 0);
	assert_int_equal(real.memfd_error, 0);
	assert_int_equal(real.segments_udp("no-such-iface"), OFFLOAD_UNKNOWN);
	assert_int_not_equal(real.segments_udp("lo"), OFFLOAD_UNKNOWN);
	assert_true(real.may_write("/dev/null"));
	assert_false(real.may_write("/nonexistent"));
}
