/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans a capture: finds the device or queue pair, and chooses the tool and its filter. A packet
 * names only the queue pair that it goes to. So the filter takes packets to our queue pair, and
 * packets to the peer's address and queue pair. Datagrams also name their sender. Offsets are from
 * the IP header, which has no options in RoCE: udp[] of pcap-filter(7) works with IPv4 only, and
 * dpdk-dumpcap 22.11 finds nothing by udp[12:4].
 */
#include "ctl_capture.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl_show.h"
#include "wire/gid.h"

#define ROCE_PORT 4791

/* A packet socket bypasses the queueing disciplines, and the kernel captures sent packets only
 * there. */
#define CAPTURE_RECEIVED                                                                         \
	"only received packets are seen here, and a run of packets looks like one long packet; " \
	"let uroced own the interface, with --capture port, to see all"
#define CAPTURE_LOCAL "local" /* in front of a port without a network's number */
#define CAPTURE_PCAP  "; tcpdump writes pcap, not pcapng"
#define CAPTURE_UDP   "a run of packets looks like one long packet"

/* Offsets into IP packets without options or extension headers. */
struct offsets {
	const char *base;
	int opcode, dest_qp, source_qp;
};

static const struct offsets in_ip4 = {"ip", 28, 32, 44};
static const struct offsets in_ip6 = {"ip6", 48, 52, 64};

static bool refuse(char *error, size_t error_size, const char *text)
{
	snprintf(error, error_size, "%s", text);
	return false;
}

pid_t capture_owner(const struct capture_target *target)
{
	const struct report_view *head = target->device->head;

	return head->facts.role == REPORT_ATTACHED ? head->facts.owner_pid : head->pid;
}

/* ---- find ---- */

static bool find_target_qp(const struct report_devices *devices, const struct capture_want *want,
			   struct capture_target *target, char *error, size_t error_size)
{
	uint32_t next = 0, found = 0;

	for (const struct report_view *view;
	     (view = devices_next_view(devices, &want->filter, &next));) {
		const struct report_record *record = report_find_qp(view, want->qpn);

		if (!record)
			continue;
		target->device = devices_of(devices, next - 1);
		target->view = view;
		target->record = record;
		found++;
	}
	if (found == 1)
		return true;
	return refuse(error, error_size,
		      found == 0 ? "no process has that queue pair; see 'resource show qp'"
				 : "several processes have a queue pair with that number; add 'pid "
				   "PID' or 'net NET'");
}

/* Find out if the peer's queue pair belongs to the same device, and is connected to ours. */
static void find_peer(const struct report_devices *devices, struct capture_target *target)
{
	const struct report_qp *qp = &target->record->qp;

	for (uint32_t v = 0; v < devices->views.count && qp->dest_qpn != 0; v++) {
		const struct report_view *view = &devices->views.list[v];
		const struct report_record *peer = report_find_qp(view, qp->dest_qpn);

		if (!peer || devices_of(devices, v) != target->device ||
		    peer->qp.dest_qpn != target->record->number)
			continue;
		target->local = true;
		target->inside = view == target->view;
	}
}

static bool has_no_network(const struct report_facts *facts)
{
	return !facts->netdev && strncmp(facts->port, CAPTURE_LOCAL, strlen(CAPTURE_LOCAL)) == 0;
}

bool capture_find(const struct report_devices *devices, const struct capture_want *want,
		  struct capture_target *target, char *error, size_t error_size)
{
	uint32_t next = 0;

	*target = (struct capture_target){.device = NULL};
	if (want->qpn != 0) {
		if (!find_target_qp(devices, want, target, error, error_size))
			return false;
		find_peer(devices, target);
		return true;
	}
	target->device = devices_next(devices, &want->filter, &next);
	if (!target->device)
		return refuse(error, error_size, "there is no such device; see 'dev'");
	if (!show_is_one(devices, &want->filter, error, error_size))
		return false;
	target->local = has_no_network(&target->device->head->facts);
	return true;
}

/* ---- the filter ---- */

static int add_family(char *at, size_t size, const struct offsets *offsets,
		      const struct report_record *record)
{
	const bool ip6 = offsets == &in_ip6;
	char peer[GID_TEXT_MAX + 64] = "", address[GID_TEXT_MAX];

	gid_text(record->qp.dgid, address);
	if (record->qp.dest_qpn != 0 && gid_is_ipv4(record->qp.dgid) != ip6)
		snprintf(peer, sizeof(peer),
			 " or (dst host %s and %s[%d:4] & 0xffffff = %" PRIu32 ")", address,
			 offsets->base, offsets->dest_qp, record->qp.dest_qpn);
	return snprintf(at, size,
			"(%s and udp dst port %d and (%s[%d:4] & 0xffffff = %" PRIu32
			"%s or (%s[%d] "
			"& 0xe0 = 0x60 and %s[%d:4] & 0xffffff = %" PRIu32 ")))",
			ip6 ? "ip6" : "ip and ip[0] = 0x45", ROCE_PORT, offsets->base,
			offsets->dest_qp, record->number, peer, offsets->base, offsets->opcode,
			offsets->base, offsets->source_qp, record->number);
}

/* "vlan" changes the offsets of what follows, so the expression without a tag comes first. A UDP
 * socket's packets have none, and the interface "any" knows no "vlan". */
int capture_filter(const struct capture_target *target, char filter[CAPTURE_FILTER_MAX])
{
	char plain[CAPTURE_FILTER_MAX / 2 - 32];
	int len;

	if (target->record) {
		len = add_family(plain, sizeof(plain), &in_ip4, target->record);
		len += snprintf(plain + len, sizeof(plain) - (size_t)len, " or ");
		add_family(plain + len, sizeof(plain) - (size_t)len, &in_ip6, target->record);
	} else {
		snprintf(plain, sizeof(plain), "udp dst port %d", ROCE_PORT);
	}
	if (target->device->head->facts.udp)
		return snprintf(filter, CAPTURE_FILTER_MAX, "%s", plain);
	return snprintf(filter, CAPTURE_FILTER_MAX, "(%s) or (vlan and (%s))", plain, plain);
}

/* ---- the tool ---- */

static void add_argument(struct capture_plan *plan, const char *argument)
{
	size_t i = 0;

	while (plan->argv[i])
		i++;
	if (i < CAPTURE_ARGS_MAX)
		plan->argv[i] = argument;
}

/* Write the tool's own arguments, and those that all tools have. */
static void add_arguments(struct capture_plan *plan, const struct capture_want *want,
			  const char *const *arguments)
{
	for (; *arguments; arguments++)
		add_argument(plan, *arguments);
	if (want->packets > 0) {
		snprintf(plan->texts[0], sizeof(plan->texts[0]), "%" PRIu32, want->packets);
		add_argument(plan, "-c");
		add_argument(plan, plan->texts[0]);
	}
	add_argument(plan, "-w");
	add_argument(plan, want->file);
}

static bool choose_dpdk(const struct capture_want *want, const struct dpdk_ports *ports,
			const struct dpdk_port *port, struct capture_plan *plan)
{
	snprintf(plan->texts[1], sizeof(plan->texts[1]), "--file-prefix=%s", ports->prefix);
	snprintf(plan->texts[2], sizeof(plan->texts[2]), "%" PRIu32, port->id);
	/* -p: do not make the port promiscuous */
	add_arguments(plan, want,
		      (const char *const[]){"dpdk-dumpcap", plan->texts[1], "-p", "-i",
					    plan->texts[2], "-f", plan->filter, NULL});
	return true;
}

/* The kernel's routes choose the interface of each packet of a UDP socket: lo, if it is for this
 * host. */
static bool choose_kernel(const struct capture_target *target, const struct capture_want *want,
			  const struct capture_tools *tools, struct capture_plan *plan, char *error,
			  size_t error_size)
{
	const struct report_facts *facts = &target->device->head->facts;
	const char *iface = facts->udp ? "any" : facts->port;

	plan->netns_of = capture_owner(target);
	if (tools->dumpcap) {
		add_arguments(plan, want,
			      (const char *const[]){"dumpcap", "-q", "-p", "-i", iface, "-f",
						    plan->filter, NULL});
		plan->note = facts->udp ? CAPTURE_UDP : CAPTURE_RECEIVED;
		return true;
	}
	if (!tools->tcpdump)
		return refuse(error, error_size,
			      "install dumpcap (Debian: wireshark-common) or tcpdump");
	add_arguments(plan, want,
		      (const char *const[]){"tcpdump", "-U", "-p", "-n", "-i", iface, NULL});
	add_argument(plan, plan->filter); /* tcpdump wants the filter as its last argument */
	plan->note = facts->udp ? CAPTURE_UDP CAPTURE_PCAP : CAPTURE_RECEIVED CAPTURE_PCAP;
	return true;
}

/* Capture in the process that has the port, and that other DPDK processes may join. */
static bool choose_joined(const struct capture_target *target, const struct capture_want *want,
			  const struct dpdk_ports *ports, const struct dpdk_port *port,
			  struct capture_plan *plan, char *error, size_t error_size)
{
	const struct dpdk_port *between = dpdk_ports_find_handed_over(ports, port);

	if (target->local && !between)
		return refuse(error, error_size,
			      "packets between programs of one uroced pass no port; start it with "
			      "--capture all");
	if (!target->local && !target->record && between)
		plan->note = "only packets of the port, not those between programs of this uroced; "
			     "name a queue pair (qp LQPN) for these";
	return choose_dpdk(want, ports, target->local ? between : port, plan);
}

bool capture_choose(const struct capture_target *target, const struct capture_want *want,
		    const struct dpdk_ports *ports, const struct capture_tools *tools,
		    struct capture_plan *plan, char *error, size_t error_size)
{
	const struct report_facts *facts = &target->device->head->facts;
	const struct dpdk_port *port = dpdk_ports_find(ports, facts->port);

	*plan = (struct capture_plan){.netns_of = 0};
	capture_filter(target, plan->filter);
	if (target->inside)
		return refuse(error, error_size,
			      "its peer is in the same process; their packets do not leave it");
	if (port && tools->dpdk_dumpcap)
		return choose_joined(target, want, ports, port, plan, error, error_size);
	if (target->local)
		return refuse(
			error, error_size,
			port ? "install dpdk-dumpcap (Debian: dpdk)"
			     : "packets between programs of one uroced pass no port; start it "
			       "with --capture all");
	if (facts->netdev)
		return choose_kernel(target, want, tools, plan, error, error_size);
	return refuse(error, error_size,
		      port ? "install dpdk-dumpcap (Debian: dpdk)"
			   : "no tool sees the packets of this port; let uroced own it, with "
			     "--capture port or all");
}

static bool is_installed(const char *tool)
{
	const char *path = getenv("PATH");
	char full[PATH_MAX];

	for (path = path ? path : "/usr/bin:/bin:/usr/sbin:/sbin"; *path;) {
		const int len = (int)strcspn(path, ":");

		if (len > 0 &&
		    snprintf(full, sizeof(full), "%.*s/%s", len, path, tool) < (int)sizeof(full) &&
		    access(full, X_OK) == 0)
			return true;
		path += len;
		path += *path == ':';
	}
	return false;
}

/* Enter the network namespace of a process, if it is not ours. Returns 0 or -errno. */
static int enter_netns(pid_t pid)
{
	struct stat ours, theirs;
	char path[64];
	int fd, rc = 0;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &theirs) != 0 || stat("/proc/self/ns/net", &ours) != 0)
		rc = -errno;
	else if (ours.st_ino != theirs.st_ino && setns(fd, CLONE_NEWNET) != 0)
		rc = -errno;
	close(fd);
	return rc;
}

/* Remove an old file: dpdk-dumpcap does not truncate it. Leave devices and pipes alone. */
static bool remove_old(const char *path)
{
	struct stat file;

	return lstat(path, &file) != 0 || !S_ISREG(file.st_mode) || unlink(path) == 0;
}

/* Print the command, so that the user can change it. */
static void print_command(const struct capture_plan *plan)
{
	fputs("uroce-ctl:", stderr);
	for (size_t i = 0; plan->argv[i]; i++)
		fprintf(stderr, strpbrk(plan->argv[i], " &()[]") ? " '%s'" : " %s", plan->argv[i]);
	fputc('\n', stderr);
	if (plan->note)
		fprintf(stderr, "uroce-ctl: %s\n", plan->note);
}

void capture_run(const struct report_devices *devices, const struct capture_want *want, char *error,
		 size_t error_size)
{
	const struct capture_tools tools = {
		.dpdk_dumpcap = is_installed("dpdk-dumpcap"),
		.dumpcap = is_installed("dumpcap"),
		.tcpdump = is_installed("tcpdump"),
	};
	struct capture_target target;
	struct capture_plan plan;
	struct dpdk_ports ports;
	int rc;

	if (!capture_find(devices, want, &target, error, error_size))
		return;
	rc = dpdk_ports_ask(capture_owner(&target), &ports);
	if (rc != 0) {
		snprintf(error, error_size, "cannot ask process %d for its DPDK ports: %s",
			 capture_owner(&target), strerror(-rc));
		return;
	}
	if (!capture_choose(&target, want, &ports, &tools, &plan, error, error_size))
		return;
	if (!remove_old(want->file)) {
		snprintf(error, error_size, "%s: %s", want->file, strerror(errno));
		return;
	}
	print_command(&plan);
	rc = plan.netns_of != 0 ? enter_netns(plan.netns_of) : 0;
	if (rc != 0) {
		snprintf(error, error_size, "cannot enter the network of process %d: %s",
			 plan.netns_of, strerror(-rc));
		return;
	}
	execvp(plan.argv[0], (char *const *)(uintptr_t)plan.argv);
	snprintf(error, error_size, "%s: %s", plan.argv[0], strerror(errno));
}
