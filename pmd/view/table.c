/* SPDX-License-Identifier: BSD-3-Clause */
/* The shared table of a view: creates it, maps it, and reads slots with distrust. */
#include "view/table.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG	     64
#define CONTROL_SIZE CMSG_SPACE(sizeof(int))

static struct view_table *table_map(int fd)
{
	struct view_table *table;

	table = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return table == MAP_FAILED ? NULL : table;
}

/* Make the memory of the table. No process can make it shorter: access behind a file's end is a
 * SIGBUS. */
static int memory_create(void)
{
	const int fd = memfd_create("uroce-view", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 && ftruncate(fd, (off_t)sizeof(struct view_table)) == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Make the socket at which processes get the memory. The mode is exact: this process has one thread
 * (its caller is uroce-run), so the umask may be changed for a moment. */
static int socket_create(int root, mode_t mode)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t mask;
	int rc;

	if (fd < 0)
		return -1;
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/" VIEW_TABLE, root);
	mask = umask(~mode & 0777);
	rc = bind(fd, (const struct sockaddr *)&address, sizeof(address));
	umask(mask);
	if (rc == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	close(fd);
	return -1;
}

static int doorbell_create(int root, mode_t mode)
{
	const mode_t mask = umask(~mode & 0777);
	const int rc = mkfifoat(root, VIEW_DOORBELL, mode);

	umask(mask);
	/* Also for writing, so that it never reports that the last writer has closed it. */
	return rc == 0 ? openat(root, VIEW_DOORBELL, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW)
		       : -1;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

void view_entry_close(const struct view_entry *entry)
{
	close_fd(entry->memory);
	close_fd(entry->door);
	close_fd(entry->doorbell);
}

struct view_table *view_table_create(int root, mode_t mode, struct view_entry *entry)
{
	struct view_table *table;

	entry->memory = memory_create();
	entry->door = socket_create(root, mode);
	entry->doorbell = doorbell_create(root, mode);
	table = entry->memory < 0 || entry->door < 0 || entry->doorbell < 0
			? NULL
			: table_map(entry->memory);
	if (!table) {
		view_entry_close(entry);
		return NULL;
	}
	table->bytes = sizeof(*table);
	table->magic = VIEW_MAGIC;
	return table;
}

static void send_memory(int socket, int memory)
{
	union {
		struct cmsghdr align;
		char bytes[CONTROL_SIZE];
	} control = {0};
	struct iovec byte = {.iov_base = "", .iov_len = 1};
	struct msghdr message = {.msg_iov = &byte,
				 .msg_iovlen = 1,
				 .msg_control = control.bytes,
				 .msg_controllen = CONTROL_SIZE};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(memory));
	memcpy(CMSG_DATA(header), &memory, sizeof(memory));
	(void)sendmsg(socket, &message, MSG_NOSIGNAL);
}

void view_table_admit(const struct view_entry *entry)
{
	int fd;

	/* At most one queue of processes: the server has other work. */
	for (int i = 0; i < BACKLOG; i++) {
		fd = accept4(entry->door, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0)
			return;
		send_memory(fd, entry->memory);
		close(fd);
	}
}

/* Get the path of one of our files in this process's view. */
static bool view_path(const char *file, char *path, size_t size)
{
	/* A program with more rights than its user must not obey the user's environment. */
	const char *root = secure_getenv(VIEW_VARIABLE);

	if (!root || root[0] != '/')
		return false;
	return snprintf(path, size, "%s/%s", strcmp(root, "/") == 0 ? "" : root, file) < (int)size;
}

/* Receive the memory. Wait for a short time only: the server may be stopped. */
static int receive_memory(int socket)
{
	union {
		struct cmsghdr align;
		char bytes[CONTROL_SIZE];
	} control;
	char byte;
	struct iovec room = {.iov_base = &byte, .iov_len = 1};
	struct msghdr message = {.msg_iov = &room,
				 .msg_iovlen = 1,
				 .msg_control = control.bytes,
				 .msg_controllen = CONTROL_SIZE};
	const struct cmsghdr *header;
	int fd;

	if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1)
		return -1;
	header = CMSG_FIRSTHDR(&message);
	if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
	    header->cmsg_len != CMSG_LEN(sizeof(fd)))
		return -1;
	memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return fd;
}

static int ask_for_memory(void)
{
	const struct timeval timeout = {.tv_sec = VIEW_ANSWER_S};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, memory = -1;

	if (!view_path(VIEW_TABLE, address.sun_path, sizeof(address.sun_path)))
		return -1;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	/* The first one also limits the wait in connect(2). */
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) == 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) == 0 &&
	    connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		memory = receive_memory(fd);
	close(fd);
	return memory;
}

/* Return true if a file is a table's memory, and nobody can make it shorter. */
static bool is_memory(int fd)
{
	const int seals = fcntl(fd, F_GET_SEALS);
	struct stat file;

	return seals >= 0 && (seals & F_SEAL_SHRINK) && fstat(fd, &file) == 0 &&
	       file.st_size == (off_t)sizeof(struct view_table);
}

struct view_table *view_table_open(void)
{
	struct view_table *table = NULL;
	const int fd = ask_for_memory();

	if (fd < 0)
		return NULL;
	if (is_memory(fd))
		table = table_map(fd);
	close(fd);
	if (table && (table->magic != VIEW_MAGIC || table->bytes != sizeof(*table))) {
		munmap(table, sizeof(*table));
		return NULL;
	}
	/* A child process takes a slot of its own. */
	if (table)
		madvise(table, sizeof(*table), MADV_DONTFORK);
	return table;
}

void view_table_ring(void)
{
	char path[PATH_MAX];
	int fd;

	if (!view_path(VIEW_DOORBELL, path, sizeof(path)))
		return;
	fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return;
	/* A full FIFO wakes the server as well. */
	if (write(fd, "", 1) < 0)
		errno = 0;
	close(fd);
}

/* Return true if the text is terminated and can be the name of a file. */
static bool is_name(const char *text, size_t size)
{
	const size_t len = strnlen(text, size);

	if (len == size || text[0] == '.')
		return false;
	for (size_t i = 0; i < len; i++)
		if (text[i] == '/' || !isgraph((unsigned char)text[i]))
			return false;
	return true;
}

static bool facts_are_sane(const struct view_facts *facts)
{
	if (facts->name[0] == '\0' || facts->number >= VIEW_DEVICES_MAX ||
	    !is_name(facts->name, sizeof(facts->name)) ||
	    !is_name(facts->netdev, sizeof(facts->netdev)) ||
	    !is_name(facts->fw_ver, sizeof(facts->fw_ver)))
		return false;
	for (size_t i = 0; i < VIEW_GIDS_MAX; i++)
		if (!is_name(facts->gids[i].ndev, sizeof(facts->gids[i].ndev)))
			return false;
	return true;
}

uint32_t view_slot_read(const struct view_slot *slot, struct view_facts *facts)
{
	const uint32_t sequence = __atomic_load_n(&slot->sequence, __ATOMIC_ACQUIRE);

	if (sequence == 0 || (sequence & 1))
		return 0;
	*facts = slot->facts;
	/* Orders the copy before the second look at the sequence number. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (__atomic_load_n(&slot->sequence, __ATOMIC_RELAXED) != sequence)
		return 0;
	return facts_are_sane(facts) ? sequence : 0;
}
