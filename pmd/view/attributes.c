/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of all attributes of a view. Names and texts are those of Linux's sysfs
 * (Documentation/ABI/stable/sysfs-class-infiniband, drivers/infiniband/core/sysfs.c).
 */
#include "attributes.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <rte_byteorder.h>
#include <rte_common.h>

#define CPUS_ONLINE "/sys/devices/system/cpu/online"
#define CPUS_MAX    4096
#define WORD_BITS   32

static int read_file(const char *path, char *text, size_t size)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len;

	if (fd < 0)
		return -errno;
	len = read(fd, text, size - 1);
	close(fd);
	if (len <= 0)
		return -EIO;
	text[len] = '\0';
	return 0;
}

static int read_own(const char *netdev, const char *attribute, char *text, size_t size)
{
	char path[PATH_MAX];

	if (netdev[0] == '\0')
		return -ENOENT;
	snprintf(path, sizeof(path), "/sys/class/net/%s/device/%s", netdev, attribute);
	return read_file(path, text, size);
}

void topology_numa_node(const char *netdev, char *text, size_t size)
{
	if (read_own(netdev, "numa_node", text, size) != 0)
		snprintf(text, size, "-1\n");
}

void topology_cpulist(const char *netdev, char *text, size_t size)
{
	if (read_own(netdev, "local_cpulist", text, size) != 0 &&
	    read_file(CPUS_ONLINE, text, size) != 0)
		snprintf(text, size, "0\n");
}

int topology_mask(const char *list, char *text, size_t size)
{
	uint32_t words[CPUS_MAX / WORD_BITS] = {0};
	unsigned long first, last, highest = 0;
	size_t len = 0;
	char *end;

	for (;;) {
		first = last = strtoul(list, &end, 10);
		if (end == list)
			return -EINVAL;
		list = end;
		if (*list == '-') {
			last = strtoul(list + 1, &end, 10);
			if (end == list + 1)
				return -EINVAL;
			list = end;
		}
		if (first > last || last >= CPUS_MAX)
			return -EINVAL;
		for (unsigned long cpu = first; cpu <= last; cpu++)
			words[cpu / WORD_BITS] |= UINT32_C(1) << cpu % WORD_BITS;
		highest = RTE_MAX(highest, last);
		if (*list != ',')
			break;
		list++;
	}
	if (*list != '\0' && *list != '\n')
		return -EINVAL;
	for (size_t i = highest / WORD_BITS + 1; i-- > 0 && len < size;)
		len += (size_t)snprintf(text + len, size - len, "%08x%s", words[i],
					i == 0 ? "\n" : ",");
	return len < size ? 0 : -EINVAL;
}

void topology_cpus(const char *netdev, char *text, size_t size)
{
	char list[256];

	if (read_own(netdev, "local_cpus", text, size) == 0)
		return;
	topology_cpulist("", list, sizeof(list));
	if (topology_mask(list, text, size) != 0)
		snprintf(text, size, "00000001\n");
}

#define DEVICE	    VIEW_CLASS "/@"
#define PORT	    DEVICE "/ports/1"
#define PCI	    DEVICE "/device"
#define VERBS	    VIEW_CLASS_VERBS "/uverbs#"
#define MAD	    VIEW_CLASS_MAD "/umad#"
#define PCI_ID_MASK 0xffffu /* of our vendor id, which has 24 bits */

/* Versions of the kernel's interfaces, as its headers define them. */
#define ABI_VERBS	 "6"
#define ABI_VERBS_DEVICE "1"
#define ABI_MAD		 "5"
#define ABI_CM		 "4"

static void write_guid(uint64_t guid_be, char *text, size_t size)
{
	const uint64_t guid = rte_be_to_cpu_64(guid_be);

	snprintf(text, size, "%04x:%04x:%04x:%04x\n", (unsigned int)(guid >> 48) & 0xffff,
		 (unsigned int)(guid >> 32) & 0xffff, (unsigned int)(guid >> 16) & 0xffff,
		 (unsigned int)guid & 0xffff);
}

/* Define a function that writes an attribute by one snprintf. */
#define ATTRIBUTE(name, ...)                                                                       \
	static void name(const struct view_facts *facts __rte_unused, uint32_t index __rte_unused, \
			 char *text, size_t size)                                                  \
	{                                                                                          \
		snprintf(text, size, __VA_ARGS__);                                                 \
	}

ATTRIBUTE(node_type, "1: CA\n")
ATTRIBUTE(fw_ver, "%s\n", facts->fw_ver)
ATTRIBUTE(hw_rev, "%x\n", facts->hw_ver)
ATTRIBUTE(model, "uroce\n")
ATTRIBUTE(device_uevent, "NAME=%s\n", facts->name)
ATTRIBUTE(class_link, "../../infiniband")
ATTRIBUTE(zero, "0\n")
ATTRIBUTE(lid, "0x0\n")
ATTRIBUTE(cap_mask, "0x%08x\n", facts->port_cap_flags)
ATTRIBUTE(link_layer, "Ethernet\n")
ATTRIBUTE(pkey, "0x%04x\n", facts->pkey)
ATTRIBUTE(gid_type, "RoCE v2\n")
ATTRIBUTE(pci_vendor, "0x%04x\n", facts->vendor_id &PCI_ID_MASK)
ATTRIBUTE(pci_device, "0x%04x\n", facts->vendor_part_id &PCI_ID_MASK)
ATTRIBUTE(pci_class, "0x020000\n")
ATTRIBUTE(pci_revision, "0x%02x\n", facts->hw_ver & 0xff)
ATTRIBUTE(pci_uevent, "DRIVER=uroce\n")
ATTRIBUTE(link_to_device, "../../../../infiniband/%s", facts->name)
ATTRIBUTE(link_to_verbs, "../../../../infiniband_verbs/uverbs%u", facts->number)
ATTRIBUTE(link_to_pci, "../../infiniband/%s/device", facts->name)
ATTRIBUTE(ibdev, "%s\n", facts->name)
ATTRIBUTE(one, "1\n")
ATTRIBUTE(verbs_abi, ABI_VERBS "\n")
ATTRIBUTE(verbs_device_abi, ABI_VERBS_DEVICE "\n")
ATTRIBUTE(cm_abi, ABI_CM "\n")
ATTRIBUTE(mad_abi, ABI_MAD "\n")
/* A device node of ours is a link to /dev/null, because the kernel has no such device. */
ATTRIBUTE(dev_node, "/dev/null")

static void node_guid(const struct view_facts *facts, uint32_t index __rte_unused, char *text,
		      size_t size)
{
	write_guid(facts->node_guid_be, text, size);
}

static void sys_image_guid(const struct view_facts *facts, uint32_t index __rte_unused, char *text,
			   size_t size)
{
	write_guid(facts->sys_image_guid_be, text, size);
}

/* Describe the node as rdma-ndd(8) does by default: by the host's name and the device's. */
static void node_desc(const struct view_facts *facts, uint32_t index __rte_unused, char *text,
		      size_t size)
{
	char host[VIEW_NAME_MAX] = "";

	if (gethostname(host, sizeof(host) - 1) != 0)
		host[0] = '\0';
	snprintf(text, size, "%s %s\n", host, facts->name);
}

static void state(const struct view_facts *facts, uint32_t index __rte_unused, char *text,
		  size_t size)
{
	static const char *const names[] = {
		[IBV_PORT_NOP] = "NOP",	      [IBV_PORT_DOWN] = "DOWN",
		[IBV_PORT_INIT] = "INIT",     [IBV_PORT_ARMED] = "ARMED",
		[IBV_PORT_ACTIVE] = "ACTIVE", [IBV_PORT_ACTIVE_DEFER] = "ACTIVE_DEFER",
	};

	snprintf(text, size, "%u: %s\n", facts->state,
		 facts->state < RTE_DIM(names) ? names[facts->state] : "UNKNOWN");
}

/* IBTA 14.2.5.6, PortInfo:PortPhysicalState. */
static void phys_state(const struct view_facts *facts, uint32_t index __rte_unused, char *text,
		       size_t size)
{
	static const char *const names[] = {"<unknown>",
					    "Sleep",
					    "Polling",
					    "Disabled",
					    "PortConfigurationTraining",
					    "LinkUp",
					    "LinkErrorRecovery",
					    "Phy Test"};

	snprintf(text, size, "%u: %s\n", facts->phys_state,
		 facts->phys_state < RTE_DIM(names) ? names[facts->phys_state] : names[0]);
}

/* IBTA 14.2.5.6: codes of LinkWidthActive and LinkSpeedActive. */
static void rate(const struct view_facts *facts, uint32_t index __rte_unused, char *text,
		 size_t size)
{
	static const struct {
		uint8_t speed;
		uint32_t lane_100mbps;
		const char *name;
	} speeds[] = {{1, 25, ""},	 {2, 50, " DDR"},   {4, 100, " QDR"},  {8, 100, " FDR10"},
		      {16, 140, " FDR"}, {32, 250, " EDR"}, {64, 500, " HDR"}, {128, 1000, " NDR"}};
	static const uint8_t lanes[] = {[1] = 1, [2] = 4, [4] = 8, [8] = 12, [16] = 2};
	const uint32_t width =
		facts->active_width < RTE_DIM(lanes) ? lanes[facts->active_width] : 0;
	uint32_t total;

	for (size_t i = 0; i < RTE_DIM(speeds); i++) {
		if (speeds[i].speed != facts->active_speed)
			continue;
		total = width * speeds[i].lane_100mbps;
		snprintf(text, size, "%u%s Gb/sec (%uX%s)\n", total / 10, total % 10 ? ".5" : "",
			 width, speeds[i].name);
		return;
	}
	snprintf(text, size, "0 Gb/sec (%uX)\n", width);
}

static void gid(const struct view_facts *facts, uint32_t index, char *text, size_t size)
{
	const uint8_t *raw = facts->gids[index].raw;
	size_t len = 0;

	for (int i = 0; i < 16; i += 2)
		len += (size_t)snprintf(text + len, size - len, "%s%02x%02x", i == 0 ? "" : ":",
					raw[i], raw[i + 1]);
	snprintf(text + len, size - len, "\n");
}

/* As in the kernel, reading the file of a GID without an interface fails. */
static void gid_ndev(const struct view_facts *facts, uint32_t index, char *text, size_t size)
{
	if (facts->gids[index].ndev[0] == '\0')
		text[0] = '\0';
	else
		snprintf(text, size, "%s\n", facts->gids[index].ndev);
}

static void net_link(const struct view_facts *facts, uint32_t index __rte_unused, char *text,
		     size_t size)
{
	if (facts->netdev[0] == '\0')
		text[0] = '\0';
	else
		snprintf(text, size, "/sys/class/net/%s", facts->netdev);
}

static void numa_node(const struct view_facts *facts, uint32_t index __rte_unused, char *text,
		      size_t size)
{
	topology_numa_node(facts->netdev, text, size);
}

static void local_cpulist(const struct view_facts *facts, uint32_t index __rte_unused, char *text,
			  size_t size)
{
	topology_cpulist(facts->netdev, text, size);
}

static void local_cpus(const struct view_facts *facts, uint32_t index __rte_unused, char *text,
		       size_t size)
{
	topology_cpus(facts->netdev, text, size);
}

static void node_numbers(char *text, size_t size)
{
	struct stat node;

	if (stat("/dev/null", &node) != 0)
		node.st_rdev = 0;
	snprintf(text, size, "%u:%u\n", major(node.st_rdev), minor(node.st_rdev));
}

static void dev(const struct view_facts *facts __rte_unused, uint32_t index __rte_unused,
		char *text, size_t size)
{
	node_numbers(text, size);
}

const struct attribute view_attributes[] = {
	{.path = DEVICE "/node_type", .write = node_type},
	{.path = DEVICE "/node_guid", .write = node_guid},
	{.path = DEVICE "/sys_image_guid", .write = sys_image_guid},
	{.path = DEVICE "/node_desc", .write = node_desc},
	{.path = DEVICE "/fw_ver", .write = fw_ver},
	{.path = DEVICE "/hw_rev", .write = hw_rev},
	{.path = DEVICE "/hca_type", .write = model},
	{.path = DEVICE "/board_id", .write = model},
	{.path = DEVICE "/uevent", .write = device_uevent},
	{.path = DEVICE "/subsystem", .write = class_link, .kind = ATTRIBUTE_LINK},

	{.path = PORT "/state", .write = state},
	{.path = PORT "/phys_state", .write = phys_state},
	{.path = PORT "/rate", .write = rate},
	{.path = PORT "/link_layer", .write = link_layer},
	{.path = PORT "/lid", .write = lid},
	{.path = PORT "/lid_mask_count", .write = zero},
	{.path = PORT "/sm_lid", .write = lid},
	{.path = PORT "/sm_sl", .write = zero},
	{.path = PORT "/cap_mask", .write = cap_mask},
	{.path = PORT "/pkeys/0", .write = pkey},
	{.path = PORT "/gids/%", .write = gid, .table = ATTRIBUTE_PER_GID},
	{.path = PORT "/gid_attrs/types/%", .write = gid_type, .table = ATTRIBUTE_PER_USED_GID},
	{.path = PORT "/gid_attrs/ndevs/%", .write = gid_ndev, .table = ATTRIBUTE_PER_USED_GID},

	{.path = PCI "/vendor", .write = pci_vendor},
	{.path = PCI "/device", .write = pci_device},
	{.path = PCI "/subsystem_vendor", .write = pci_vendor},
	{.path = PCI "/subsystem_device", .write = pci_device},
	{.path = PCI "/class", .write = pci_class},
	{.path = PCI "/revision", .write = pci_revision},
	{.path = PCI "/uevent", .write = pci_uevent},
	{.path = PCI "/numa_node", .write = numa_node},
	{.path = PCI "/local_cpus", .write = local_cpus},
	{.path = PCI "/local_cpulist", .write = local_cpulist},
	{.path = PCI "/infiniband/@", .write = link_to_device, .kind = ATTRIBUTE_LINK},
	{.path = PCI "/infiniband_verbs/uverbs#", .write = link_to_verbs, .kind = ATTRIBUTE_LINK},
	{.path = PCI "/net/!", .write = net_link, .kind = ATTRIBUTE_LINK},

	{.path = VERBS "/ibdev", .write = ibdev},
	{.path = VERBS "/dev", .write = dev},
	{.path = VERBS "/abi_version", .write = verbs_device_abi},
	{.path = VERBS "/device", .write = link_to_pci, .kind = ATTRIBUTE_LINK},

	{.path = MAD "/ibdev", .write = ibdev},
	{.path = MAD "/port", .write = one},
	{.path = MAD "/dev", .write = dev},
	{.path = MAD "/device", .write = link_to_pci, .kind = ATTRIBUTE_LINK},

	{.path = VIEW_DEV "/uverbs#", .write = dev_node, .kind = ATTRIBUTE_LINK},
	{.path = VIEW_DEV "/umad#", .write = dev_node, .kind = ATTRIBUTE_LINK},
};
const size_t view_attribute_count = RTE_DIM(view_attributes);

const struct attribute view_host_attributes[] = {
	{.path = VIEW_CLASS_VERBS "/abi_version", .write = verbs_abi},
	{.path = VIEW_CLASS_MAD "/abi_version", .write = mad_abi},
	{.path = VIEW_CLASS_CM "/abi_version", .write = cm_abi},
	{.path = VIEW_CLASS_CM "/dev", .write = dev},
	{.path = VIEW_DEV "/rdma_cm", .write = dev_node, .kind = ATTRIBUTE_LINK},
};
const size_t view_host_attribute_count = RTE_DIM(view_host_attributes);

#define PARTS_END COUNTER_COUNT

/* IBTA 16.1.3.5: data counters count units of four bytes. Counters that uroce does not have are
 * left out. */
const struct port_counter view_port_counters[] = {
	{"port_rcv_data", 4, {COUNTER_rx_bytes, PARTS_END}},
	{"port_xmit_data", 4, {COUNTER_tx_bytes, PARTS_END}},
	{"port_rcv_packets", 1, {COUNTER_rx_packets, PARTS_END}},
	{"port_xmit_packets", 1, {COUNTER_tx_packets, PARTS_END}},
	{"port_rcv_errors",
	 1,
	 {COUNTER_rx_malformed, COUNTER_rx_icrc_errors, COUNTER_rx_checksum_errors, PARTS_END}},
	{"port_xmit_discards",
	 1,
	 {COUNTER_tx_too_long, COUNTER_tx_unconnected, COUNTER_tx_refused, PARTS_END}},
	{"port_xmit_wait", 1, {COUNTER_tx_no_buffer, PARTS_END}},
};
static_assert(RTE_DIM(view_port_counters) == COUNTER_FILES_PORT, "each has a file");

int attribute_path(const char *pattern, const struct view_facts *facts, uint32_t index, char *path,
		   size_t size)
{
	size_t len = 0;
	int n;

	for (; *pattern != '\0'; pattern++) {
		if (*pattern == '@')
			n = snprintf(path + len, size - len, "%s", facts->name);
		else if (*pattern == '!')
			n = snprintf(path + len, size - len, "%s", facts->netdev);
		else if (*pattern == '#')
			n = snprintf(path + len, size - len, "%u", facts->number);
		else if (*pattern == '%')
			n = snprintf(path + len, size - len, "%u", index);
		else
			n = snprintf(path + len, size - len, "%c", *pattern);
		if (n < 0 || (size_t)n >= size - len)
			return -ENAMETOOLONG;
		len += (size_t)n;
	}
	return 0;
}
