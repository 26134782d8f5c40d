/* SPDX-License-Identifier: BSD-3-Clause */
/* The shared table of a view: creates it, maps it, and reads slots with distrust. */
#include "view/table.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static struct view_table *table_map(int fd)
{
	struct view_table *table;

	table = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return table == MAP_FAILED ? NULL : table;
}

struct view_table *view_table_create(int root, mode_t mode, int *bell)
{
	struct view_table *table = NULL;
	const int fd = openat(root, VIEW_TABLE, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return NULL;
	/* Set the modes separately: the umask does not apply then. */
	if (ftruncate(fd, (off_t)sizeof(*table)) == 0 && fchmod(fd, mode) == 0)
		table = table_map(fd);
	close(fd);
	if (!table)
		return NULL;
	*bell = -1;
	if (mkfifoat(root, VIEW_BELL, 0600) == 0 && fchmodat(root, VIEW_BELL, mode, 0) == 0)
		/* Also for writing, so that it never reports that the last writer has closed it. */
		*bell = openat(root, VIEW_BELL, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (*bell < 0) {
		munmap(table, sizeof(*table));
		return NULL;
	}
	table->bytes = sizeof(*table);
	table->magic = VIEW_MAGIC;
	return table;
}

/* Get the path of one of our files in this process's view. */
static bool view_path(const char *file, char *path, size_t size)
{
	/* A program with more rights than its user must not obey the user's environment. */
	const char *root = secure_getenv(VIEW_VARIABLE);

	if (!root || root[0] != '/')
		return false;
	return snprintf(path, size, "%s/%s", strcmp(root, "/") == 0 ? "" : root, file) < (int)size;
}

struct view_table *view_table_open(void)
{
	struct view_table *table = NULL;
	char path[PATH_MAX];
	struct stat file;
	int fd;

	if (!view_path(VIEW_TABLE, path, sizeof(path)))
		return NULL;
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return NULL;
	/* Access behind a file's end is a SIGBUS. */
	if (fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && file.st_size == (off_t)sizeof(*table))
		table = table_map(fd);
	close(fd);
	if (table && (table->magic != VIEW_MAGIC || table->bytes != sizeof(*table))) {
		munmap(table, sizeof(*table));
		return NULL;
	}
	/* A child process takes a slot of its own. */
	if (table)
		madvise(table, sizeof(*table), MADV_DONTFORK);
	return table;
}

void view_table_ring(void)
{
	char path[PATH_MAX];
	int fd;

	if (!view_path(VIEW_BELL, path, sizeof(path)))
		return;
	fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return;
	/* A full FIFO wakes the server as well. */
	if (write(fd, "", 1) < 0)
		errno = 0;
	close(fd);
}

/* Return true if the text is terminated and can be the name of a file. */
static bool is_name(const char *text, size_t size)
{
	const size_t len = strnlen(text, size);

	if (len == size || text[0] == '.')
		return false;
	for (size_t i = 0; i < len; i++)
		if (text[i] == '/' || !isgraph((unsigned char)text[i]))
			return false;
	return true;
}

static bool facts_are_sane(const struct view_facts *facts)
{
	if (facts->name[0] == '\0' || facts->number >= VIEW_DEVICES_MAX ||
	    !is_name(facts->name, sizeof(facts->name)) ||
	    !is_name(facts->netdev, sizeof(facts->netdev)) ||
	    !is_name(facts->fw_ver, sizeof(facts->fw_ver)))
		return false;
	for (size_t i = 0; i < VIEW_GIDS_MAX; i++)
		if (!is_name(facts->gids[i].ndev, sizeof(facts->gids[i].ndev)))
			return false;
	return true;
}

uint32_t view_slot_read(const struct view_slot *slot, struct view_facts *facts)
{
	const uint32_t sequence = __atomic_load_n(&slot->sequence, __ATOMIC_ACQUIRE);

	if (sequence == 0 || (sequence & 1))
		return 0;
	*facts = slot->facts;
	/* Orders the copy before the second look at the sequence number. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (__atomic_load_n(&slot->sequence, __ATOMIC_RELAXED) != sequence)
		return 0;
	return facts_are_sane(facts) ? sequence : 0;
}
