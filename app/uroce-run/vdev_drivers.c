/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the driver of a virtual device among the descriptions of DPDK's drivers. */
#include "vdev_drivers.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

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
