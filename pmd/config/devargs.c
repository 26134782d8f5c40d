/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses device arguments, and adds those that a driver needs for our frames. */
#include "config/devargs.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_kvargs.h>
#include <rte_pci.h>

#include "base/log.h"

#define ERROR_MAX 512

static const char *skip_prefix(const char *text, const char *prefix)
{
	const size_t len = strlen(prefix);

	return strncmp(text, prefix, len) == 0 ? text + len : NULL;
}

/* Return the end of an item: a comma that is not in brackets, or the end of the text. */
static const char *item_end(const char *item)
{
	int depth = 0;

	for (; *item != '\0' && (*item != ',' || depth > 0); item++)
		depth += (*item == '[') - (*item == ']');
	return item;
}

/* Return true if the items are well-formed. Empty items and brackets that do not match are a user's
 * mistakes, but rte_kvargs, with which drivers parse the text, accepts both. */
static bool items_are_sound(const char *text)
{
	const char *item = text;
	int depth = 0;

	for (const char *c = text;; c++) {
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

static int refuse(const char *text, const char *why, char *error, size_t error_size)
{
	snprintf(error, error_size, "port: '%s' %s", text, why);
	return -EINVAL;
}

/* Parse a PCI address, and write the name with its domain, because EAL names ports of PCI devices
 * so. */
static bool read_pci(struct devargs *devargs)
{
	struct rte_pci_addr addr;

	if (rte_pci_addr_parse(devargs->name, &addr) != 0)
		return false;
	devargs->bus = DEVARGS_PCI;
	rte_pci_device_name(&addr, devargs->name, sizeof(devargs->name));
	return true;
}

static int count_one(const char *key, const char *value, void *arg)
{
	unsigned int *count = arg;

	(void)key, (void)value;
	return ++*count > RTE_KVARGS_MAX;
}

int devargs_read(const char *text, struct devargs *devargs, char *error, size_t error_size)
{
	const char *vdev = skip_prefix(text, "vdev:"), *pci = skip_prefix(text, "pci:");
	const char *rest = vdev ? vdev : pci ? pci : text;
	const size_t len = strcspn(rest, ",");
	unsigned int count = 0;

	memset(devargs, 0, sizeof(*devargs));
	devargs->bus = DEVARGS_VDEV;
	if (!items_are_sound(rest))
		return refuse(text,
			      "is not of the form DRIVER,KEY=VALUE,..., like "
			      "net_memif0,role=server or 0000:00:04.0",
			      error, error_size);
	if (len >= sizeof(devargs->name))
		return refuse(text, "has too long a device name", error, error_size);
	memcpy(devargs->name, rest, len);
	if (!read_pci(devargs) && pci)
		return refuse(devargs->name, "is not a PCI address, as 0000:00:04.0 is", error,
			      error_size);
	if (devargs->bus == DEVARGS_VDEV && !vdev && strchr(devargs->name, ':'))
		devargs->bus = DEVARGS_OTHER;
	if (rest[len] == ',' && snprintf(devargs->args, sizeof(devargs->args), "%s",
					 rest + len + 1) >= (int)sizeof(devargs->args))
		return refuse(devargs->name, "has arguments that are too long", error, error_size);
	/* rte_kvargs, with which the driver parses them, has this limit. */
	if (devargs_each(devargs, count_one, &count) != 0)
		return refuse(devargs->name, "has too many arguments", error, error_size);
	return 0;
}

int devargs_parse(const char *text, struct devargs *devargs)
{
	char error[ERROR_MAX];
	const int rc = devargs_read(text, devargs, error, sizeof(error));

	if (rc != 0)
		log_error("%s", error);
	return rc;
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

int devargs_each(const struct devargs *devargs,
		 int (*each)(const char *key, const char *value, void *arg), void *arg)
{
	char text[DEVARGS_TEXT_MAX];
	char *item = text;
	int rc = 0;

	memcpy(text, devargs->args, sizeof(text));
	while (*item != '\0' && rc == 0) {
		char *end = item + (item_end(item) - item);
		char *next = *end == '\0' ? end : end + 1;
		char *value;

		*end = '\0';
		value = strchr(item, '=');
		if (value)
			*value++ = '\0';
		rc = each(item, value, arg);
		item = next;
	}
	return rc;
}

/* A search for one argument. */
struct search {
	const char *key;
	bool found, has_value;
	char value[DEVARGS_TEXT_MAX];
};

static int search_match(const char *key, const char *value, void *arg)
{
	struct search *search = arg;

	if (strcmp(key, search->key) != 0)
		return 0;
	search->found = true;
	search->has_value = value != NULL;
	/* The copy cannot be truncated: it is a part of a text of this size. */
	if (value)
		snprintf(search->value, sizeof(search->value), "%s", value);
	return 1;
}

static bool devargs_find(const struct devargs *devargs, struct search *search)
{
	return devargs_each(devargs, search_match, search) == 1 && search->found;
}

bool devargs_get(const struct devargs *devargs, const char *key, char *value, size_t size)
{
	struct search search = {.key = key};

	if (!devargs_find(devargs, &search) || !search.has_value || strlen(search.value) >= size)
		return false;
	memcpy(value, search.value, strlen(search.value) + 1);
	return true;
}

int devargs_get_number(const struct devargs *devargs, const char *key, unsigned long *number)
{
	struct search search = {.key = key};
	unsigned long read;
	char *end;

	if (!devargs_find(devargs, &search))
		return 0;
	errno = 0;
	read = strtoul(search.value, &end, 10);
	/* Check the first character, because strtoul() also accepts blanks and signs. */
	if (!isdigit((unsigned char)search.value[0]) || *end != '\0' || errno != 0) {
		log_error("port '%s': %s must be a number, not '%s'", devargs->name, key,
			  search.value);
		return -EINVAL;
	}
	*number = read;
	return 0;
}

int devargs_default(struct devargs *devargs, const char *key, const char *value)
{
	struct search search = {.key = key};
	const size_t used = strlen(devargs->args);
	int more;

	if (devargs_find(devargs, &search))
		return 0;
	more = snprintf(devargs->args + used, sizeof(devargs->args) - used, "%s%s=%s",
			used ? "," : "", key, value);
	if (more >= (int)(sizeof(devargs->args) - used)) {
		devargs->args[used] = '\0';
		return -ENOSPC;
	}
	return 0;
}
