/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mounts a view. Where the host has a directory that the view shows, the view's is mounted over it.
 * Otherwise the parent directory is replaced, because nothing can be created in sysfs, and nothing
 * should be created in the host's /dev. The new parent has the view's directories, and all entries
 * of the old parent mounted again.
 */
#include "view/mount.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_common.h>

#include "view/table.h"

/* A directory of sysfs on which the new file system is mounted while it is filled. */
#define WORK_DIR   "/sys/kernel"
#define TMPFS_SIZE "mode=0755,size=64m"

/* A directory of the host, and those of its entries that are the view's. */
static const struct graft {
	const char *parent; /* without the first slash: the same below the view's root */
	const char *entries[3];
} grafts[] = {
	{"sys/class", {"infiniband", "infiniband_verbs", "infiniband_mad"}},
	{"sys/class/misc", {"rdma_cm"}},
	{"dev", {"infiniband"}},
};

static int mount_refuse(const char *what, char *error, size_t error_size)
{
	const int rc = -errno;

	snprintf(error, error_size, "%s: %s", what, strerror(-rc));
	return rc;
}

static bool has_any_capability(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	return syscall(SYS_capget, &header, data) != 0 ||
	       (data[0].permitted | data[1].permitted) != 0;
}

static bool has_sys_admin(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	return syscall(SYS_capget, &header, data) == 0 &&
	       (data[0].effective & 1u << CAP_SYS_ADMIN) != 0;
}

static int write_map(const char *path, const char *text)
{
	const int fd = open(path, O_WRONLY | O_CLOEXEC);
	int rc = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		rc = -errno;
	close(fd);
	return rc;
}

/* Enter a user namespace in which our ids are the same. */
static int enter_user_namespace(void)
{
	const unsigned int uid = geteuid(), gid = getegid();
	char map[64];
	int rc;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
		return -errno;
	snprintf(map, sizeof(map), "%u %u 1\n", uid, uid);
	rc = write_map("/proc/self/uid_map", map);
	/* user_namespaces(7): without privileges, groups can be mapped only after this. */
	if (rc == 0)
		rc = write_map("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "%u %u 1\n", gid, gid);
	return rc == 0 ? write_map("/proc/self/gid_map", map) : rc;
}

static bool is_one_of(const char *name, const struct graft *graft)
{
	for (size_t i = 0; i < RTE_DIM(graft->entries) && graft->entries[i]; i++)
		if (strcmp(name, graft->entries[i]) == 0)
			return true;
	/* An entry that is the parent of another graft is made by that graft. */
	for (size_t i = 0; i < RTE_DIM(grafts); i++) {
		const size_t len = strlen(graft->parent);

		if (strncmp(grafts[i].parent, graft->parent, len) == 0 &&
		    grafts[i].parent[len] == '/' && strcmp(grafts[i].parent + len + 1, name) == 0)
			return true;
	}
	return false;
}

/* Write the path of an entry of an open directory; "", which no call finds, if it is too long. */
static void fd_path(int dir, const char *name, char *path, size_t size)
{
	if (snprintf(path, size, "/proc/self/fd/%d/%s", dir, name) >= (int)size)
		path[0] = '\0';
}

/* Make an entry of the old directory appear in the new one, which is already mounted. */
static int carry_over(int old_dir, int new_dir, const char *name)
{
	char from[PATH_MAX], to[PATH_MAX], target[PATH_MAX];
	struct stat status;
	ssize_t len;
	int fd;

	if (fstatat(old_dir, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT ? 0 : -errno; /* it was removed meanwhile */
	if (S_ISLNK(status.st_mode)) {
		len = readlinkat(old_dir, name, target, sizeof(target) - 1);
		if (len < 0)
			return errno == ENOENT ? 0 : -errno;
		target[len] = '\0';
		return symlinkat(target, new_dir, name) == 0 ? 0 : -errno;
	}
	if (S_ISDIR(status.st_mode)) {
		if (mkdirat(new_dir, name, 0755) != 0)
			return -errno;
	} else {
		fd = openat(new_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0)
			return -errno;
		close(fd);
	}
	fd_path(old_dir, name, from, sizeof(from));
	fd_path(new_dir, name, to, sizeof(to));
	/* Recursively, because a user namespace may not separate a directory from the mounts below
	 * it. */
	return mount(from, to, NULL, MS_BIND | MS_REC, NULL) == 0 ? 0 : -errno;
}

static int carry_over_all(int old_dir, int new_dir, const struct graft *graft)
{
	const struct dirent *entry;
	DIR *stream;
	int fd, rc = 0;

	fd = openat(old_dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	stream = fdopendir(fd);
	if (!stream) {
		close(fd);
		return -ENOMEM;
	}
	while (rc == 0 && (entry = readdir(stream)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
		    !is_one_of(entry->d_name, graft))
			rc = carry_over(old_dir, new_dir, entry->d_name);
	closedir(stream);
	return rc;
}

static int bind_from_root(int root, const char *path)
{
	char from[PATH_MAX], to[PATH_MAX];

	fd_path(root, path, from, sizeof(from));
	if (snprintf(to, sizeof(to), "/%s", path) >= (int)sizeof(to))
		return -ENAMETOOLONG;
	return mount(from, to, NULL, MS_BIND, NULL) == 0 ? 0 : -errno;
}

/* Mount the view's directories over existing ones. -ENOENT: one does not exist. */
static int graft_entries(int root, const struct graft *graft)
{
	char path[PATH_MAX];
	struct stat status;
	int rc = 0;

	for (size_t i = 0; i < RTE_DIM(graft->entries) && graft->entries[i]; i++) {
		snprintf(path, sizeof(path), "/%s/%s", graft->parent, graft->entries[i]);
		if (stat(path, &status) != 0)
			return -ENOENT;
	}
	for (size_t i = 0; i < RTE_DIM(graft->entries) && graft->entries[i] && rc == 0; i++) {
		snprintf(path, sizeof(path), "%s/%s", graft->parent, graft->entries[i]);
		rc = bind_from_root(root, path);
	}
	return rc;
}

static int carry_over_into(int old_dir, const struct graft *graft)
{
	char path[PATH_MAX];
	int new_dir, rc;

	snprintf(path, sizeof(path), "/%s", graft->parent);
	new_dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (new_dir < 0)
		return -errno;
	rc = carry_over_all(old_dir, new_dir, graft);
	close(new_dir);
	return rc;
}

/* Mount one graft. `old_dir` is its parent as it was before all grafts, or -1 if there is none. */
static int graft_one(int root, const struct graft *graft, int old_dir, bool *replaced)
{
	int rc;

	/* If /sys/class was replaced, a parent below it is already the view's own directory. */
	if (!*replaced || strncmp(graft->parent, grafts[0].parent, strlen(grafts[0].parent)) != 0) {
		rc = graft_entries(root, graft);
		if (rc != -ENOENT)
			return rc;
		rc = bind_from_root(root, graft->parent);
		if (rc != 0)
			return rc;
	}
	if (graft == &grafts[0])
		*replaced = true;
	return old_dir < 0 ? 0 : carry_over_into(old_dir, graft);
}

static int graft_all(int root, char *error, size_t error_size)
{
	bool class_replaced = false;
	int old_dirs[RTE_DIM(grafts)];
	char path[PATH_MAX];
	int rc = 0;

	for (size_t i = 0; i < RTE_DIM(grafts); i++) {
		snprintf(path, sizeof(path), "/%s", grafts[i].parent);
		old_dirs[i] = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	for (size_t i = 0; i < RTE_DIM(grafts) && rc == 0; i++) {
		rc = graft_one(root, &grafts[i], old_dirs[i], &class_replaced);
		if (rc != 0)
			snprintf(error, error_size, "cannot mount a view of /%s: %s",
				 grafts[i].parent, strerror(-rc));
	}
	for (size_t i = 0; i < RTE_DIM(grafts); i++)
		if (old_dirs[i] >= 0)
			close(old_dirs[i]);
	return rc;
}

int view_mount(enum view_way way, int (*begin)(int root), char *error, size_t error_size)
{
	int root, rc;

	rc = way == VIEW_WAY_USER ? enter_user_namespace() : unshare(CLONE_NEWNS) == 0 ? 0 : -errno;
	if (rc != 0) {
		errno = -rc;
		return mount_refuse("cannot make a mount namespace", error, error_size);
	}
	/* Later mounts of the host still appear here, but ours do not appear on the host. */
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) != 0)
		return mount_refuse("cannot separate the mounts from the host's", error,
				    error_size);
	if (mount("uroce", WORK_DIR, "tmpfs", MS_NOSUID | MS_NOEXEC, TMPFS_SIZE) != 0)
		return mount_refuse("cannot mount a tmpfs", error, error_size);
	root = open(WORK_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return mount_refuse(WORK_DIR, error, error_size);
	rc = begin(root);
	if (rc != 0) {
		errno = -rc;
		rc = mount_refuse("cannot write the view", error, error_size);
	} else {
		rc = graft_all(root, error, error_size);
	}
	if (rc == 0 && umount2(WORK_DIR, MNT_DETACH) != 0)
		rc = mount_refuse(WORK_DIR, error, error_size);
	if (rc != 0)
		close(root);
	return rc == 0 ? root : rc;
}

static int begin_nothing(int root)
{
	static const char *const dirs[] = {"sys",	   "sys/class",	  "sys/class/misc",
					   "dev",	   VIEW_CLASS,	  VIEW_CLASS_VERBS,
					   VIEW_CLASS_MAD, VIEW_CLASS_CM, VIEW_DEV};

	for (size_t i = 0; i < RTE_DIM(dirs); i++)
		if (mkdirat(root, dirs[i], 0755) != 0)
			return -errno;
	return 0;
}

/* Try everything in a child process, so that the attempt changes nothing here. */
static bool way_works(enum view_way way)
{
	char error[256];
	pid_t child;
	int status;

	child = fork();
	if (child < 0)
		return false;
	if (child == 0)
		_exit(view_mount(way, begin_nothing, error, sizeof(error)) < 0);
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

enum view_way view_mount_way(void)
{
	if (has_sys_admin())
		return way_works(VIEW_WAY_NAMESPACE) ? VIEW_WAY_NAMESPACE : VIEW_WAY_NONE;
	if (has_any_capability() || geteuid() == 0 || getuid() != geteuid() ||
	    getgid() != getegid())
		return VIEW_WAY_NONE;
	return way_works(VIEW_WAY_USER) ? VIEW_WAY_USER : VIEW_WAY_NONE;
}
