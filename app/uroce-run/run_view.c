/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes the program's view, and starts its server. The server is a process of its own, because
 * uroce-run becomes the program, and it is not a child of the program. It ends when the program has
 * ended and no process of the view has a device any more.
 */
#include "run_view.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_common.h>

#include "config/settings.h"
#include "launch.h"
#include "run_local.h"
#include "view/mount.h"
#include "view/view_serve.h"
#include "view/tree.h"

#define PRELOAD	      "liburoce-view.so"
#define TREE_TEMPLATE "uroce-view-XXXXXX"

/* Where PRELOAD is, relative to the directory of libibverbs.so.1: if installed, and in a build
 * tree. */
static const char *const preload_dirs[] = {"view", "../viewpreload"};

/* Where our rdma(8) is, in the same way. */
static const char *const rdma_dirs[] = {"view", "../../app"};

/* PRELOAD has it, if an outer uroce-run has it preloaded in this process. */
void uroce_view_leave(void) __attribute__((weak));

static int view_refuse(int code, const char *what, char *error, size_t error_size)
{
	snprintf(error, error_size, "view: %s: %s", what, strerror(code));
	return -code;
}

int view_find_preload(const char *library, char *path, size_t path_size, char *error,
		      size_t error_size)
{
	char *real;

	for (size_t i = 0; i < RTE_DIM(preload_dirs); i++) {
		if (snprintf(path, path_size, "%s/%s/" PRELOAD, library, preload_dirs[i]) >=
		    (int)path_size)
			continue;
		real = realpath(path, NULL);
		if (!real)
			continue;
		snprintf(path, path_size, "%s", real);
		free(real);
		if (strpbrk(path, ": $") == NULL)
			return 0;
		snprintf(error, error_size,
			 "view: %s: the dynamic linker preloads nothing whose name contains ' ', "
			 "':' or '$'; move uroce",
			 path);
		return -EINVAL;
	}
	snprintf(error, error_size, "view: " PRELOAD " is not below %s; install uroce again",
		 library);
	return -ENOENT;
}

/* Describe the device as far as the settings tell, and return the number of devices. The process
 * that opens the device knows more. */
static size_t view_expect(const struct settings *settings, struct view_facts *facts)
{
	/* uroced chooses the names of its devices. */
	if (settings->netdev[0] == '\0' && settings->port[0] == '\0')
		return 0;
	*facts = (struct view_facts){.state = IBV_PORT_DOWN, .active_width = 1, .active_speed = 1};
	snprintf(facts->name, sizeof(facts->name), "%s", settings->name);
	snprintf(facts->netdev, sizeof(facts->netdev), "%.15s", settings->netdev);
	snprintf(facts->fw_ver, sizeof(facts->fw_ver), "%s", UROCE_VERSION);
	for (size_t i = 0; i < settings->ip_count && i < VIEW_GIDS_MAX - 1; i++)
		memcpy(facts->gids[i + 1].raw, settings->ips[i].gid, sizeof(facts->gids[0].raw));
	return 1;
}

/* Close all descriptors from 3 on except those of a server. */
static void close_others(const struct view_server *server, int ready)
{
	const int keep[] = {ready, server->root, server->entry.memory, server->entry.door,
			    server->entry.doorbell};

	launch_close_from(3, keep, RTE_DIM(keep));
}

/* Leave the caller's session, directory and open files, and set signals to their defaults. */
static int server_detach(void)
{
	struct rlimit files;
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	if (null < 0 || launch_begin_session() != 0 || chdir("/") != 0)
		return -errno;
	for (int fd = 0; fd <= 2; fd++)
		if (dup2(null, fd) < 0)
			return -errno;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	signal(SIGHUP, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	umask(022);
	/* Each counter of each device has a file that stays open. */
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	prctl(PR_SET_NAME, "uroce-view");
	return 0;
}

/* A view whose server is about to start. */
struct view_plan {
	int root;
	const char *dir; /* removed at the end; NULL: nothing to remove, because the file system is
			    mounted */
	mode_t mode;	 /* of the files by which processes come in */
	struct view_facts expected;
	size_t expected_count;
};

/* Move a descriptor away from those of stdin, stdout and stderr. */
static int move_up(int fd)
{
	return fd > 2 ? fd : fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

static void server_run(const struct view_plan *plan, struct view_server *server, int ready,
		       pid_t program)
{
	server->root = move_up(plan->root);
	server->entry.memory = move_up(server->entry.memory);
	server->entry.door = move_up(server->entry.door);
	server->entry.doorbell = move_up(server->entry.doorbell);
	ready = move_up(ready);
	if (server_detach() != 0)
		return;
	close_others(server, ready);
	/* The program cannot have ended: it waits for `ready`. */
	server->watched = program;
	view_serve(server, ready);
	if (plan->dir)
		view_tree_remove(AT_FDCWD, plan->dir);
}

/* Start the server, and wait until the files are there. */
static int view_start_server(const struct view_plan *plan, char *error, size_t error_size)
{
	struct view_server server = {
		.expected = &plan->expected,
		.expected_count = plan->expected_count,
	};
	const pid_t program = getpid();
	int ready[2], status, rc = 0;
	pid_t child;
	char byte;

	server.table = view_table_create(plan->root, plan->mode, &server.entry);
	if (!server.table || pipe2(ready, O_CLOEXEC) != 0)
		return view_refuse(errno, "cannot make its table", error, error_size);
	child = fork();
	if (child == 0) {
		/* The server must not be the program's child: the program might wait for it. */
		child = fork();
		if (child == 0)
			server_run(plan, &server, ready[1], program);
		_exit(child < 0 ? errno : 0);
	}
	close(ready[1]);
	if (child < 0)
		rc = view_refuse(errno, "cannot start its server", error, error_size);
	else if (waitpid(child, &status, 0) == child && status != 0)
		rc = view_refuse(WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD,
				 "cannot start its server", error, error_size);
	else if (read(ready[0], &byte, 1) != 1)
		rc = view_refuse(ECHILD, "its server does not start", error, error_size);
	close(ready[0]);
	view_entry_close(&server.entry);
	munmap(server.table, sizeof(*server.table));
	return rc;
}

/* Make the directories. The user's umask does not change their modes. */
static int view_begin(int root)
{
	const mode_t mask = umask(022);
	const int rc = view_tree_begin(root);

	umask(mask);
	return rc;
}

static int view_by_mount(const struct settings *settings, enum view_way way, char *error,
			 size_t error_size)
{
	struct view_plan plan = {.mode = 0666};
	int rc;

	plan.expected_count = view_expect(settings, &plan.expected);
	plan.root = view_mount(way, view_begin, error, error_size);
	if (plan.root < 0)
		return plan.root;
	rc = view_start_server(&plan, error, error_size);
	close(plan.root);
	if (rc == 0 && setenv(VIEW_VARIABLE, "/", 1) != 0)
		rc = view_refuse(ENOMEM, "environment", error, error_size);
	return rc;
}

/* Make the directory of the files where the first attempt works, and open it. */
static int view_make_dir(char *dir, size_t size, char *error, size_t error_size)
{
	const char *const parents[] = {"/dev/shm", local_env_dir("TMPDIR"), "/tmp"};
	int root;

	for (size_t i = 0; i < RTE_DIM(parents); i++) {
		if (!parents[i] ||
		    snprintf(dir, size, "%s/" TREE_TEMPLATE, parents[i]) >= (int)size ||
		    !mkdtemp(dir))
			continue;
		root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (root >= 0 && fchmod(root, 0755) == 0 && view_begin(root) == 0)
			return root;
		if (root >= 0)
			close(root);
		view_tree_remove(AT_FDCWD, dir);
	}
	return view_refuse(errno, "no directory for its files in /dev/shm, $TMPDIR and /tmp", error,
			   error_size);
}

static int view_set_preload(const char *preload, const char *dir)
{
	const char *old = getenv("LD_PRELOAD");

	if (setenv(VIEW_VARIABLE, dir, 1) != 0)
		return -ENOMEM;
	/* An outer uroce-run has preloaded it. */
	if (old && strstr(old, preload))
		return 0;
	/* Last: a sanitizer's library must be the first. */
	return launch_append("LD_PRELOAD", preload);
}

static int view_by_preload(const struct settings *settings, const char *library, char *error,
			   size_t error_size)
{
	char preload[PATH_MAX], dir[64];
	struct view_plan plan = {.mode = 0600, .dir = dir};
	int rc;

	rc = view_find_preload(library, preload, sizeof(preload), error, error_size);
	if (rc != 0)
		return rc;
	plan.expected_count = view_expect(settings, &plan.expected);
	plan.root = view_make_dir(dir, sizeof(dir), error, error_size);
	if (plan.root < 0)
		return plan.root;
	rc = view_start_server(&plan, error, error_size);
	close(plan.root);
	if (rc != 0) {
		view_tree_remove(AT_FDCWD, dir);
		return rc;
	}
	return view_set_preload(preload, dir) == 0
		       ? 0
		       : view_refuse(ENOMEM, "environment", error, error_size);
}

/* Let the program find our rdma(8) first. The system's asks the kernel, which does not know the
 * device. */
static int view_offer_rdma(const char *library)
{
	const char *old = getenv("PATH");
	char path[PATH_MAX], *dir;
	int rc = 0;

	/* A list of this directory alone would hide the C library's default. */
	if (!old || *old == '\0')
		return 0;
	for (size_t i = 0; i < RTE_DIM(rdma_dirs); i++) {
		if (snprintf(path, sizeof(path), "%s/%s/rdma", library, rdma_dirs[i]) >=
			    (int)sizeof(path) ||
		    access(path, X_OK) != 0)
			continue;
		*strrchr(path, '/') = '\0';
		dir = realpath(path, NULL);
		/* A list cannot contain ':', and that of an outer uroce-run has it already. */
		if (dir && !strchr(dir, ':') &&
		    (strncmp(old, dir, strlen(dir)) != 0 || old[strlen(dir)] != ':'))
			rc = launch_prepend("PATH", dir);
		free(dir);
		break;
	}
	return rc;
}

void view_leave(void)
{
	unsetenv(VIEW_VARIABLE);
	if (uroce_view_leave)
		uroce_view_leave();
}

static int view_begin_any(const struct settings *settings, const char *library, char *error,
			  size_t error_size)
{
	enum view_way way = VIEW_WAY_NONE;

	if (settings->view != SETTINGS_VIEW_PRELOAD)
		way = view_mount_way();
	if (way != VIEW_WAY_NONE)
		return view_by_mount(settings, way, error, error_size);
	if (settings->view == SETTINGS_VIEW_MOUNT)
		return view_refuse(EPERM, "a mount namespace is not allowed here", error,
				   error_size);
	if (view_by_preload(settings, library, error, error_size) == 0 ||
	    settings->view == SETTINGS_VIEW_YES)
		return 0;
	return -EIO;
}

int view_start(const struct settings *settings, const char *library, char *error, size_t error_size)
{
	int rc;

	if (settings->view == SETTINGS_VIEW_NO)
		return 0;
	rc = view_begin_any(settings, library, error, error_size);
	if (rc == 0 && getenv(VIEW_VARIABLE) && view_offer_rdma(library) != 0)
		rc = view_refuse(ENOMEM, "environment", error, error_size);
	return rc;
}
