/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes the files of a device's counters in place.
 *
 * A text is one line in the first page of its file, and one pwrite(2) replaces all of it. The
 * kernel copies these few bytes in one piece, and then sets the new size. It promises no more than
 * this to a read(2) at the same moment: doc/user/views.md says how often a read sees both. If the
 * text has become longer, a read between the copy and the new size gets the new number without its
 * newline.
 *
 * A text that becomes shorter would leave a rest of the old one for such a reader. So it gets a new
 * file. Counters only grow, so this happens only if a process writes other numbers into the table.
 */
#include "view/counter_files.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "attributes.h"
#include "replace.h"

/* Descriptors that are left for everything else, if there are more counters than descriptors. */
#define SPARE_DESCRIPTORS 32

/* Keep the descriptor of a new file, unless the process has few left: then each new value of this
 * counter is a new file. */
static int keep_descriptor(int fd)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
	    (rlim_t)fd + SPARE_DESCRIPTORS < limit.rlim_cur)
		return fd;
	close(fd);
	return -1;
}

static void close_file(struct counter_file *file)
{
	if (file->length > 0 && file->fd >= 0)
		close(file->fd);
	*file = (struct counter_file){0};
}

static int write_value(struct counter_file *file, int root, const struct view_facts *facts,
		       const char *dir, const char *name, uint64_t value)
{
	char path[PATH_MAX], text[32];
	int length, fd, rc;

	if (file->length > 0 && file->value == value)
		return 0;
	length = snprintf(text, sizeof(text), "%" PRIu64 "\n", value);
	if (length < file->length || file->length == 0 || file->fd < 0 ||
	    pwrite(file->fd, text, (size_t)length, 0) != length) {
		close_file(file);
		snprintf(path, sizeof(path), VIEW_CLASS "/%s/ports/1/%s/%s", facts->name, dir,
			 name);
		rc = replace_file(root, path, text, ATTRIBUTE_FILE, &fd);
		if (rc != 0)
			return rc;
		file->fd = keep_descriptor(fd);
	}
	file->value = value;
	file->length = length;
	return 0;
}

static uint64_t port_counter(const struct port_counter *counter, const uint64_t *counters)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < RTE_DIM(counter->parts) && counter->parts[i] != COUNTER_COUNT; i++)
		sum += counters[counter->parts[i]];
	return sum / counter->divisor;
}

int counter_files_write(struct counter_files *files, int root, const struct view_facts *facts,
			const uint64_t *counters)
{
	int result = 0, rc;

	for (int i = 0; i < COUNTER_COUNT; i++) {
		rc = write_value(&files->files[i], root, facts, "hw_counters",
				 counter_name((enum counter)i), counters[i]);
		result = rc == 0 ? result : rc;
	}
	for (size_t i = 0; i < COUNTER_FILES_PORT; i++) {
		const struct port_counter *counter = &view_port_counters[i];

		rc = write_value(&files->files[COUNTER_COUNT + i], root, facts, "counters",
				 counter->name, port_counter(counter, counters));
		result = rc == 0 ? result : rc;
	}
	return result;
}

void counter_files_close(struct counter_files *files)
{
	for (size_t i = 0; i < COUNTER_FILES_MAX; i++)
		close_file(&files->files[i]);
}
