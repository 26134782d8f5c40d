/* SPDX-License-Identifier: BSD-3-Clause */
/* Device arguments. Drivers are loaded only in the program's process, so uroce-run checks only the
 * form of a driver's name and arguments. The program's process checks their meaning. */
#include "run_devargs.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_pci.h>

#include "config/devargs.h"
#include "config/drivers.h"

static const char name_start[] = "{\"name\": \"";
static const char params_start[] = "\"params\": \"";
static const char virtual_mark[] = "\"pci_ids\": []";

/* Prefix of older names of some drivers. The descriptions do not contain these names. */
static const char alias_prefix[] = "eth_";

/* A search: the device, and the buffer for the parameters of its driver. */
struct search {
	const char *device;
	char *params;
	size_t params_size;
	bool found;
};

/* Copy the value of "params" out of a description. */
static void copy_params(const char *description, struct search *search)
{
	const char *start = strstr(description, params_start);
	size_t len;

	if (start == NULL)
		return;
	start += sizeof(params_start) - 1;
	len = strcspn(start, "\"");
	if (len >= search->params_size)
		return;
	memcpy(search->params, start, len);
	search->params[len] = '\0';
}

/* Return false, to stop, at the device's driver. By DPDK's rule a driver takes the devices whose
 * name starts with its own name. */
static bool look(void *arg, const char *description)
{
	struct search *search = arg;
	const char *name = description + sizeof(name_start) - 1;

	if (strncmp(description, name_start, sizeof(name_start) - 1) != 0)
		return true;
	search->found = strncmp(name, search->device, strcspn(name, "\"")) == 0 &&
			strstr(name, virtual_mark) != NULL;
	if (search->found)
		copy_params(name, search);
	return !search->found;
}

int vdev_drivers_find(const char *dir, const char *device, char *params, size_t params_size)
{
	struct search search = {.device = device, .params = params, .params_size = params_size};
	unsigned int count;

	params[0] = '\0';
	if (strncmp(device, alias_prefix, sizeof(alias_prefix) - 1) == 0)
		return -ENODATA;
	count = drivers_each(dir, look, &search);
	if (search.found)
		return 0;
	return count > 0 ? -ENOENT : -ENODATA;
}

#define PCI_CLASS_NETWORK 0x02
#define MEMIF		  "net_memif"

/* Kernel drivers that leave the device to a program. */
static const char *const sharing_drivers[] = {
	"vfio-pci",
	"uio_pci_generic",
	"igb_uio",
};

/* DPDK drivers that take packets from a kernel interface. */
static const char *const iface_drivers[] = {"net_af_packet", "net_af_xdp"};

/* Arguments that drivers require, but whose absence they do not report clearly. */
static const struct {
	const char *driver, *key, *meaning;
} needed[] = {
	{"net_vhost", "iface", "iface=PATH, a socket"},
	{"net_virtio_user", "path", "path=PATH, a socket or /dev/vhost-net"},
};

static bool is_one_of(const char *name, const char *const *drivers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strncmp(name, drivers[i], strlen(drivers[i])) == 0)
			return true;
	return false;
}

/* Return the highest byte of the PCI class code, or -errno. `device` is the open directory of the
 * device in sysfs. */
static int pci_class(int device)
{
	char text[16];
	ssize_t len;
	int fd;

	fd = openat(device, "class", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (len < 0)
		return -EIO;
	text[len] = '\0';
	return (int)(strtoul(text, NULL, 16) >> 16);
}

static bool pci_driver_shares(const char *driver)
{
	for (size_t i = 0; i < RTE_DIM(sharing_drivers); i++)
		if (strcmp(driver, sharing_drivers[i]) == 0)
			return true;
	return false;
}

/* Check that DPDK can use a PCI device. `device` is its open directory in sysfs. */
static int pci_check(int device, const char *name, char *error, size_t error_size)
{
	char target[PATH_MAX];
	ssize_t len;

	if (pci_class(device) != PCI_CLASS_NETWORK) {
		snprintf(error, error_size, "port: PCI device %s is not a network device", name);
		return -ENODEV;
	}
	len = readlinkat(device, "driver", target, sizeof(target) - 1);
	if (len < 0)
		return 0; /* no kernel driver: DPDK may have access, and reports it if not */
	target[len] = '\0';
	if (pci_driver_shares(basename(target)))
		return 0;
	if (drivers_need_verbs(basename(target))) {
		snprintf(error, error_size,
			 "port: PCI device %s (%s) cannot be a port: DPDK drives it through "
			 "rdma-core's libibverbs, which uroce's replaces; use its interface, with "
			 "--netdev",
			 name, basename(target));
		return -EOPNOTSUPP;
	}
	snprintf(error, error_size,
		 "port: PCI device %s is used by the kernel (%s); free it with "
		 "'dpdk-devbind.py -b vfio-pci %s', or use --netdev",
		 name, basename(target), name);
	return -EBUSY;
}

static int pci_find_and_check(const struct rte_pci_addr *addr, const char *pci_devices, char *error,
			      size_t error_size)
{
	char name[PCI_PRI_STR_SIZE], path[PATH_MAX];
	int device, ret;

	rte_pci_device_name(addr, name, sizeof(name));
	snprintf(path, sizeof(path), "%s/%s", pci_devices, name);
	device = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (device < 0) {
		snprintf(error, error_size,
			 "port: there is no PCI device %s; see 'dpdk-devbind.py --status'", name);
		return -ENODEV;
	}
	ret = pci_check(device, name, error, error_size);
	close(device);
	return ret;
}

static int devargs_refuse(const char *devargs, const char *why, char *error, size_t error_size)
{
	snprintf(error, error_size, "port: '%s' %s", devargs, why);
	return -EINVAL;
}

/* Return the text after a key in a driver's own list, such as "key=<type> key=<type>", or NULL if
 * the list lacks the key. Some lists have no spaces between their items. */
static const char *params_find(const char *params, const char *key, size_t key_len)
{
	const char *found = NULL;

	for (const char *c = params; (c = strstr(c, key)) != NULL; c++) {
		found = c + key_len;
		if (c == params || c[-1] == ' ')
			break;
	}
	return found;
}

static bool value_fits(const char *type, const char *value)
{
	const bool is_flag = strncmp(type, "0|1", 3) == 0 || strncmp(type, "<0|1>", 5) == 0;
	char *end;

	if (!is_flag && strncmp(type, "<int>", 5) != 0)
		return true;
	if (!isdigit((unsigned char)value[0]) ||
	    strtoull(value, &end, 0) > (is_flag ? 1 : UINT_MAX))
		return false;
	return *end == '\0';
}

/* The state of a check of arguments against the list of a driver. */
struct argument_check {
	const char *name;   /* of the device */
	const char *params; /* the driver's list */
	char *error;
	size_t error_size;
};

/* Return true if the driver can parse a value. DPDK's parser takes a second '=' as the end of
 * another key. Our own parser reads the arguments of memif ports. */
static bool is_understood(const char *device, const char *value)
{
	return strchr(value, '=') == NULL || strncmp(device, MEMIF, strlen(MEMIF)) == 0;
}

/* Check one argument. Drivers reject unknown arguments without naming them, or ignore them together
 * with other arguments. */
static int argument_check(const char *key, const char *value, void *arg)
{
	const struct argument_check *check = arg;
	char wanted[64];
	const char *type;

	snprintf(wanted, sizeof(wanted), "%s=", key);
	type = params_find(check->params, wanted, strlen(wanted));
	if (type == NULL) {
		snprintf(check->error, check->error_size,
			 "port: %s takes no argument '%s'; it takes %s", check->name, key,
			 check->params);
		return -EINVAL;
	}
	if (value != NULL && !is_understood(check->name, value)) {
		snprintf(check->error, check->error_size,
			 "port: %s takes no value with '=' in it, as '%s=%s' has", check->name, key,
			 value);
		return -EINVAL;
	}
	if (value == NULL || value_fits(type, value))
		return 0;
	snprintf(check->error, check->error_size, "port: %s takes '%s=%.*s', not '%s=%s'",
		 check->name, key, (int)(type[0] == '<' ? strcspn(type, ">") + 1 : strlen("0|1")),
		 type, key, value);
	return -EINVAL;
}

static int arguments_check(const struct devargs *devargs, const char *params, char *error,
			   size_t error_size)
{
	struct argument_check check = {devargs->name, params, error, error_size};

	/* Skip the list of net_failsafe, which has another form, with brackets around its items. */
	if (params[0] == '\0' || strstr(params, "(<") != NULL)
		return 0;
	return devargs_each(devargs, argument_check, &check);
}

static int needed_check(const struct devargs *devargs, char *error, size_t error_size)
{
	char value[DEVARGS_TEXT_MAX];

	for (size_t i = 0; i < RTE_DIM(needed); i++) {
		if (!devargs_is(devargs, needed[i].driver) ||
		    devargs_get(devargs, needed[i].key, value, sizeof(value)))
			continue;
		snprintf(error, error_size, "port: %s needs %s", devargs->name, needed[i].meaning);
		return -EINVAL;
	}
	return 0;
}

static int virtual_check(const struct devargs *devargs, const char *drivers, char *error,
			 size_t error_size)
{
	const char *name = devargs->name;
	char params[512];
	int ret;

	if (if_nametoindex(name) != 0)
		return devargs_refuse(name, "is a kernel interface; use --netdev for it", error,
				      error_size);
	for (const char *c = name; *c != '\0'; c++)
		if (!isalnum((unsigned char)*c) && *c != '_')
			return devargs_refuse(name,
					      "starts with neither a driver's name, such as "
					      "net_memif0, nor a PCI address",
					      error, error_size);
	ret = vdev_drivers_find(drivers, name, params, sizeof(params));
	if (ret == 0)
		ret = arguments_check(devargs, params, error, error_size);
	if (ret == 0)
		ret = needed_check(devargs, error, error_size);
	if (ret != -ENOENT)
		return ret == -ENODATA ? 0 : ret;
	snprintf(error, error_size,
		 "port: there is no DPDK driver for '%s' in %s; names are like net_memif0 or "
		 "net_af_packet0",
		 name, drivers);
	return -ENODEV;
}

int devargs_check(const char *text, const char *pci_devices, const char *drivers, char *error,
		  size_t error_size)
{
	struct devargs devargs;
	struct rte_pci_addr addr;
	int ret;

	ret = devargs_read(text, &devargs, error, error_size);
	if (ret != 0)
		return ret;
	if (devargs.bus == DEVARGS_PCI && rte_pci_addr_parse(devargs.name, &addr) == 0)
		return pci_find_and_check(&addr, pci_devices, error, error_size);
	if (strchr(devargs.name, ':') != NULL)
		return devargs_refuse(text, "is not a PCI address, as 0000:00:04.0 is", error,
				      error_size);
	return virtual_check(&devargs, drivers, error, error_size);
}

int devargs_find_iface(const char *text, char *iface, size_t iface_size, char *error,
		       size_t error_size)
{
	struct devargs devargs;
	int ret;

	iface[0] = '\0';
	ret = devargs_read(text, &devargs, error, error_size);
	if (ret != 0 || !is_one_of(devargs.name, iface_drivers, RTE_DIM(iface_drivers)))
		return ret;
	if (!devargs_get(&devargs, "iface", iface, iface_size) || iface[0] == '\0')
		return devargs_refuse(text, "needs iface=NAME, a kernel interface", error,
				      error_size);
	return 0;
}
