/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of what the kernel allows: namespaces, packet sockets, scheduling groups, other RDMA
 * devices. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "doctor.h"

#define CPUS_FEW 8 /* with fewer, threads that poll often outnumber the CPUs */

static void check_user_namespaces(const struct doctor *doctor)
{
	const int error = doctor->host->user_error;
	const char *change =
		"allow unshare(CLONE_NEWUSER | CLONE_NEWNS) in the seccomp or AppArmor "
		"profile; meanwhile uroce-run preloads a library";

	if (error == 0) {
		doctor_tell(doctor, "user-namespaces", "", NULL,
			    "allowed: uroce-run can show the device's files to any program");
		return;
	}
	if (doctor_number(doctor, 1, "/proc/sys/user/max_user_namespaces") == 0)
		change = "as root: sysctl user.max_user_namespaces=10000";
	else if (doctor_number(doctor, 1, "/proc/sys/kernel/unprivileged_userns_clone") == 0)
		change = "as root: sysctl kernel.unprivileged_userns_clone=1";
	else if (doctor_number(doctor, 0,
			       "/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == 1)
		change = "as root: sysctl kernel.apparmor_restrict_unprivileged_userns=0";
	doctor_tell(doctor, "user-namespaces", "", change,
		    "not allowed (%s): static programs and Go do not see the device's files",
		    strerror(error));
}

static void check_raw_packets(const struct doctor *doctor)
{
	const int error = doctor->host->raw_error;

	if (error == 0)
		doctor_tell(doctor, "packet-sockets", "", NULL, "allowed: --netdev works");
	else
		doctor_tell(
			doctor, "packet-sockets", "",
			"use --udp, or run as root, or run uroced as root; --local and --socket "
			"work without",
			"not allowed (%s): --netdev needs CAP_NET_RAW", strerror(error));
}

/* Linux passes runs of packets on a packet socket, in one piece, from 6.2 on. */
static void check_release(const struct doctor *doctor)
{
	unsigned int major = 0, minor = 0;
	char release[128];

	doctor_read(doctor, release, sizeof(release), "/proc/sys/kernel/osrelease");
	if (sscanf(release, "%u.%u", &major, &minor) != 2)
		return;
	if (major > 6 || (major == 6 && minor >= 2))
		doctor_tell(doctor, "kernel", "", NULL, "Linux %s", release);
	else
		doctor_tell(doctor, "kernel", "",
			    "use Linux 6.2 or later (Debian 12: linux-image-amd64 of "
			    "bookworm-backports)",
			    "Linux %s: each packet of --netdev costs a pass through the kernel",
			    release);
}

static void check_autogroup(const struct doctor *doctor)
{
	const uint64_t on = doctor_number(doctor, 0, "/proc/sys/kernel/sched_autogroup_enabled");
	const unsigned int cpus = doctor->host->cpus;

	if (on == 0)
		doctor_tell(doctor, "autogroup", "", NULL, "off, %u CPUs", cpus);
	else if (cpus >= CPUS_FEW)
		doctor_tell(doctor, "autogroup", "", NULL,
			    "on, %u CPUs: enough for the threads that poll", cpus);
	else
		doctor_tell(doctor, "autogroup", "",
			    "as root: sysctl kernel.sched_autogroup_enabled=0",
			    "on, %u CPUs: a program that polls yields only to programs of its own "
			    "session",
			    cpus);
}

static void check_other_devices(const struct doctor *doctor)
{
	char **names;
	const size_t count = doctor_list(doctor, "/sys/class/infiniband", &names);

	for (size_t i = 0; i < count; i++)
		doctor_tell(doctor, "rdma-device", names[i], NULL,
			    "of the kernel; programs that uroce-run runs see uroce's devices "
			    "instead");
	doctor_list_free(names, count);
}

void doctor_kernel(const struct doctor *doctor)
{
	check_release(doctor);
	check_user_namespaces(doctor);
	check_raw_packets(doctor);
	check_autogroup(doctor);
	check_other_devices(doctor);
}
