/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every DPDK driver carries a description of itself as a string, for tools such as dpdk-pmdinfo.py
 * to find. Reading those takes a hundredth of the time that loading all drivers does.
 */
#include "drivers.h"

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
static const char virtual_mark[] = "\"pci_ids\": []";

/* A driver's older second name has no description. */
static const char alias_prefix[] = "eth_";

/* What a file's descriptions say of the device's driver. */
enum finding {
	FINDING_NOTHING, /* no description in it */
	FINDING_OTHERS,
	FINDING_DRIVER,
};

/* DPDK's rule: a driver takes the devices whose name starts with its own. */
static bool describes(const char *text, size_t len, const char *device)
{
	const char *quote = memchr(text, '"', len);
	const char *end = memchr(text, '\0', len);

	if (quote == NULL || end == NULL || quote > end)
		return false;
	return strncmp(text, device, (size_t)(quote - text)) == 0 &&
	       memmem(quote, (size_t)(end - quote), virtual_mark, sizeof(virtual_mark) - 1) != NULL;
}

static enum finding search_bytes(const char *text, size_t len, const char *device)
{
	const size_t start_len = sizeof(description_start) - 1;
	enum finding finding = FINDING_NOTHING;
	const char *found;

	while ((found = memmem(text, len, description_start, start_len)) != NULL) {
		finding = FINDING_OTHERS;
		len -= (size_t)(found - text) + start_len;
		text = found + start_len;
		if (describes(text, len, device))
			return FINDING_DRIVER;
	}
	return finding;
}

static enum finding search_file(int dir, const char *name, const char *device)
{
	enum finding finding = FINDING_NOTHING;
	struct stat status;
	void *bytes;
	int fd;

	/* A library has several names, of which one is the file. */
	fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return FINDING_NOTHING;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
		bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (bytes != MAP_FAILED) {
			finding = search_bytes(bytes, (size_t)status.st_size, device);
			munmap(bytes, (size_t)status.st_size);
		}
	}
	close(fd);
	return finding;
}

int drivers_find(const char *dir, const char *device)
{
	enum finding best = FINDING_NOTHING, finding;
	const struct dirent *entry;
	DIR *stream;

	if (strncmp(device, alias_prefix, sizeof(alias_prefix) - 1) == 0)
		return -ENODATA;
	stream = opendir(dir);
	if (stream == NULL)
		return -ENODATA;
	while (best != FINDING_DRIVER && (entry = readdir(stream)) != NULL) {
		if (strncmp(entry->d_name, LIBRARY_PREFIX, sizeof(LIBRARY_PREFIX) - 1) != 0)
			continue;
		finding = search_file(dirfd(stream), entry->d_name, device);
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
