/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the files of a view from the table of attributes. counter_files.c writes counters. */
#include "view/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attributes.h"
#include "replace.h"

#define LIFESPAN_FILE VIEW_CLASS "/@/ports/1/hw_counters/lifespan"

static bool gid_is_used(const struct view_facts *facts, uint32_t index)
{
	static const uint8_t zero[16];

	return memcmp(facts->gids[index].raw, zero, sizeof(zero)) != 0;
}

/* Write the text of one file; "" if the file does not exist. Return the file's kind. */
static enum attribute_kind attribute_text(const struct attribute *attribute,
					  const struct view_facts *facts, uint32_t index,
					  char *text, size_t size)
{
	const bool per_used = attribute->table == ATTRIBUTE_PER_USED_GID;

	text[0] = '\0';
	if (!facts)
		return attribute->kind;
	if (!per_used || gid_is_used(facts, index))
		attribute->write(facts, index, text, size);
	if (!per_used || text[0] != '\0')
		return attribute->kind;
	/* In sysfs a program can open this file, but a read fails with EINVAL. No file of ours can
	 * do that, so the file is a link to one of the kernel's. */
	snprintf(text, size, ATTRIBUTE_UNREADABLE);
	return ATTRIBUTE_LINK;
}

static int show_attribute(int root, const struct attribute *attribute,
			  const struct view_facts *facts, const struct view_facts *before)
{
	const uint32_t count = attribute->table == ATTRIBUTE_ONE ? 1 : VIEW_GIDS_MAX;
	char path[PATH_MAX], old_path[PATH_MAX] = "";
	char text[ATTRIBUTE_TEXT_MAX], old[ATTRIBUTE_TEXT_MAX];
	int result = 0, rc;

	for (uint32_t i = 0; i < count; i++) {
		const enum attribute_kind kind =
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
			rc = replace_file(root, path, text, kind, NULL);
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
		rc = replace_make_parents(root, path);
		if (rc != 0)
			return rc;
	}
	for (size_t i = 0; i < view_host_attribute_count; i++) {
		char text[ATTRIBUTE_TEXT_MAX];

		view_host_attributes[i].write(NULL, 0, text, sizeof(text));
		rc = replace_file(root, view_host_attributes[i].path, text,
				  view_host_attributes[i].kind, NULL);
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
		rc = replace_file(root, path, text, ATTRIBUTE_FILE, NULL);
	return rc == 0 ? result : rc;
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
