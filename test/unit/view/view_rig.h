/* SPDX-License-Identifier: BSD-3-Clause */
/* A view in a temporary directory, for tests: its facts, and the text of its files. */
#ifndef TEST_VIEW_RIG_H
#define TEST_VIEW_RIG_H

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "test.h"
#include "view/table.h"
#include "view/tree.h"

#define RIG_PORT VIEW_CLASS "/uroce7/ports/1/"

static char rig_dir[32];
static int rig_root;

static int rig_set_up(TEST_STATE)
{
	strcpy(rig_dir, "/tmp/uroce-test-XXXXXX");
	assert_non_null(mkdtemp(rig_dir));
	rig_root = open(rig_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(rig_root >= 0);
	assert_int_equal(view_tree_begin(rig_root), 0);
	return 0;
}

static int rig_tear_down(TEST_STATE)
{
	close(rig_root);
	view_tree_remove(AT_FDCWD, rig_dir);
	assert_int_equal(access(rig_dir, F_OK), -1);
	return 0;
}

static inline struct view_facts rig_facts(void)
{
	struct view_facts facts = {.name = "uroce7",
				   .netdev = "eth5",
				   .fw_ver = "1.2.3",
				   .number = 3,
				   .vendor_id = 0x123456,
				   .vendor_part_id = 9,
				   .hw_ver = 0x1a,
				   .state = IBV_PORT_ACTIVE,
				   .phys_state = 5,
				   .active_width = 2,
				   .active_speed = 32,
				   .pkey = 0xffff,
				   .port_cap_flags = 0x4000000};

	facts.gids[0] = (struct view_gid){.raw = {0xfe, 0x80, [15] = 1}, .ndev = "eth5"};
	facts.gids[2] = (struct view_gid){.raw = {[10] = 0xff, 0xff, 10, 0, 0, 1}};
	memcpy(&facts.node_guid_be, "\x02\x11\x22\xff\xfe\x33\x44\x55", 8);
	memcpy(&facts.sys_image_guid_be, "\x02\x11\x22\xff\xfe\x33\x44\x56", 8);
	return facts;
}

static pthread_t rig_admitter;
static int rig_end; /* eventfd */

static void *rig_admit(void *entry)
{
	struct pollfd fds[] = {{.fd = ((const struct view_entry *)entry)->door, .events = POLLIN},
			       {.fd = rig_end, .events = POLLIN}};

	while (poll(fds, 2, -1) < 0 || fds[1].revents == 0)
		view_table_admit(entry);
	return NULL;
}

/* Let processes in as the server does, until rig_close. */
static inline void rig_open(struct view_entry *entry)
{
	rig_end = eventfd(0, EFD_CLOEXEC);
	assert_true(rig_end >= 0);
	assert_int_equal(pthread_create(&rig_admitter, NULL, rig_admit, entry), 0);
}

static inline void rig_close(const struct view_entry *entry)
{
	eventfd_write(rig_end, 1);
	pthread_join(rig_admitter, NULL);
	close(rig_end);
	view_entry_close(entry);
}

/* Expect a file's text; NULL: there is no such file. */
static inline void rig_expect(const char *path, const char *expected)
{
	const int fd = openat(rig_root, path, O_RDONLY);
	char text[512];
	ssize_t len;

	if (!expected) {
		assert_int_equal(fd, -1);
		return;
	}
	assert_true(fd >= 0);
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	assert_true(len >= 0);
	text[len] = '\0';
	assert_string_equal(text, expected);
}

static inline void rig_expect_link(const char *path, const char *expected)
{
	char target[PATH_MAX];
	const ssize_t len = readlinkat(rig_root, path, target, sizeof(target) - 1);

	assert_true(len >= 0);
	target[len] = '\0';
	assert_string_equal(target, expected);
}

#endif
