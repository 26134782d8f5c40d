/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the files of a view from the table of attributes. */
#include "view/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attributes.h"

#define NEW_FILE ".uroce-new" /* below the root; becomes a file of the view when it is complete */

#define LIFESPAN_FILE VIEW_CLASS "/@/ports/1/hw_counters/lifespan"

/* Make the directories above a path. */
static int make_parents(int root, const char *path)
{
	char dir[PATH_MAX];

	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
		if (mkdirat(root, dir, 0755) != 0 && errno != EEXIST)
			return -errno;
	}
	return 0;
}

static int write_new(int root, const char *text, enum attribute_kind kind)
{
	const size_t len = strlen(text);
	ssize_t written;
	int fd, rc;

	(void)unlinkat(root, NEW_FILE, 0);
	if (kind == ATTRIBUTE_LINK)
		return symlinkat(text, root, NEW_FILE) == 0 ? 0 : -errno;
	fd = openat(root, NEW_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	written = write(fd, text, len);
	rc = written == (ssize_t)len ? 0 : written < 0 ? -errno : -ENOSPC;
	if (rc == 0 && fchmod(fd, 0444) != 0)
		rc = -errno;
	close(fd);
	return rc;
}

static int replace(int root, const char *path, const char *text, enum attribute_kind kind)
{
	int rc;

	if (text[0] == '\0') {
		if (unlinkat(root, path, 0) != 0 && errno != ENOENT)
			return -errno;
		return 0;
	}
	rc = write_new(root, text, kind);
	if (rc != 0)
		return rc;
	if (renameat(root, NEW_FILE, root, path) == 0)
		return 0;
	if (errno != ENOENT)
		return -errno;
	rc = make_parents(root, path);
	if (rc != 0)
		return rc;
	return renameat(root, NEW_FILE, root, path) == 0 ? 0 : -errno;
}

static bool gid_is_used(const struct view_facts *facts, uint32_t index)
{
	static const uint8_t zero[16];

	return memcmp(facts->gids[index].raw, zero, sizeof(zero)) != 0;
}

/* Write the text of one file; "" if the file does not exist. */
static void attribute_text(const struct attribute *attribute, const struct view_facts *facts,
			   uint32_t index, char *text, size_t size)
{
	if (!facts || (attribute->table == ATTRIBUTE_PER_USED_GID && !gid_is_used(facts, index)))
		text[0] = '\0';
	else
		attribute->write(facts, index, text, size);
}

static int show_attribute(int root, const struct attribute *attribute,
			  const struct view_facts *facts, const struct view_facts *before)
{
	const uint32_t count = attribute->table == ATTRIBUTE_ONE ? 1 : VIEW_GIDS_MAX;
	char path[PATH_MAX], old_path[PATH_MAX] = "";
	char text[ATTRIBUTE_TEXT_MAX], old[ATTRIBUTE_TEXT_MAX];
	int result = 0, rc;

	for (uint32_t i = 0; i < count; i++) {
		attribute_text(attribute, facts, i, text, sizeof(text));
		attribute_text(attribute, before, i, old, sizeof(old));
		rc = attribute_path(attribute->path, facts, i, path, sizeof(path));
		if (rc == 0 && before)
			rc = attribute_path(attribute->path, before, i, old_path, sizeof(old_path));
		if (rc == 0 && strcmp(path, old_path) == 0 && strcmp(text, old) == 0)
			continue;
		/* The name of the interface may be in the path. */
		if (rc == 0 && before && old[0] != '\0' && strcmp(path, old_path) != 0)
			(void)unlinkat(root, old_path, 0);
		if (rc == 0 && (text[0] != '\0' || old[0] != '\0'))
			rc = replace(root, path, text, attribute->kind);
		if (rc != 0)
			result = rc;
	}
	return result;
}

int view_tree_begin(int root)
{
	static const char *const dirs[] = {VIEW_CLASS, VIEW_CLASS_VERBS, VIEW_CLASS_MAD,
					   VIEW_CLASS_CM, VIEW_DEV};
	char path[PATH_MAX];
	int rc;

	for (size_t i = 0; i < RTE_DIM(dirs); i++) {
		snprintf(path, sizeof(path), "%s/", dirs[i]);
		rc = make_parents(root, path);
		if (rc != 0)
			return rc;
	}
	for (size_t i = 0; i < view_host_attribute_count; i++) {
		char text[ATTRIBUTE_TEXT_MAX];

		view_host_attributes[i].write(NULL, 0, text, sizeof(text));
		rc = replace(root, view_host_attributes[i].path, text,
			     view_host_attributes[i].kind);
		if (rc != 0)
			return rc;
	}
	return 0;
}

int view_tree_show(int root, const struct view_facts *facts, const struct view_facts *before)
{
	char path[PATH_MAX], text[ATTRIBUTE_TEXT_MAX];
	int result = 0, rc;

	for (size_t i = 0; i < view_attribute_count; i++) {
		rc = show_attribute(root, &view_attributes[i], facts, before);
		if (rc != 0)
			result = rc;
	}
	if (before)
		return result;
	/* The kernel's name for the time in milliseconds for which counters may be old. */
	snprintf(text, sizeof(text), "%d\n", VIEW_PERIOD_MS);
	rc = attribute_path(LIFESPAN_FILE, facts, 0, path, sizeof(path));
	if (rc == 0)
		rc = replace(root, path, text, ATTRIBUTE_FILE);
	return rc == 0 ? result : rc;
}

static uint64_t port_counter(const struct port_counter *counter, const uint64_t *counters)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < RTE_DIM(counter->parts) && counter->parts[i] != COUNTER_COUNT; i++)
		sum += counters[counter->parts[i]];
	return sum / counter->divisor;
}

static int show_counter(int root, const struct view_facts *facts, const char *dir, const char *name,
			uint64_t value)
{
	char path[PATH_MAX], text[32];

	snprintf(path, sizeof(path), VIEW_CLASS "/%s/ports/1/%s/%s", facts->name, dir, name);
	snprintf(text, sizeof(text), "%" PRIu64 "\n", value);
	return replace(root, path, text, ATTRIBUTE_FILE);
}

int view_tree_count(int root, const struct view_facts *facts, const uint64_t *counters,
		    const uint64_t *before)
{
	int result = 0, rc = 0;

	for (int i = 0; i < COUNTER_COUNT; i++) {
		if (!before || counters[i] != before[i])
			rc = show_counter(root, facts, "hw_counters", counter_name((enum counter)i),
					  counters[i]);
		result = rc == 0 ? result : rc;
	}
	for (size_t i = 0; i < view_port_counter_count; i++) {
		const struct port_counter *counter = &view_port_counters[i];
		const uint64_t value = port_counter(counter, counters);

		if (!before || value != port_counter(counter, before))
			rc = show_counter(root, facts, "counters", counter->name, value);
		result = rc == 0 ? result : rc;
	}
	return result;
}

void view_tree_hide(int root, const struct view_facts *facts)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < view_attribute_count; i++) {
		if (view_attributes[i].table == ATTRIBUTE_ONE &&
		    attribute_path(view_attributes[i].path, facts, 0, path, sizeof(path)) == 0)
			(void)unlinkat(root, path, 0);
	}
	snprintf(path, sizeof(path), VIEW_CLASS "/%s", facts->name);
	view_tree_remove(root, path);
	snprintf(path, sizeof(path), VIEW_CLASS_VERBS "/uverbs%u", facts->number);
	view_tree_remove(root, path);
	snprintf(path, sizeof(path), VIEW_CLASS_MAD "/umad%u", facts->number);
	view_tree_remove(root, path);
}

void view_tree_remove(int dir, const char *path)
{
	const struct dirent *entry;
	DIR *stream;
	int fd;

	fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	stream = fdopendir(fd);
	if (!stream) {
		close(fd);
		return;
	}
	while ((entry = readdir(stream)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (unlinkat(fd, entry->d_name, 0) != 0 && (errno == EISDIR || errno == EPERM))
			view_tree_remove(fd, entry->d_name);
	}
	closedir(stream);
	(void)unlinkat(dir, path, AT_REMOVEDIR);
}
