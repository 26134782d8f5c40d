/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DPDK device arguments. rte_devargs_parse() needs the drivers, which are only loaded in the
 * program's process, so a driver's name and arguments are judged by form here, and by their meaning
 * there.
 */
#include "devargs.h"

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
#include <rte_kvargs.h>
#include <rte_pci.h>

#include "drivers.h"

#define PCI_CLASS_NETWORK 0x02

/* Kernel drivers that let DPDK have the device. */
static const char *const sharing_drivers[] = {
	"vfio-pci", "uio_pci_generic", "igb_uio", "mlx4_core", "mlx5_core", "mana",
};

/* Drivers of kernel interfaces that packets are taken from. */
static const char *const iface_drivers[] = {"net_af_packet", "net_af_xdp"};

/* What drivers cannot do without, and say so in no clear way. */
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

/* The device's name: what stands before the first comma, without the bus that may stand before it.
 */
static void devargs_name(const char *devargs, char *name, size_t size)
{
	if (strncmp(devargs, "vdev:", 5) == 0)
		devargs += 5;
	else if (strncmp(devargs, "pci:", 4) == 0)
		devargs += 4;
	snprintf(name, size, "%.*s", (int)strcspn(devargs, ","), devargs);
}

/* Items between commas are not empty and do not start with '='; commas in brackets belong to a
 * list. */
static bool devargs_items_are_sound(const char *devargs)
{
	const char *item = devargs;
	int depth = 0;

	for (const char *c = devargs;; c++) {
		depth += (*c == '[') - (*c == ']');
		if (depth < 0 || depth > 1)
			return false;
		if (*c == '\0' || (*c == ',' && depth == 0)) {
			if (c == item || *item == '=')
				return false;
			item = c + 1;
		}
		if (*c == '\0')
			return depth == 0;
	}
}

/* The highest byte of the class code of an open device directory, or -errno. */
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

/* `device` is the open directory of the device in sysfs. */
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
		return 0; /* nobody's: DPDK may have a way to it, and says so if not */
	target[len] = '\0';
	if (pci_driver_shares(basename(target)))
		return 0;
	snprintf(error, error_size,
		 "port: PCI device %s is in the hands of the kernel (%s); free it with "
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

/* What a driver's own list, as "key=<type> key=<type>", says behind that key; NULL if it is not
 * there. Not all lists have spaces between their items. */
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

/* Drivers refuse what they do not know without saying what it is, or ignore it, and others with it.
 */
static int argument_check(const char *name, const char *params, const char *argument, char *error,
			  size_t error_size)
{
	const size_t key_len = strcspn(argument, "=");
	char key[64];
	const char *type;

	snprintf(key, sizeof(key), "%.*s=", (int)key_len, argument);
	type = params_find(params, key, strlen(key));
	if (type == NULL) {
		snprintf(error, error_size, "port: %s takes no argument '%.*s'; it takes %s", name,
			 (int)key_len, argument, params);
		return -EINVAL;
	}
	if (argument[key_len] == '\0' || value_fits(type, argument + key_len + 1))
		return 0;
	snprintf(error, error_size, "port: %s takes '%.*s=%.*s', not '%s'", name, (int)key_len,
		 argument, (int)(type[0] == '<' ? strcspn(type, ">") + 1 : strlen("0|1")), type,
		 argument);
	return -EINVAL;
}

static int arguments_check(const char *devargs, const char *name, const char *params, char *error,
			   size_t error_size)
{
	char argument[256];
	int ret = 0;

	/* A list of another kind: net_failsafe's, whose items have brackets. */
	if (params[0] == '\0' || strstr(params, "(<") != NULL)
		return 0;
	for (const char *arg = strchr(devargs, ','); ret == 0 && arg != NULL;) {
		const char *start = arg + 1;
		int depth = 0;

		for (arg = start; *arg != '\0' && (*arg != ',' || depth > 0); arg++)
			depth += (*arg == '[') - (*arg == ']');
		snprintf(argument, sizeof(argument), "%.*s", (int)(arg - start), start);
		ret = argument_check(name, params, argument, error, error_size);
		if (*arg == '\0')
			break;
	}
	return ret;
}

static int needed_check(const char *devargs, const char *name, char *error, size_t error_size)
{
	char key[64];

	for (size_t i = 0; i < RTE_DIM(needed); i++) {
		if (strncmp(name, needed[i].driver, strlen(needed[i].driver)) != 0)
			continue;
		snprintf(key, sizeof(key), ",%s=", needed[i].key);
		if (strstr(devargs, key) != NULL)
			continue;
		snprintf(error, error_size, "port: %s needs %s", name, needed[i].meaning);
		return -EINVAL;
	}
	return 0;
}

static int virtual_check(const char *devargs, const char *name, const char *drivers, char *error,
			 size_t error_size)
{
	char params[512];
	int ret;

	if (if_nametoindex(name) != 0)
		return devargs_refuse(devargs, "is a kernel interface; use --netdev for it", error,
				      error_size);
	for (const char *c = name; *c != '\0'; c++)
		if (!isalnum((unsigned char)*c) && *c != '_')
			return devargs_refuse(devargs,
					      "starts with neither a driver's name, such as "
					      "net_memif0, nor a PCI address",
					      error, error_size);
	ret = drivers_find(drivers, name, params, sizeof(params));
	if (ret == 0)
		ret = arguments_check(devargs, name, params, error, error_size);
	if (ret == 0)
		ret = needed_check(devargs, name, error, error_size);
	if (ret != -ENOENT)
		return ret == -ENODATA ? 0 : ret;
	snprintf(error, error_size,
		 "port: there is no DPDK driver for '%s' in %s; names are like net_memif0 or "
		 "net_af_packet0",
		 name, drivers);
	return -ENODEV;
}

int devargs_check(const char *devargs, const char *pci_devices, const char *drivers, char *error,
		  size_t error_size)
{
	struct rte_pci_addr addr;
	char name[128];

	devargs_name(devargs, name, sizeof(name));
	if (!devargs_items_are_sound(devargs))
		return devargs_refuse(devargs, "is not of the form DRIVER,KEY=VALUE,...", error,
				      error_size);
	if (rte_pci_addr_parse(name, &addr) == 0)
		return pci_find_and_check(&addr, pci_devices, error, error_size);
	if (strchr(name, ':') != NULL)
		return devargs_refuse(devargs, "is not a PCI address, as 0000:00:04.0 is", error,
				      error_size);
	return virtual_check(devargs, name, drivers, error, error_size);
}

int devargs_find_iface(const char *devargs, char *iface, size_t iface_size, char *error,
		       size_t error_size)
{
	struct rte_kvargs *args;
	const char *value = NULL;
	char name[128];

	iface[0] = '\0';
	devargs_name(devargs, name, sizeof(name));
	if (!is_one_of(name, iface_drivers, RTE_DIM(iface_drivers)))
		return 0;
	args = rte_kvargs_parse(devargs + strcspn(devargs, ","), NULL);
	if (args != NULL)
		value = rte_kvargs_get(args, "iface");
	if (value != NULL)
		snprintf(iface, iface_size, "%s", value);
	rte_kvargs_free(args);
	if (iface[0] == '\0')
		return devargs_refuse(devargs, "needs iface=NAME, a kernel interface", error,
				      error_size);
	return 0;
}
