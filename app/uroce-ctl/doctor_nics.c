/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks PCI NICs: which driver has each of them, and whether DPDK can use it. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "doctor.h"
#include "config/drivers.h"

#define DEVICES	      "/sys/bus/pci/devices"
#define CLASS_NETWORK 0x02
#define ID_ANY	      0xffff

struct nic {
	const char *address;
	uint32_t vendor, device;
	char kernel_driver[64];
	char dpdk_driver[64]; /* "": no installed driver knows the NIC */
	bool needs_verbs;     /* that driver works beside the kernel's, by rdma-core */
	char iface[64];	      /* "": no interface of it is in this network namespace */
	bool in_use;	      /* the kernel uses one of its interfaces: that is `iface` */
};

/* Kernel drivers that leave the NIC to a program. */
static const char *const giving[] = {"vfio-pci", "uio_pci_generic", "igb_uio"};

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(name, names[i]) == 0)
			return true;
	}
	return false;
}

/* Stop at the driver whose list has this NIC: "pci_ids": [[vendor, device, any, any], ...]. */
static bool look(void *arg, const char *description)
{
	struct nic *nic = arg;
	const char *at = strstr(description, "\"pci_ids\": [");
	unsigned int vendor, device;
	int used = 0; /* stays 0 if an entry is incomplete */

	at = at ? strchr(at, '[') + 1 : "";
	while (sscanf(at, " [%u, %u, %*u, %*u]%n", &vendor, &device, &used) == 2 && used > 0) {
		if (vendor == nic->vendor && (device == nic->device || device == ID_ANY)) {
			nic->needs_verbs = strstr(description, "ib_uverbs") != NULL;
			return sscanf(description, "{\"name\": \"%63[^\"]", nic->dpdk_driver) != 1;
		}
		at += used;
		at += *at == ',';
		used = 0;
	}
	return true;
}

/* Return true if a line of the routing table is of the interface. Every host has link-local and
 * multicast routes. */
static bool has_route(const struct doctor *doctor, const char *table, const char *iface)
{
	FILE *file = doctor_open(doctor, table);
	bool found = false;
	char line[256];

	while (file && !found && fgets(line, sizeof(line), file)) {
		char *rest = line, *word;

		while ((word = strsep(&rest, " \t\n")) != NULL && !found)
			found = strcmp(word, iface) == 0 && strncmp(line, "fe80", 4) != 0 &&
				strncmp(line, "ff", 2) != 0;
	}
	if (file)
		fclose(file);
	return found;
}

/* Return true if the interface is part of another one: of a bridge, a bond, a VLAN. */
static bool has_upper(const struct doctor *doctor, const char *iface)
{
	char path[128], **names;
	bool found = false;
	size_t count;

	snprintf(path, sizeof(path), "/sys/class/net/%s", iface);
	count = doctor_list(doctor, path, &names);
	for (size_t i = 0; i < count; i++)
		found |= strncmp(names[i], "upper_", 6) == 0 || strcmp(names[i], "master") == 0;
	doctor_list_free(names, count);
	return found;
}

/* Take an interface of the NIC. A PCI function may have several. */
static void take_iface(const struct doctor *doctor, struct nic *nic, const char *iface)
{
	const bool in_use = has_route(doctor, "/proc/net/route", iface) ||
			    has_route(doctor, "/proc/net/ipv6_route", iface) ||
			    has_upper(doctor, iface);

	if (nic->iface[0] == '\0' || (in_use && !nic->in_use))
		snprintf(nic->iface, sizeof(nic->iface), "%s", iface);
	nic->in_use |= in_use;
}

/* Find the kernel's interfaces on the NIC. That of a virtio NIC is one level lower. */
static void find_ifaces(const struct doctor *doctor, struct nic *nic)
{
	char path[256], **names;
	size_t count;

	snprintf(path, sizeof(path), DEVICES "/%s", nic->address);
	count = doctor_list(doctor, path, &names);
	for (size_t i = 0; i < count; i++) {
		char **ifaces;
		size_t found = 0;

		if (strncmp(names[i], "virtio", 6) == 0)
			snprintf(path, sizeof(path), DEVICES "/%s/%s/net", nic->address, names[i]);
		else if (strcmp(names[i], "net") == 0)
			snprintf(path, sizeof(path), DEVICES "/%s/net", nic->address);
		else
			continue;
		found = doctor_list(doctor, path, &ifaces);
		for (size_t j = 0; j < found; j++)
			take_iface(doctor, nic, ifaces[j]);
		doctor_list_free(ifaces, found);
	}
	doctor_list_free(names, count);
}

static bool is_nic(const struct doctor *doctor, const char *address)
{
	return doctor_number(doctor, 0, DEVICES "/%s/class", address) >> 16 == CLASS_NETWORK;
}

static bool look_at_nic(const struct doctor *doctor, const char *address, struct nic *nic)
{
	*nic = (struct nic){.address = address};
	if (!is_nic(doctor, address))
		return false;
	nic->vendor = (uint32_t)doctor_number(doctor, 0, DEVICES "/%s/vendor", address);
	nic->device = (uint32_t)doctor_number(doctor, 0, DEVICES "/%s/device", address);
	doctor_link(doctor, nic->kernel_driver, sizeof(nic->kernel_driver), DEVICES "/%s/driver",
		    address);
	find_ifaces(doctor, nic);
	drivers_each(doctor->host->drivers, look, nic);
	nic->needs_verbs |= drivers_need_verbs(nic->kernel_driver);
	return true;
}

/* Return why nobody should take the NIC from the kernel, or NULL. */
static const char *why_keep(const struct nic *nic, size_t nics)
{
	if (nic->kernel_driver[0] == '\0')
		return NULL;
	if (nics == 1)
		return "this host's only NIC";
	/* sysfs shows the interfaces of one network namespace. */
	if (nic->iface[0] == '\0')
		return "its interface may be in another network namespace";
	return nic->in_use ? "in use by the kernel" : NULL;
}

/* Say how a NIC is used that only its kernel driver can serve. */
static void use_netdev(const struct nic *nic, char change[256])
{
	if (nic->iface[0] != '\0')
		snprintf(change, 256, "use --netdev %s", nic->iface);
	else
		snprintf(change, 256,
			 "give it to its kernel driver, and use --netdev with its interface");
}

static void tell_nic(const struct doctor *doctor, const struct nic *nic, size_t nics)
{
	const char *keep = why_keep(nic, nics);
	const bool bound = nic->kernel_driver[0] != '\0';
	char change[256];

	use_netdev(nic, change);
	if (nic->dpdk_driver[0] == '\0') {
		doctor_tell(doctor, "nic", nic->address, change,
			    "%04" PRIx32 ":%04" PRIx32 ", driver %s: no installed DPDK driver "
			    "knows it",
			    nic->vendor, nic->device, bound ? nic->kernel_driver : "none");
	} else if (nic->needs_verbs) {
		doctor_tell(doctor, "nic", nic->address, change,
			    "%04" PRIx32 ":%04" PRIx32
			    ", driver %s: not for --port: DPDK's %s needs rdma-core's libibverbs, "
			    "which uroce's replaces",
			    nic->vendor, nic->device, bound ? nic->kernel_driver : "none",
			    nic->dpdk_driver);
	} else if (is_one_of(nic->kernel_driver, giving, RTE_DIM(giving))) {
		doctor_tell(doctor, "nic", nic->address, NULL,
			    "%04" PRIx32 ":%04" PRIx32
			    ", driver %s: ready for --port %s, by DPDK's %s",
			    nic->vendor, nic->device, nic->kernel_driver, nic->address,
			    nic->dpdk_driver);
	} else if (keep) {
		doctor_tell(doctor, "nic", nic->address, NULL,
			    "%04" PRIx32 ":%04" PRIx32
			    ", driver %s, %s%s: %s, so leave it there%s%s",
			    nic->vendor, nic->device, nic->kernel_driver,
			    nic->iface[0] ? "interface " : "no interface here", nic->iface, keep,
			    nic->iface[0] ? ": --netdev " : "", nic->iface);
	} else {
		/* A function may have a second interface, which sysfs shows in its own network
		 * namespace only. */
		doctor_tell(
			doctor, "nic", nic->address, NULL,
			"%04" PRIx32 ":%04" PRIx32 ", driver %s, %s%s: DPDK's %s could take it "
			"from the kernel%s (dpdk-devbind.py -b vfio-pci %s)",
			nic->vendor, nic->device, bound ? nic->kernel_driver : "none",
			nic->iface[0] ? "interface " : "no interface", nic->iface, nic->dpdk_driver,
			nic->iface[0] ? ", with all its interfaces in any network namespace" : "",
			nic->address);
	}
}

static void check_iommu(const struct doctor *doctor, size_t nics)
{
	char **groups, unsafe[8];
	const size_t count = doctor_list(doctor, "/sys/kernel/iommu_groups", &groups);

	doctor_list_free(groups, count);
	doctor_read(doctor, unsafe, sizeof(unsafe),
		    "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode");
	if (count > 0)
		doctor_tell(doctor, "iommu", "", NULL,
			    "%zu groups: with vfio-pci a NIC can access only its program's memory",
			    count);
	else if (nics == 0)
		doctor_tell(doctor, "iommu", "", NULL, "none, and no PCI NIC that needs it");
	else if (unsafe[0] == 'Y')
		doctor_tell(doctor, "iommu", "",
			    "enable it in the firmware, and boot with intel_iommu=on iommu=pt "
			    "(AMD: iommu=pt)",
			    "none: vfio-pci works (unsafe mode), but a NIC can access all memory");
	else
		doctor_tell(
			doctor, "iommu", "",
			"enable it in the firmware, and boot with intel_iommu=on iommu=pt (AMD: "
			"iommu=pt); else use uio_pci_generic",
			"none: vfio-pci cannot take a NIC");
}

void doctor_nics(const struct doctor *doctor)
{
	char **names;
	const size_t count = doctor_list(doctor, DEVICES, &names);
	size_t nics = 0;
	struct nic nic;

	for (size_t i = 0; i < count; i++)
		nics += is_nic(doctor, names[i]);
	for (size_t i = 0; i < count; i++) {
		if (look_at_nic(doctor, names[i], &nic))
			tell_nic(doctor, &nic, nics);
	}
	doctor_list_free(names, count);
	check_iommu(doctor, nics);
}
