/* SPDX-License-Identifier: BSD-3-Clause */
/* Every DPDK driver contains a string that describes it, for tools such as dpdk-pmdinfo.py. A
 * search for these strings takes a hundredth of the time that it takes to load all drivers. */
#include "vdev_drivers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBRARY_PREFIX "librte_net_"

static const char description_start[] = "PMD_INFO_STRING= {\"name\": \"";
static const char params_start[] = "\"params\": \"";
static const char virtual_mark[] = "\"pci_ids\": []";

/* Prefix of the older second names of drivers, which have no description. */
static const char alias_prefix[] = "eth_";

/* Result of a search in one file for the device's driver. */
enum finding {
	FINDING_NOTHING, /* the file has no description */
	FINDING_OTHERS,
	FINDING_DRIVER,
};

/* A search: the device, and the buffer for the parameters of its driver. */
struct search {
	const char *device;
	char *params;
	size_t params_size;
};

/* Copy the value of "params" out of a description, which ends at a NUL. */
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

/* Return true if a description is that of the device's driver. DPDK's rule: a driver takes the
 * devices whose name starts with its own name. */
static bool describes(const char *text, size_t len, const char *device)
{
	const char *end = memchr(text, '\0', len);
	const char *quote = memchr(text, '"', len);

	if (quote == NULL || end == NULL || quote > end)
		return false;
	return strncmp(text, device, (size_t)(quote - text)) == 0 &&
	       strstr(quote, virtual_mark) != NULL;
}

static enum finding search_bytes(const char *text, size_t len, struct search *search)
{
	const size_t start_len = sizeof(description_start) - 1;
	enum finding finding = FINDING_NOTHING;
	const char *found;

	while ((found = memmem(text, len, description_start, start_len)) != NULL) {
		finding = FINDING_OTHERS;
		len -= (size_t)(found - text) + start_len;
		text = found + start_len;
		if (describes(text, len, search->device)) {
			copy_params(text, search);
			return FINDING_DRIVER;
		}
	}
	return finding;
}

static enum finding search_file(int dir, const char *name, struct search *search)
{
	enum finding finding = FINDING_NOTHING;
	struct stat status;
	void *bytes;
	int fd;

	/* A library has several names. Only one is a regular file; O_NOFOLLOW skips the symbolic
	 * links. */
	fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return FINDING_NOTHING;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
		bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (bytes != MAP_FAILED) {
			finding = search_bytes(bytes, (size_t)status.st_size, search);
			munmap(bytes, (size_t)status.st_size);
		}
	}
	close(fd);
	return finding;
}

int vdev_drivers_find(const char *dir, const char *device, char *params, size_t params_size)
{
	struct search search = {device, params, params_size};
	enum finding best = FINDING_NOTHING, finding;
	const struct dirent *entry;
	DIR *stream;

	params[0] = '\0';
	if (strncmp(device, alias_prefix, sizeof(alias_prefix) - 1) == 0)
		return -ENODATA;
	stream = opendir(dir);
	if (stream == NULL)
		return -ENODATA;
	while (best != FINDING_DRIVER && (entry = readdir(stream)) != NULL) {
		if (strncmp(entry->d_name, LIBRARY_PREFIX, sizeof(LIBRARY_PREFIX) - 1) != 0)
			continue;
		finding = search_file(dirfd(stream), entry->d_name, &search);
		if (finding > best)
			best = finding;
	}
	closedir(stream);
	switch (best) {
	case FINDING_DRIVER:
		return 0;
	case FINDING_OTHERS:
		return -ENOENT;
	default:
		return -ENODATA;
	}
}
