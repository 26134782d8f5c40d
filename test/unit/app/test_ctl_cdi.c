/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of app/uroce-ctl/ctl_cdi.c. */
#include <json-c/json.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_cdi.h"
#include "test.h"

static const struct cdi_host host = {
	.library = "/opt/bundle/lib/uroce",
	.preload = "/opt/bundle/lib/uroce/view/liburoce-view.so",
	.socket = "/run/uroce/isolated.sock",
	.view = "/run/uroce/isolated.sock.view",
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
