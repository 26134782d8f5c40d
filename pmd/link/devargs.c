/* SPDX-License-Identifier: BSD-3-Clause */
/* Taking device arguments apart, and adding what a driver needs for our frames. */
#include "link/devargs.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#define PCI_DOMAIN_0 "0000:"

/* "0000:00:04.0" or "00:04.0". */
static bool is_pci(const char *name)
{
	unsigned int domain, bus, device, function;
	int end = 0;

	if (sscanf(name, "%4x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &end) == 4 &&
	    name[end] == '\0')
		return true;
	end = 0;
	return sscanf(name, "%2x:%2x.%1x%n", &bus, &device, &function, &end) == 3 &&
	       name[end] == '\0';
}

/* EAL names the ports of PCI devices with their domain. */
static void pci_add_domain(char name[DEVARGS_NAME_MAX])
{
	unsigned int bus, device, function;

	if (strchr(name, ':') == strrchr(name, ':') &&
	    sscanf(name, "%2x:%2x.%1x", &bus, &device, &function) == 3)
		snprintf(name, DEVARGS_NAME_MAX, PCI_DOMAIN_0 "%02x:%02x.%x", bus, device,
			 function);
}

static const char *skip_prefix(const char *text, const char *prefix)
{
	const size_t len = strlen(prefix);

	return strncmp(text, prefix, len) == 0 ? text + len : NULL;
}

int devargs_parse(const char *text, struct devargs *devargs)
{
	const char *rest;
	size_t len;

	memset(devargs, 0, sizeof(*devargs));
	devargs->bus = DEVARGS_VDEV;
	rest = skip_prefix(text, "vdev:");
	if (!rest) {
		rest = skip_prefix(text, "pci:");
		if (rest)
			devargs->bus = DEVARGS_PCI;
		else
			rest = text;
	}
	len = strcspn(rest, ",");
	if (len == 0 || len >= sizeof(devargs->name)) {
		log_error("port '%s' names no device: give DPDK device arguments, like "
			  "net_memif0,role=server or 0000:00:04.0",
			  text);
		return -EINVAL;
	}
	memcpy(devargs->name, rest, len);
	if (is_pci(devargs->name)) {
		devargs->bus = DEVARGS_PCI;
		pci_add_domain(devargs->name);
	} else if (devargs->bus == DEVARGS_VDEV && rest == text && strchr(devargs->name, ':'))
		devargs->bus = DEVARGS_OTHER;
	if (devargs->bus == DEVARGS_PCI && !is_pci(devargs->name)) {
		log_error("'%s' is no PCI address: write it like 0000:00:04.0", devargs->name);
		return -EINVAL;
	}
	if (rest[len] == ',' && snprintf(devargs->args, sizeof(devargs->args), "%s",
					 rest + len + 1) >= (int)sizeof(devargs->args)) {
		log_error("the arguments of port '%s' are too long", devargs->name);
		return -EINVAL;
	}
	return 0;
}

bool devargs_is(const struct devargs *devargs, const char *driver)
{
	const char *number = skip_prefix(devargs->name, driver);

	if (devargs->bus != DEVARGS_VDEV || !number)
		return false;
	while (isdigit((unsigned char)*number))
		number++;
	return *number == '\0';
}

static const char *devargs_find(const struct devargs *devargs, const char *key, size_t *len)
{
	const size_t key_len = strlen(key);
	const char *arg = devargs->args;

	for (;;) {
		*len = strcspn(arg, ",");
		if (*len > key_len && arg[key_len] == '=' && strncmp(arg, key, key_len) == 0) {
			*len -= key_len + 1;
			return arg + key_len + 1;
		}
		if (arg[*len] == '\0')
			return NULL;
		arg += *len + 1;
	}
}

bool devargs_get(const struct devargs *devargs, const char *key, char *value, size_t size)
{
	size_t len;
	const char *found = devargs_find(devargs, key, &len);

	if (!found || len >= size)
		return false;
	memcpy(value, found, len);
	value[len] = '\0';
	return true;
}

bool devargs_find_other(const struct devargs *devargs, const char *const *known, size_t count,
			char *key, size_t size)
{
	for (const char *arg = devargs->args; *arg != '\0';) {
		const size_t key_len = strcspn(arg, "=,");
		size_t i;

		for (i = 0; i < count; i++) {
			if (strlen(known[i]) == key_len && strncmp(known[i], arg, key_len) == 0)
				break;
		}
		if (i == count) {
			snprintf(key, size, "%.*s", (int)key_len, arg);
			return true;
		}
		arg += strcspn(arg, ",");
		arg += *arg == ',';
	}
	return false;
}

int devargs_get_number(const struct devargs *devargs, const char *key, unsigned long *number)
{
	size_t len;
	const char *value = devargs_find(devargs, key, &len);
	unsigned long read;
	char *end;

	if (!value)
		return 0;
	errno = 0;
	read = strtoul(value, &end, 10);
	/* strtoul() itself would take blanks and signs. */
	if (!isdigit((unsigned char)*value) || end != value + len || errno != 0) {
		log_error("port '%s': %s is a number, not '%.*s'", devargs->name, key, (int)len,
			  value);
		return -EINVAL;
	}
	*number = read;
	return 0;
}

int devargs_default(struct devargs *devargs, const char *key, const char *value)
{
	const size_t used = strlen(devargs->args);
	size_t len;
	int more;

	if (devargs_find(devargs, key, &len))
		return 0;
	more = snprintf(devargs->args + used, sizeof(devargs->args) - used, "%s%s=%s",
			used ? "," : "", key, value);
	if (more >= (int)(sizeof(devargs->args) - used)) {
		devargs->args[used] = '\0';
		return -ENOSPC;
	}
	return 0;
}
