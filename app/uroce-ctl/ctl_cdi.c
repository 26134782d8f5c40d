/* SPDX-License-Identifier: BSD-3-Clause */
/* What a container gets: the libraries, the socket of uroced, and files of the device that do not
 * change, because nobody in the container serves a view. */
#include "ctl_cdi.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "config/settings.h"
#include "launch.h"
#include "run_local.h"
#include "run_view.h"
#include "view/tree.h"

#define KIND	    "uroce.io/nic"
#define CDI_VERSION "0.3.0" /* the oldest that has all that is used here */
#define PKEY	    0xffff
#define VIEWS	    "uroce-cdi"

static void add_text(struct json_object *object, const char *name, const char *value)
{
	json_object_object_add(object, name, json_object_new_string(value));
}

static void add_mount(struct json_object *mounts, const char *host, const char *container,
		      const char *right)
{
	struct json_object *mount = json_object_new_object();
	struct json_object *options = json_object_new_array();

	json_object_array_add(options, json_object_new_string("bind"));
	json_object_array_add(options, json_object_new_string(right));
	json_object_array_add(options, json_object_new_string("nosuid"));
	json_object_array_add(options, json_object_new_string("nodev"));
	add_text(mount, "hostPath", host);
	add_text(mount, "containerPath", container);
	json_object_object_add(mount, "options", options);
	json_object_array_add(mounts, mount);
}

static struct json_object *make_edits(const struct cdi_host *host)
{
	struct json_object *edits = json_object_new_object();
	struct json_object *env = json_object_new_array();
	struct json_object *mounts = json_object_new_array();
	char path[PATH_MAX];

	json_object_array_add(
		env,
		json_object_new_string(host->needed ? "LD_LIBRARY_PATH=" CDI_LIBRARY ":" CDI_NEEDED
						    : "LD_LIBRARY_PATH=" CDI_LIBRARY));
	json_object_array_add(env, json_object_new_string("LD_PRELOAD=" CDI_PRELOAD));
	json_object_array_add(env, json_object_new_string("UROCE_ISOLATED=" CDI_SOCKET));
	json_object_array_add(env, json_object_new_string(VIEW_VARIABLE "=" CDI_VIEW));
	add_mount(mounts, host->library, CDI_LIBRARY, "ro");
	if (host->needed) {
		snprintf(path, sizeof(path), CDI_NEEDED "/%s", basename(host->needed));
		add_mount(mounts, host->needed, path, "ro");
	}
	add_mount(mounts, host->preload, CDI_PRELOAD, "ro");
	add_mount(mounts, host->socket, CDI_SOCKET, "rw");
	add_mount(mounts, host->view, CDI_VIEW, "ro");
	json_object_object_add(edits, "env", env);
	json_object_object_add(edits, "mounts", mounts);
	return edits;
}

char *cdi_text(const struct cdi_host *host)
{
	struct json_object *spec = json_object_new_object();
	struct json_object *devices = json_object_new_array();
	struct json_object *device = json_object_new_object();
	char *text;

	add_text(device, "name", "all");
	json_object_object_add(device, "containerEdits", make_edits(host));
	json_object_array_add(devices, device);
	add_text(spec, "cdiVersion", CDI_VERSION);
	add_text(spec, "kind", KIND);
	json_object_object_add(spec, "devices", devices);
	text = strdup(json_object_to_json_string_ext(spec, JSON_C_TO_STRING_PRETTY |
								   JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(spec);
	return text;
}

/* The calls of libibverbs.so.1 that ask for facts. */
struct calls {
	struct ibv_device **(*get_device_list)(int *);
	const char *(*get_device_name)(struct ibv_device *);
	struct ibv_context *(*open_device)(struct ibv_device *);
	int (*close_device)(struct ibv_context *);
	int (*query_device)(struct ibv_context *, struct ibv_device_attr *);
	int (*query_port)(struct ibv_context *, uint8_t, struct ibv_port_attr *);
	int (*query_gid)(struct ibv_context *, uint8_t, int, union ibv_gid *);
};

static bool load_calls(const char *library, struct calls *calls)
{
	const struct {
		const char *name;
		void *call;
	} names[] = {
		{"ibv_get_device_list", &calls->get_device_list},
		{"ibv_get_device_name", &calls->get_device_name},
		{"ibv_open_device", &calls->open_device},
		{"ibv_close_device", &calls->close_device},
		{"ibv_query_device", &calls->query_device},
		{"ibv_query_port", &calls->query_port},
		{"ibv_query_gid", &calls->query_gid},
	};
	char path[PATH_MAX + sizeof("/libibverbs.so.1")];
	void *loaded;

	snprintf(path, sizeof(path), "%s/libibverbs.so.1", library);
	loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	for (size_t i = 0; loaded && i < sizeof(names) / sizeof(names[0]); i++) {
		void *call = dlsym(loaded, names[i].name);

		if (!call)
			return false;
		memcpy(names[i].call, &call, sizeof(call));
	}
	return loaded != NULL;
}

static bool ask(const struct calls *calls, struct ibv_context *context, struct view_facts *facts)
{
	struct ibv_device_attr device;
	struct ibv_port_attr port = {0};
	union ibv_gid gid;

	if (calls->query_device(context, &device) != 0 || calls->query_port(context, 1, &port) != 0)
		return false;
	memcpy(facts->fw_ver, device.fw_ver, sizeof(facts->fw_ver));
	facts->vendor_id = device.vendor_id;
	facts->vendor_part_id = device.vendor_part_id;
	facts->hw_ver = device.hw_ver;
	facts->node_guid_be = device.node_guid;
	facts->sys_image_guid_be = device.sys_image_guid;
	facts->state = (uint8_t)port.state;
	facts->phys_state = port.phys_state;
	facts->active_width = port.active_width;
	facts->active_speed = port.active_speed;
	facts->port_cap_flags = port.port_cap_flags;
	facts->pkey = PKEY;
	for (int i = 0; i < VIEW_GIDS_MAX; i++)
		if (calls->query_gid(context, 1, i, &gid) == 0)
			memcpy(facts->gids[i].raw, gid.raw, sizeof(gid.raw));
	return true;
}

/* Attach to uroced, and ask for the facts of its first device. */
static bool find_facts(const char *library, const char *socket, struct view_facts *facts)
{
	struct settings settings;
	struct calls calls;
	struct ibv_context *context;
	struct ibv_device **list;
	char error[256];
	bool known;

	settings_init(&settings);
	if (settings_set(&settings, "isolated", socket, error, sizeof(error)) != 0 ||
	    settings_export(&settings) != 0 || unsetenv(VIEW_VARIABLE) != 0 ||
	    !load_calls(library, &calls))
		return false;
	list = calls.get_device_list(NULL);
	if (!list || !list[0])
		return false;
	*facts = (struct view_facts){0};
	snprintf(facts->name, sizeof(facts->name), "%s", calls.get_device_name(list[0]));
	context = calls.open_device(list[0]);
	if (!context)
		return false;
	known = ask(&calls, context, facts);
	calls.close_device(context);
	return known;
}

/* Open a directory that only this user can write to, and make it if it is missing. Whoever else
 * could write there would choose where the files go. */
static int open_own(int at, const char *name)
{
	struct stat status;
	int dir;

	if (mkdirat(at, name, 0755) != 0 && errno != EEXIST)
		return -errno;
	dir = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	if (fstat(dir, &status) == 0 && status.st_uid == geteuid() &&
	    (status.st_mode & (S_IWGRP | S_IWOTH)) == 0)
		return dir;
	close(dir);
	return -EPERM;
}

int cdi_write_view(const char *parent, const char *name, const struct view_facts *facts)
{
	struct settings settings;
	char error[256];
	int dir, root, rc;

	/* The device's name comes from uroced, and becomes a part of paths. */
	settings_init(&settings);
	if (settings_set(&settings, "name", facts->name, error, sizeof(error)) != 0)
		return -EINVAL;
	/* Files that are there are replaced: a container that runs sees the new ones. */
	umask(022);
	dir = open_own(AT_FDCWD, parent);
	if (dir < 0)
		return dir;
	root = open_own(dir, name);
	close(dir);
	if (root < 0)
		return root;
	rc = view_tree_begin(root);
	if (rc == 0)
		rc = view_tree_show(root, facts, NULL);
	close(root);
	return rc;
}

/* Find ISA-L, if the libraries need it: they are loaded. */
static const char *find_needed(void)
{
	void *loaded = dlopen("libisal.so.2", RTLD_NOW | RTLD_NOLOAD);
	const struct link_map *map;

	return loaded && dlinfo(loaded, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : NULL;
}

/* Name the view by the whole path of the socket: sockets of several uroced may have one name. */
static void name_view(char *name, const char *socket)
{
	strcpy(name, socket + 1);
	for (char *at = strchr(name, '/'); at; at = strchr(at, '/'))
		*at = '-';
}

void cdi_run(const char *socket, char *error, size_t error_size)
{
	char self[PATH_MAX], library[PATH_MAX], preload[PATH_MAX];
	char absolute[PATH_MAX], name[NAME_MAX + 1], views[PATH_MAX], view[2 * PATH_MAX];
	struct cdi_host host = {library, NULL, preload, absolute, view};
	const char *run = geteuid() == 0 ? "/run" : local_env_dir("XDG_RUNTIME_DIR");
	struct view_facts facts;
	char *text;
	int rc;

	if (!run || snprintf(views, sizeof(views), "%s/" VIEWS, run) >= (int)sizeof(views)) {
		snprintf(error, error_size, "XDG_RUNTIME_DIR names no directory");
		return;
	}
	if (!realpath(socket, absolute)) {
		snprintf(error, error_size, "%s: %s; start uroced with --isolated", socket,
			 strerror(errno));
		return;
	}
	if (strlen(absolute) > NAME_MAX) {
		snprintf(error, error_size, "%s: the path is too long", socket);
		return;
	}
	if (launch_find_self(self, sizeof(self)) != 0) {
		snprintf(error, error_size, "cannot tell where uroce-ctl is; is /proc mounted?");
		return;
	}
	if (launch_find_library(self, library, sizeof(library), error, error_size) != 0 ||
	    view_find_preload(library, preload, sizeof(preload), error, error_size) != 0)
		return;
	if (!find_facts(library, absolute, &facts)) {
		snprintf(error, error_size, "%s: no device", absolute);
		return;
	}
	name_view(name, absolute);
	snprintf(view, sizeof(view), "%s/%s", views, name);
	rc = cdi_write_view(views, name, &facts);
	if (rc != 0) {
		snprintf(error, error_size, "%s: %s", view, strerror(-rc));
		return;
	}
	host.needed = find_needed();
	text = cdi_text(&host);
	if (!text || puts(text) < 0)
		snprintf(error, error_size, "cannot write");
	free(text);
}
