/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes consistent copies of reports. */
#include "report/read.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/write.h"

/* The kernel's name of such a memory file. */
#define LINK "/memfd:" REPORT_FILE " (deleted)"

/* Number of reports read so far, by user. */
struct user {
	uid_t uid;
	uint32_t count;
};

struct scan {
	struct report_set *set;
	uint32_t major, minor; /* the device of all memory files */
	/* Files seen so far: a child of a process has its descriptors too. */
	uint64_t *inodes;
	size_t count, room;
	struct user *users;
	size_t user_count;
};

/* A process, as the kernel describes it. */
struct process {
	pid_t pid;
	pid_t own_pid; /* in its own PID namespace; 0: the process has gone */
	uid_t uid;     /* the real user: a program with other rights still belongs to its user */
};

static bool see(struct scan *scan, uint64_t inode)
{
	for (size_t i = 0; i < scan->count; i++) {
		if (scan->inodes[i] == inode)
			return false;
	}
	if (scan->count == scan->room) {
		const size_t room = scan->room ? 2 * scan->room : 64;
		uint64_t *inodes = realloc(scan->inodes, room * sizeof(*inodes));

		if (!inodes)
			return false;
		scan->inodes = inodes;
		scan->room = room;
	}
	scan->inodes[scan->count++] = inode;
	return true;
}

/* Return true if one more report of this user may be read. */
static bool user_may(struct scan *scan, uid_t uid)
{
	struct user *users;
	size_t i = 0;

	if (uid == 0)
		return true;
	while (i < scan->user_count && scan->users[i].uid != uid)
		i++;
	if (i == scan->user_count) {
		users = realloc(scan->users, (i + 1) * sizeof(*users));
		if (!users)
			return false;
		scan->users = users;
		users[scan->user_count++] = (struct user){.uid = uid};
	}
	return scan->users[i].count++ < SCAN_USER_MAX;
}

static void process_look(struct process *process, pid_t pid)
{
	char path[64], line[256];
	FILE *file;

	*process = (struct process){.pid = pid, .uid = (uid_t)-1};
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "Uid:", 4) == 0)
			process->uid = (uid_t)strtoul(line + 4, NULL, 10);
		if (strncmp(line, "NSpid:", 6) == 0)
			process->own_pid = (pid_t)strtol(
				strrchr(line, '\t') ? strrchr(line, '\t') : line + 6, NULL, 10);
	}
	if (file)
		fclose(file);
}

/* Get the device and the inode of a file that is not open yet. The kernel answers from memory,
 * without asking the file system. */
static int file_look(int path_fd, struct statx *file)
{
	return statx(path_fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, file) == 0
		       ? 0
		       : -errno;
}

/* Get the device of memory files. They are all in one file system, which nobody can mount. Other
 * files may have the same name. */
static int learn_device(struct scan *scan)
{
	const int fd = memfd_create(REPORT_FILE, MFD_CLOEXEC);
	struct statx file;
	int rc;

	if (fd < 0)
		return -errno;
	rc = file_look(fd, &file);
	close(fd);
	scan->major = file.stx_dev_major;
	scan->minor = file.stx_dev_minor;
	return rc;
}

/* Open a memory file in a process's directory of descriptors; -1 if it is not one, or if a process
 * has a lease on it. */
static int open_report(struct scan *scan, int directory, const char *name, uint64_t *inode)
{
	const int path_fd = openat(directory, name, O_PATH | O_CLOEXEC);
	char path[64];
	struct statx file;
	int fd = -1;

	if (path_fd < 0)
		return -1;
	if (file_look(path_fd, &file) == 0 && file.stx_dev_major == scan->major &&
	    file.stx_dev_minor == scan->minor) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
		fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0 && errno == EWOULDBLOCK)
			scan->set->left_out++;
		*inode = file.stx_ino;
	}
	close(path_fd);
	return fd;
}

static void take(struct scan *scan, const struct process *process, int fd, uint64_t inode)
{
	struct report *report;

	if (report_map(fd, &report) != 0)
		return;
	/* A forked child has its parent's report, and may have one of its own. */
	if (report->pid != process->own_pid || !see(scan, inode)) {
		report_unmap(report);
	} else if (report_set_add(scan->set, process->pid, 0, report) != 0) {
		scan->set->left_out++;
		report_unmap(report);
	}
}

static void scan_report(struct scan *scan, const struct process *process, int directory,
			const char *name)
{
	uint64_t inode;
	const int fd = open_report(scan, directory, name, &inode);

	if (fd < 0)
		return;
	take(scan, process, fd, inode);
	close(fd);
}

static void scan_process(struct scan *scan, pid_t pid)
{
	struct process process = {.pid = 0};
	char path[64], link[64];
	const struct dirent *entry;
	uint32_t count = 0, looks = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)) != NULL) {
		ssize_t len;

		/* The directory also has "." and "..". */
		if (looks++ == SCAN_FDS_MAX + 2) {
			scan->set->left_out++;
			break;
		}
		len = readlinkat(dirfd(dir), entry->d_name, link, sizeof(link));
		if (len != (ssize_t)strlen(LINK) || memcmp(link, LINK, strlen(LINK)) != 0)
			continue;
		if (process.pid == 0)
			process_look(&process, pid);
		if (count++ < SCAN_PROCESS_MAX && user_may(scan, process.uid))
			scan_report(scan, &process, dirfd(dir), entry->d_name);
		else
			scan->set->left_out++;
	}
	if (dir)
		closedir(dir);
}

int report_scan(struct report_set *set)
{
	struct scan scan = {.set = set};
	const struct dirent *entry;
	DIR *dir;
	int rc;

	rc = learn_device(&scan);
	if (rc != 0)
		return rc;
	dir = opendir("/proc");
	if (!dir)
		return -errno;
	while ((entry = readdir(dir)) != NULL) {
		char *end;
		const long pid = strtol(entry->d_name, &end, 10);

		if (end != entry->d_name && *end == '\0' && pid > 0)
			scan_process(&scan, (pid_t)pid);
	}
	closedir(dir);
	free(scan.inodes);
	free(scan.users);
	return 0;
}

uint32_t report_ask(struct report *report)
{
	return __atomic_add_fetch(&report->wanted, 1, __ATOMIC_RELAXED);
}

bool report_answered(const struct report *report, uint32_t asked)
{
	return (int32_t)(__atomic_load_n(&report->answered, __ATOMIC_RELAXED) - asked) >= 0 &&
	       (__atomic_load_n(&report->sequence, __ATOMIC_ACQUIRE) & 1) == 0;
}

static void make_printable(char *text, size_t size)
{
	text[size - 1] = '\0';
	for (char *c = text; *c != '\0'; c++) {
		if (*c < ' ' || *c > '~')
			*c = '?';
	}
}

static void end_texts(struct report_view *view)
{
	make_printable(view->facts.device, sizeof(view->facts.device));
	make_printable(view->facts.port, sizeof(view->facts.port));
	for (uint32_t i = 0; i < view->stat_count; i++)
		make_printable(view->stats[i].name, sizeof(view->stats[i].name));
	for (uint32_t i = 0; i < view->record_count; i++) {
		if (view->records[i].kind == REPORT_CM_ID)
			make_printable(view->records[i].cm_id.state,
				       sizeof(view->records[i].cm_id.state));
	}
}

/* Copy a report. Read each count once: it may change at any time. */
static int copy(const struct report *report, struct report_view *view)
{
	const uint32_t records = __atomic_load_n(&report->record_count, __ATOMIC_RELAXED);
	const uint32_t stats = __atomic_load_n(&report->stat_count, __ATOMIC_RELAXED);
	const uint32_t attached = __atomic_load_n(&report->attached_count, __ATOMIC_RELAXED);
	struct report_record *more;

	if (records > REPORT_RECORDS_MAX || stats > REPORT_STATS_MAX ||
	    attached > REPORT_ATTACHED_MAX)
		return -EPROTO;
	more = realloc(view->records, (records + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	view->records = more;
	view->record_count = records;
	view->stat_count = stats;
	view->written_ns = report->written_ns;
	view->facts = report->facts;
	view->cc_params = report->cc_params;
	view->attached_count = attached;
	memcpy(view->attached, report->attached, attached * sizeof(view->attached[0]));
	memcpy(view->totals, report->totals, sizeof(view->totals));
	memcpy(view->stats, report->stats, stats * sizeof(view->stats[0]));
	memcpy(more, report->records, records * sizeof(*more));
	return 0;
}

int report_read(const struct report *report, struct report_view *view)
{
	const uint32_t sequence = __atomic_load_n(&report->sequence, __ATOMIC_ACQUIRE);
	int rc;

	view->records = NULL;
	if (report->version != REPORT_VERSION || report->bytes != sizeof(*report))
		return -EPROTO;
	if (sequence == 0 || (sequence & 1))
		return -EAGAIN;
	rc = copy(report, view);
	/* Order the reads of the copy before the read of the sequence. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (__atomic_load_n(&report->sequence, __ATOMIC_RELAXED) != sequence)
		rc = -ESTALE;
	if (rc == 0)
		end_texts(view);
	else
		report_release(view);
	return rc;
}

void report_release(struct report_view *view)
{
	free(view->records);
	view->records = NULL;
	view->record_count = 0;
}

void report_comm(pid_t pid, char comm[32])
{
	char path[64];
	ssize_t len = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		len = read(fd, comm, 31);
		close(fd);
	}
	comm[len > 0 ? len : 0] = '\0';
	comm[strcspn(comm, "\n")] = '\0';
	make_printable(comm, 32);
}
