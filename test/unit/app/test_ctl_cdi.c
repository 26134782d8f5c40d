/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of app/uroce-ctl/ctl_cdi.c. */
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl_cdi.h"
#include "test.h"
#include "view/tree.h"

static const struct cdi_host host = {
	.library = "/opt/bundle/lib/uroce",
	.preload = "/opt/bundle/lib/uroce/view/liburoce-view.so",
	.socket = "/run/uroce/isolated.sock",
	.view = "/run/uroce-cdi/isolated.sock",
};

/* Return the edits of the specification's device. The caller releases `spec`. */
static struct json_object *edits_of(const struct cdi_host *from, struct json_object **spec)
{
	char *text = cdi_text(from);
	struct json_object *devices, *device, *name, *kind, *edits;

	assert_non_null(text);
	*spec = json_tokener_parse(text);
	free(text);
	assert_true(json_object_object_get_ex(*spec, "kind", &kind));
	assert_string_equal(json_object_get_string(kind), "uroce.io/nic");
	assert_true(json_object_object_get_ex(*spec, "devices", &devices));
	assert_int_equal(json_object_array_length(devices), 1);
	device = json_object_array_get_idx(devices, 0);
	assert_true(json_object_object_get_ex(device, "name", &name));
	assert_string_equal(json_object_get_string(name), "all");
	assert_true(json_object_object_get_ex(device, "containerEdits", &edits));
	return edits;
}

/* Return the right to a mount: the host's path must be this one. */
static const char *right_of(struct json_object *edits, const char *container, const char *path)
{
	struct json_object *mounts, *from, *to, *options;

	assert_true(json_object_object_get_ex(edits, "mounts", &mounts));
	for (size_t i = 0; i < json_object_array_length(mounts); i++) {
		struct json_object *mount = json_object_array_get_idx(mounts, i);

		assert_true(json_object_object_get_ex(mount, "containerPath", &to));
		if (strcmp(json_object_get_string(to), container) != 0)
			continue;
		assert_true(json_object_object_get_ex(mount, "hostPath", &from));
		assert_string_equal(json_object_get_string(from), path);
		assert_true(json_object_object_get_ex(mount, "options", &options));
		return json_object_get_string(json_object_array_get_idx(options, 1));
	}
	return NULL;
}

static const char *first_variable(struct json_object *edits)
{
	struct json_object *env;

	assert_true(json_object_object_get_ex(edits, "env", &env));
	return json_object_get_string(json_object_array_get_idx(env, 0));
}

TEST(cdi_text__mounts_what_a_container_needs)
{
	struct json_object *spec, *edits = edits_of(&host, &spec);

	assert_string_equal(first_variable(edits), "LD_LIBRARY_PATH=/opt/uroce/lib");
	assert_string_equal(right_of(edits, CDI_LIBRARY, host.library), "ro");
	assert_string_equal(right_of(edits, CDI_PRELOAD, host.preload), "ro");
	assert_string_equal(right_of(edits, CDI_VIEW, host.view), "ro");
	assert_string_equal(right_of(edits, CDI_SOCKET, host.socket), "rw");
	json_object_put(spec);
}

TEST(cdi_text__of_libraries_that_need_another_one)
{
	struct cdi_host more = host;
	struct json_object *spec, *edits;

	more.needed = "/usr/lib/libisal.so.2";
	edits = edits_of(&more, &spec);
	assert_string_equal(first_variable(edits),
			    "LD_LIBRARY_PATH=/opt/uroce/lib:/opt/uroce/needed");
	assert_string_equal(right_of(edits, "/opt/uroce/needed/libisal.so.2", more.needed), "ro");
	json_object_put(spec);
}

static char top[] = "/tmp/uroce-test-XXXXXX";

static int make_top(TEST_STATE)
{
	strcpy(top + sizeof(top) - sizeof("XXXXXX"), "XXXXXX");
	return mkdtemp(top) && chdir(top) == 0 ? 0 : -1;
}

static int remove_top(TEST_STATE)
{
	view_tree_remove(AT_FDCWD, top);
	return chdir("/");
}

TEST_FIXTURE(make_top, remove_top);

static int write_view(const char *name)
{
	struct view_facts facts = {.active_width = 1, .active_speed = 1};

	snprintf(facts.name, sizeof(facts.name), "%s", name);
	return cdi_write_view("views", "socket", &facts);
}

TEST(cdi_write_view__replaces_files)
{
	assert_int_equal(write_view("uroce0"), 0);
	assert_int_equal(write_view("uroce0"), 0);
	assert_int_equal(access("views/socket/" VIEW_CLASS "/uroce0/node_type", R_OK), 0);
}

TEST(cdi_write_view__only_where_nobody_else_can)
{
	assert_int_equal(mkdir("elsewhere", 0755), 0);
	assert_int_equal(symlink("elsewhere", "views"), 0);
	assert_int_equal(write_view("uroce0"), -ENOTDIR);
	assert_int_equal(unlink("views"), 0);
	assert_int_equal(mkdir("views", 0755), 0);
	assert_int_equal(symlink("../elsewhere", "views/socket"), 0);
	assert_int_equal(write_view("uroce0"), -ENOTDIR);
	assert_int_equal(unlink("views/socket"), 0);
	assert_int_equal(chmod("views", 0775), 0);
	assert_int_equal(write_view("uroce0"), -EPERM);
	assert_int_equal(rmdir("elsewhere"), 0);
}

TEST(cdi_write_view__names_that_settings_refuse)
{
	assert_int_equal(write_view("../../../../../uroce0"), -EINVAL);
	assert_int_equal(write_view("a\nb"), -EINVAL);
	assert_int_equal(access("views", F_OK), -1);
}
