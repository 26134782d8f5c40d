/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the checks, and shows their findings; reads files of the kernel, or of a tree that takes
 * its place. */
#include "doctor.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <net/if_arp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config/settings.h"
#include "ctl_output.h"
#include "dpdk_ports.h"

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

static void doctor_kernel(const struct doctor *doctor)
{
	check_release(doctor);
	check_user_namespaces(doctor);
	check_raw_packets(doctor);
	check_autogroup(doctor);
	check_other_devices(doctor);
}

#define KIB	   UINT64_C(1024)
#define MIB	   (1024 * KIB)
#define PAGES_DIR  "/sys/kernel/mm/hugepages/hugepages-2048kB"
#define PAGES_WANT 256 /* of 2 MiB, as config/setup.sh reserves */
#define PAGES_MIN  13  /* that one program takes */
/* A port behind an IOMMU maps its buffers: those of uroced, with the default limits. */
#define LOCK_WANT (256 * MIB)
#define SHM_WANT  (1 * MIB) /* for the files of a view; everything else is in memory files */

/* Find where pages of 2 MiB are mounted. The default size is 2 MiB on x86 and most others. */
static bool find_mount(const struct doctor *doctor, char *where, size_t size)
{
	char line[1024], path[256], type[32], options[256];
	FILE *file = doctor_open(doctor, "/proc/mounts");
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%*s %255s %31s %255s", path, type, options) != 3 ||
		    strcmp(type, "hugetlbfs") != 0 ||
		    (strstr(options, "pagesize=") && !strstr(options, "pagesize=2M")))
			continue;
		snprintf(where, size, "%s", path);
		found = true;
	}
	if (file)
		fclose(file);
	return found;
}

static void check_huge_pages(const struct doctor *doctor)
{
	const uint64_t all = doctor_number(doctor, UINT64_MAX, PAGES_DIR "/nr_hugepages");
	const uint64_t free_pages = doctor_number(doctor, 0, PAGES_DIR "/free_hugepages");
	char where[256];
	const bool mounted = find_mount(doctor, where, sizeof(where));
	char change[256];

	if (all == UINT64_MAX) {
		doctor_tell(doctor, "huge-pages", "",
			    "use a kernel with CONFIG_HUGETLBFS; ordinary pages work, slower",
			    "this kernel has none of 2 MiB");
		return;
	}
	if (free_pages < PAGES_MIN) {
		snprintf(change, sizeof(change),
			 "as root: echo %" PRIu64 " >" PAGES_DIR
			 "/nr_hugepages (ordinary pages work, slower)",
			 all + PAGES_WANT);
		doctor_tell(doctor, "huge-pages", "", change,
			    "%" PRIu64 " of 2 MiB reserved, %" PRIu64 " free; a program takes %d",
			    all, free_pages, PAGES_MIN);
	} else if (!mounted) {
		doctor_tell(doctor, "huge-pages", "",
			    "as root: mkdir -p /dev/hugepages && mount -t hugetlbfs -o pagesize=2M "
			    "none /dev/hugepages",
			    "%" PRIu64 " of 2 MiB reserved, %" PRIu64 " free, not mounted", all,
			    free_pages);
	} else {
		doctor_tell(doctor, "huge-pages", "", NULL,
			    "%" PRIu64 " of 2 MiB reserved, %" PRIu64 " free, mounted at %s", all,
			    free_pages, where);
	}
}

static void check_memlock(const struct doctor *doctor)
{
	const struct doctor_host *host = doctor->host;

	if (host->locks_freely)
		doctor_tell(doctor, "memlock", "", NULL, "no limit for this user (CAP_IPC_LOCK)");
	else if (host->memlock_bytes == UINT64_MAX)
		doctor_tell(doctor, "memlock", "", NULL, "unlimited");
	else if (host->memlock_bytes >= LOCK_WANT)
		doctor_tell(doctor, "memlock", "", NULL, "%" PRIu64 " MiB",
			    host->memlock_bytes / MIB);
	else
		doctor_tell(doctor, "memlock", "",
			    "ulimit -l unlimited, or memlock in /etc/security/limits.conf, or "
			    "LimitMEMLOCK=infinity in a systemd unit",
			    "%" PRIu64 " KiB: a NIC behind vfio-pci needs %" PRIu64
			    " MiB; other ports "
			    "need none",
			    host->memlock_bytes / KIB, LOCK_WANT / MIB);
}

static void check_shm(const struct doctor *doctor)
{
	const struct doctor_host *host = doctor->host;

	if (host->shm_error != 0)
		doctor_tell(doctor, "shm", "/dev/shm",
			    "as root: mount -t tmpfs -o mode=1777 tmpfs /dev/shm (uroce-run uses "
			    "/tmp meanwhile)",
			    "no file can be made there: %s", strerror(host->shm_error));
	else if (host->shm_free_bytes < SHM_WANT)
		doctor_tell(doctor, "shm", "/dev/shm",
			    "remove files there, or as root: mount -o remount,size=256M /dev/shm "
			    "(podman: --shm-size)",
			    "%" PRIu64 " MiB, %" PRIu64 " KiB free", host->shm_bytes / MIB,
			    host->shm_free_bytes / KIB);
	else
		doctor_tell(doctor, "shm", "/dev/shm", NULL,
			    "%" PRIu64 " MiB, %" PRIu64 " MiB free", host->shm_bytes / MIB,
			    host->shm_free_bytes / MIB);
}

static void check_memfd(const struct doctor *doctor)
{
	const int error = doctor->host->memfd_error;
	const uint64_t noexec = doctor_number(doctor, 0, "/proc/sys/vm/memfd_noexec");

	if (error == 0)
		doctor_tell(doctor, "memfd", "", NULL, "memory files can be made and sealed");
	else
		doctor_tell(doctor, "memfd", "",
			    noexec >= 2 ? "as root: sysctl vm.memfd_noexec=1"
					: "allow memfd_create and F_ADD_SEALS in the seccomp "
					  "profile, or use Linux 3.17 or later",
			    "memory files cannot be made and sealed (%s), so uroced shares no port",
			    strerror(error));
}

static void doctor_memory(const struct doctor *doctor)
{
	check_huge_pages(doctor);
	check_memlock(doctor);
	check_shm(doctor);
	check_memfd(doctor);
}

#define NET	   "/sys/class/net"
#define FRAME_MORE 80 /* bytes of an IP packet beyond the payload, with IPv6 and all headers */

/* Return the largest path MTU that fits, or 0. */
static uint64_t path_mtu(uint64_t mtu)
{
	uint64_t path = 4096;

	while (path >= 256 && path + FRAME_MORE > mtu)
		path /= 2;
	return path >= 256 ? path : 0;
}

static void check_mtu(const struct doctor *doctor, const char *iface)
{
	const uint64_t mtu = doctor_number(doctor, 0, NET "/%s/mtu", iface);
	char change[256];

	if (path_mtu(mtu) == 4096) {
		doctor_tell(doctor, "mtu", iface, NULL, "%" PRIu64 ": path MTU 4096", mtu);
		return;
	}
	snprintf(change, sizeof(change),
		 "as root: ip link set dev %s mtu %d, at both ends and in switches between them",
		 iface, 4096 + FRAME_MORE);
	doctor_tell(doctor, "mtu", iface, change, "%" PRIu64 ": path MTU %" PRIu64 ", not 4096",
		    mtu, path_mtu(mtu));
}

static void check_state(const struct doctor *doctor, const char *iface)
{
	char state[32], change[256];

	doctor_read(doctor, state, sizeof(state), NET "/%s/operstate", iface);
	if (strcmp(state, "down") == 0) {
		snprintf(change, sizeof(change), "as root: ip link set dev %s up (and its cable)",
			 iface);
		doctor_tell(doctor, "link", iface, change, "down");
	} else {
		doctor_tell(doctor, "link", iface, NULL, "%s", state[0] ? state : "unknown");
	}
}

static void check_offloads(const struct doctor *doctor, const char *iface)
{
	const enum doctor_offload offload = doctor->host->segments_udp(iface);
	static const char *const found[] = {
		[OFFLOAD_UNKNOWN] = "unknown",
		[OFFLOAD_MISSING] = "no tx-udp-segmentation in its driver: the kernel splits runs",
		[OFFLOAD_OFF] = "tx-udp-segmentation off: the kernel splits runs of packets",
		[OFFLOAD_ON] = "tx-udp-segmentation on: runs of packets leave in one piece",
	};
	char change[256];

	snprintf(change, sizeof(change),
		 "as root: ethtool -K %s tx-udp-segmentation on, unless a reader at the other end "
		 "of "
		 "a veth needs single packets",
		 iface);
	doctor_tell(doctor, "offloads", iface, offload == OFFLOAD_OFF ? change : NULL, "%s",
		    found[offload]);
}

static void doctor_ifaces(const struct doctor *doctor)
{
	char **names;
	const size_t count = doctor_list(doctor, NET, &names);

	for (size_t i = 0; i < count; i++) {
		if (doctor_number(doctor, 0, NET "/%s/type", names[i]) != ARPHRD_ETHER)
			continue;
		check_state(doctor, names[i]);
		check_mtu(doctor, names[i]);
		check_offloads(doctor, names[i]);
	}
	doctor_list_free(names, count);
}

#define OWNER "uroced"

struct look {
	const struct doctor *doctor;
	const char *pid;
	bool has_default;
};

static void tell_socket(void *arg, const struct held_socket *socket)
{
	struct look *look = arg;
	char full[PATH_MAX];

	if (socket->type != SOCK_SEQPACKET || !socket->listens ||
	    strstr(socket->path, "/dpdk_telemetry"))
		return;
	look->has_default |= strcmp(socket->path, SETTINGS_DEFAULT_SOCKET) == 0;
	if (snprintf(full, sizeof(full), "%s%s", look->doctor->host->root, socket->path) >=
	    (int)sizeof(full))
		return;
	if (look->doctor->host->may_write(full))
		doctor_tell(look->doctor, "socket", socket->path, NULL,
			    OWNER " (process %s) listens; this user may attach", look->pid);
	else
		doctor_tell(look->doctor, "socket", socket->path,
			    "join its group, or start " OWNER " with --socket-group or "
			    "--socket-mode, or ask for its --isolated socket",
			    OWNER " (process %s) listens; this user may not attach", look->pid);
}

static void check_default(const struct doctor *doctor)
{
	char full[PATH_MAX];

	if (snprintf(full, sizeof(full), "%s" SETTINGS_DEFAULT_SOCKET, doctor->host->root) >=
	    (int)sizeof(full))
		return;
	if (access(full, F_OK) == 0)
		doctor_tell(doctor, "socket", SETTINGS_DEFAULT_SOCKET,
			    "start uroced, which replaces the file, or as root: "
			    "rm " SETTINGS_DEFAULT_SOCKET,
			    "the file is there, and no process is seen that listens; uroce-run "
			    "would use it");
	else
		doctor_tell(doctor, "socket", SETTINGS_DEFAULT_SOCKET, NULL,
			    "no uroced listens there: programs need a port of their own, or "
			    "--local");
}

static void doctor_sockets(const struct doctor *doctor)
{
	struct look look = {.doctor = doctor};
	char **pids, comm[32];
	const size_t count = doctor_list(doctor, "/proc", &pids);
	bool all_seen = true;

	for (size_t i = 0; i < count; i++) {
		if (pids[i][0] < '0' || pids[i][0] > '9' ||
		    !doctor_read(doctor, comm, sizeof(comm), "/proc/%s/comm", pids[i]) ||
		    strcmp(comm, OWNER) != 0)
			continue;
		look.pid = pids[i];
		if (held_each(doctor->host->root, pids[i], tell_socket, &look))
			continue;
		doctor_tell(doctor, "socket", "", NULL,
			    OWNER " (process %s) is another user's: run as root to see its sockets",
			    pids[i]);
		all_seen = false;
	}
	doctor_list_free(pids, count);
	if (!look.has_default && all_seen)
		check_default(doctor);
}

#define INDENT 6 /* the width of the first word, and of further lines */

void doctor_tell(const struct doctor *doctor, const char *check, const char *subject,
		 const char *change, const char *found, ...)
{
	struct finding finding = {.check = check, .ok = !change};
	va_list args;

	snprintf(finding.subject, sizeof(finding.subject), "%s", subject);
	snprintf(finding.change, sizeof(finding.change), "%s", change ? change : "");
	va_start(args, found);
	vsnprintf(finding.found, sizeof(finding.found), found, args);
	va_end(args);
	doctor->tell(doctor->arg, &finding);
}

/* Make a path under the host's root. Returns false if it is too long. */
__attribute__((format(printf, 3, 0))) static bool
make_path(const struct doctor *doctor, char path[PATH_MAX], const char *format, va_list args)
{
	const int root = snprintf(path, PATH_MAX, "%s", doctor->host->root);
	int len;

	if (root < 0 || root >= PATH_MAX)
		return false;
	len = vsnprintf(path + root, PATH_MAX - (size_t)root, format, args);
	return len >= 0 && len < PATH_MAX - root;
}

FILE *doctor_open(const struct doctor *doctor, const char *path)
{
	char full[PATH_MAX];

	if (snprintf(full, sizeof(full), "%s%s", doctor->host->root, path) >= (int)sizeof(full))
		return NULL;
	return fopen(full, "re");
}

bool doctor_read(const struct doctor *doctor, char *line, size_t size, const char *path, ...)
{
	char full[PATH_MAX];
	va_list args;
	bool fits;

	line[0] = '\0';
	va_start(args, path);
	fits = make_path(doctor, full, path, args);
	va_end(args);
	return fits && read_line(full, line, size);
}

uint64_t doctor_number(const struct doctor *doctor, uint64_t missing, const char *path, ...)
{
	char full[PATH_MAX], line[64], *end;
	uint64_t number;
	va_list args;
	bool fits;

	va_start(args, path);
	fits = make_path(doctor, full, path, args);
	va_end(args);
	if (!fits || !read_line(full, line, sizeof(line)))
		return missing;
	number = strtoull(line, &end, 0);
	return end == line ? missing : number;
}

bool doctor_link(const struct doctor *doctor, char *name, size_t size, const char *path, ...)
{
	char full[PATH_MAX], target[PATH_MAX];
	const char *last;
	ssize_t len = -1;
	va_list args;

	va_start(args, path);
	if (make_path(doctor, full, path, args))
		len = readlink(full, target, sizeof(target) - 1);
	va_end(args);
	target[len < 0 ? 0 : len] = '\0';
	last = strrchr(target, '/');
	snprintf(name, size, "%s", last ? last + 1 : target);
	return len >= 0;
}

static int is_shown(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

size_t doctor_list(const struct doctor *doctor, const char *path, char ***names)
{
	struct dirent **entries;
	char full[PATH_MAX];
	size_t listed = 0;
	int count;

	*names = NULL;
	if (snprintf(full, sizeof(full), "%s%s", doctor->host->root, path) >= (int)sizeof(full))
		return 0;
	count = scandir(full, &entries, is_shown, versionsort);
	if (count < 0)
		return 0;
	*names = calloc((size_t)count + 1, sizeof(**names));
	for (int i = 0; i < count; i++) {
		if (*names && ((*names)[listed] = strdup(entries[i]->d_name)) != NULL)
			listed++;
		free(entries[i]);
	}
	free(entries);
	return listed;
}

void doctor_list_free(char **names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(names[i]);
	free(names);
}

void doctor_run(const struct doctor *doctor)
{
	doctor_memory(doctor);
	doctor_kernel(doctor);
	doctor_nics(doctor);
	doctor_ifaces(doctor);
	doctor_sockets(doctor);
}

/* Print a finding: "OK" or "warn", the check, what was found, and what to change. */
static void print_line(const struct terminal *terminal, const struct finding *finding)
{
	const enum tint tint = finding->ok ? TINT_GOOD : TINT_WARN;
	unsigned int column;
	char head[256];

	terminal_put(terminal, tint, finding->ok ? "OK" : "warn");
	printf("%*s", INDENT - (finding->ok ? 2 : 4), "");
	snprintf(head, sizeof(head), "%s%s%s:", finding->check, finding->subject[0] ? " " : "",
		 finding->subject);
	column = terminal_wrap(terminal, TINT_NAME, INDENT, INDENT, head);
	column = terminal_wrap(terminal, TINT_PLAIN, column, INDENT, finding->found);
	if (finding->change[0]) {
		column = terminal_wrap(terminal, TINT_PLAIN, column, INDENT, "->");
		terminal_wrap(terminal, TINT_PLAIN, column, INDENT, finding->change);
	}
	putchar('\n');
}

static void tell(void *arg, const struct finding *finding)
{
	struct output *output = arg;

	if (!output->json) {
		print_line(output->terminal, finding);
		return;
	}
	output_item(output);
	output_text(output, "check", finding->check);
	if (finding->subject[0])
		output_text(output, "subject", finding->subject);
	output_text(output, "state", finding->ok ? "ok" : "warn");
	output_text(output, "found", finding->found);
	if (finding->change[0])
		output_text(output, "change", finding->change);
	output_item_end(output);
}

void doctor_show(const struct doctor_host *host, struct output *output)
{
	const struct doctor doctor = {.host = host, .tell = tell, .arg = output};

	doctor_run(&doctor);
}
