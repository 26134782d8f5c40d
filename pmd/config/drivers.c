/* SPDX-License-Identifier: BSD-3-Clause */
/* Every DPDK driver contains a string that describes it, for tools such as dpdk-pmdinfo.py. A
 * search for these strings takes a hundredth of the time that it takes to load all drivers. */
#include "config/drivers.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef UROCE_BUNDLE
#define LIBRARY_PREFIX "liburoce.so."
#else
#define LIBRARY_PREFIX "librte_net_"
#endif

static const char mark[] = "PMD_INFO_STRING= ";

struct search {
	bool (*look)(void *arg, const char *description);
	void *arg;
	unsigned int count;
	bool ended;
};

static void search_bytes(struct search *search, const char *text, size_t len)
{
	const size_t mark_len = sizeof(mark) - 1;
	const char *found;

	while (!search->ended && (found = memmem(text, len, mark, mark_len)) != NULL) {
		len -= (size_t)(found - text) + mark_len;
		text = found + mark_len;
		/* A description without its end would be read beyond the file. */
		if (text[0] != '{' || !memchr(text, '\0', len))
			continue;
		search->count++;
		search->ended = !search->look(search->arg, text);
	}
}

static void search_file(struct search *search, int dir, const char *name)
{
	struct stat status;
	void *bytes;
	int fd;

	/* A library has several names. Only one is a regular file; O_NOFOLLOW skips the symbolic
	 * links. */
	fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
		bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (bytes != MAP_FAILED) {
			search_bytes(search, bytes, (size_t)status.st_size);
			munmap(bytes, (size_t)status.st_size);
		}
	}
	close(fd);
}

bool drivers_need_verbs(const char *kernel_driver)
{
	static const char *const names[] = {"mlx4_core", "mlx5_core", "mana"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(kernel_driver, names[i]) == 0)
			return true;
	return false;
}

const char *drivers_dir(void)
{
#ifdef UROCE_BUNDLE
	static char dir[PATH_MAX + sizeof("/../lib/uroce")];
	const ssize_t len = readlink("/proc/self/exe", dir, PATH_MAX);

	dir[len > 0 ? len : 0] = '\0';
	if (strrchr(dir, '/'))
		strcpy(strrchr(dir, '/'), "/../lib/uroce");
	return dir;
#else
	return RTE_EAL_PMD_PATH;
#endif
}

unsigned int drivers_each(const char *dir, bool (*look)(void *arg, const char *description),
			  void *arg)
{
	struct search search = {.look = look, .arg = arg};
	const struct dirent *entry;
	DIR *stream = opendir(dir);

	while (stream && !search.ended && (entry = readdir(stream)) != NULL) {
		if (strncmp(entry->d_name, LIBRARY_PREFIX, sizeof(LIBRARY_PREFIX) - 1) == 0)
			search_file(&search, dirfd(stream), entry->d_name);
	}
	if (stream)
		closedir(stream);
	return search.count;
}
