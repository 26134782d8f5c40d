/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receives from processes that may send anything. Closing the last reference of a descriptor may
 * block for as long as its sender likes: a file of a file system that never answers, a TCP socket
 * that lingers, unread messages in a socket's queue, even an eventfd in an epoll set of the sender.
 * So the caller's thread closes no descriptor that it received.
 */
#include "memif/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <rte_common.h>

#include "base/thread.h"

#define POPULATE_BYTES_MAX ((size_t)16 << 20) /* limit per connection: the engine waits */

#ifndef MADV_POPULATE_WRITE /* since Linux 5.14; before it, pages come one by one */
#define MADV_POPULATE_WRITE 23
#endif

void memory_populate(void *memory, size_t bytes, size_t before)
{
	const size_t left = POPULATE_BYTES_MAX - RTE_MIN(before, POPULATE_BYTES_MAX);
	const size_t now = RTE_MIN(bytes, left);

	/* Ignore errors: both calls only make the first packets faster. */
	madvise(memory, bytes, MADV_HUGEPAGE);
	madvise(memory, now, MADV_POPULATE_WRITE);
}

#ifndef SCM_PIDFD
#define SCM_PIDFD 4
#endif

#define CLOSERS_MAX	 32 /* threads that close at one time */
#define CLOSERS_USER_MAX 8  /* of these threads, for one user */
/* Limits of jobs that wait for these threads: in total and per user, after which nothing more is
 * received that would have to be closed; and a limit after which no new client is accepted. A
 * received message brings up to 253 more. */
#define WAITING_MAX	 512
#define WAITING_USER_MAX 64
#define WAITING_LATE_MAX 128

/*
 * Room for all descriptors that a message can bring (SCM_MAX_FD, 253), with credentials and a label
 * before them. The kernel closes descriptors that do not fit, in the caller's thread.
 */
union control {
	struct cmsghdr header;
	char room[8192];
};

int memif_socket_send(int fd, const void *data, size_t len)
{
	return send(fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

int memif_socket_send_with(int fd, const void *data, size_t len, int passed_fd)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)data, .iov_len = len};
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} room = {0};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &room,
			     .msg_controllen = sizeof(room.room)};

	if (passed_fd < 0)
		return memif_socket_send(fd, data, len);
	room.header.cmsg_level = SOL_SOCKET;
	room.header.cmsg_type = SCM_RIGHTS;
	room.header.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&room.header), &passed_fd, sizeof(passed_fd));
	return sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* Take the descriptors of a control message. The first one goes to `first` if that is still unset.
 * Returns how many there were. */
static size_t take_fds(struct cmsghdr *header, int *first)
{
	const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);

	for (size_t i = 0; i < count; i++) {
		int fd;

		memcpy(&fd, CMSG_DATA(header) + i * sizeof(fd), sizeof(fd));
		if (*first < 0)
			*first = fd;
		else
			memif_socket_discard(fd);
	}
	return count;
}

/* Take all descriptors. A pidfd arrives if our end has an option set, which it may have from the
 * listening socket of a service manager. */
static size_t take_all(struct msghdr *msg, int *first)
{
	size_t count = 0;

	for (struct cmsghdr *header = CMSG_FIRSTHDR(msg); header;
	     header = CMSG_NXTHDR(msg, header)) {
		if (header->cmsg_level == SOL_SOCKET &&
		    (header->cmsg_type == SCM_RIGHTS || header->cmsg_type == SCM_PIDFD))
			count += take_fds(header, first);
	}
	return count;
}

/* Return true if the next message brings a descriptor. Does not receive the message. */
static bool brings_fd(int fd)
{
	struct msghdr msg = {0};

	return recvmsg(fd, &msg, MSG_DONTWAIT | MSG_PEEK) >= 0 && (msg.msg_flags & MSG_CTRUNC);
}

int memif_socket_receive(int fd, void *data, size_t size, int *passed_fd)
{
	struct iovec iov = {.iov_base = data, .iov_len = size};
	union control control;
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control.room)};
	size_t count;
	int rc = -EPROTO;
	ssize_t len;

	*passed_fd = -1;
	if (memif_socket_is_stuck() && brings_fd(fd))
		return -EBUSY;
	len = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_TRUNC);
	if (len < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	count = take_all(&msg, passed_fd);
	if (count <= (len > 0 ? 1 : 0)) {
		if (!(msg.msg_flags & MSG_CTRUNC))
			return (int)len;
		/* The control buffer has room for all descriptors, so this process has none. */
		rc = -EMFILE;
	}
	memif_socket_discard(*passed_fd);
	*passed_fd = -1;
	return rc;
}

bool memif_socket_is_eventfd(int fd)
{
	/* A file's name begins with a slash, so no file can have this name. */
	static const char wanted[] = "anon_inode:[eventfd]";
	char link[64], target[sizeof(wanted)];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return readlink(link, target, sizeof(target)) == (ssize_t)strlen(wanted) &&
	       memcmp(target, wanted, strlen(wanted)) == 0;
}

bool memif_socket_is_sealed(int fd)
{
	/* Only files in memory have seals. */
	const int seals = fcntl(fd, F_GET_SEALS);
	struct statfs file_system;

	/* Refuse huge pages: an access to one that is not reserved would be a fault. */
	return seals >= 0 && (seals & F_SEAL_SHRINK) && fstatfs(fd, &file_system) == 0 &&
	       file_system.f_type == TMPFS_MAGIC;
}

/* A user with descriptors that are being closed. */
struct user {
	LIST_ENTRY(user) link;
	uint64_t number;
	uint32_t waiting; /* jobs */
	uint32_t closers; /* threads that run one of its jobs */
};

/* A descriptor or memory that a closing thread must release. */
struct job {
	STAILQ_ENTRY(job) link;
	struct user *user;
	int fd; /* -1: memory */
	void *memory;
	size_t bytes;
	bool ours; /* memory: of a file of our own */
};

static pthread_mutex_t lock =
	PTHREAD_MUTEX_INITIALIZER; /* protects what follows; held only briefly */
static STAILQ_HEAD(, job) waiting = STAILQ_HEAD_INITIALIZER(waiting);
static LIST_HEAD(, user) users = LIST_HEAD_INITIALIZER(users);
static uint32_t waiting_count;
static uint32_t closer_count; /* threads */
static struct user nobody;
static __thread uint64_t charged; /* a user's number */

static struct user *user_find_locked(uint64_t number)
{
	struct user *user;

	if (number == 0)
		return &nobody;
	LIST_FOREACH (user, &users, link) {
		if (user->number == number)
			return user;
	}
	return NULL;
}

static struct user *user_get_locked(uint64_t number)
{
	struct user *user = user_find_locked(number);

	if (user)
		return user;
	user = calloc(1, sizeof(*user));
	if (!user)
		return &nobody;
	user->number = number;
	LIST_INSERT_HEAD(&users, user, link);
	return user;
}

static void user_put_locked(struct user *user)
{
	if (user == &nobody || user->waiting > 0 || user->closers > 0)
		return;
	LIST_REMOVE(user, link);
	free(user);
}

/* Find the first job whose user may use another thread. Jobs of nobody may use all threads. */
static struct job *job_find_locked(void)
{
	struct job *job;

	STAILQ_FOREACH (job, &waiting, link) {
		if (job->user == &nobody || job->user->closers < CLOSERS_USER_MAX)
			return job;
	}
	return NULL;
}

/* Free a job that is done (or NULL), and return the next one; NULL: there is none, and the caller's
 * thread is no longer counted. */
static struct job *job_next(struct job *done)
{
	struct job *job;

	pthread_mutex_lock(&lock);
	if (done) {
		done->user->closers--;
		user_put_locked(done->user);
		free(done);
	}
	job = job_find_locked();
	if (job) {
		STAILQ_REMOVE(&waiting, job, job, link);
		waiting_count--;
		job->user->waiting--;
		job->user->closers++;
	} else {
		closer_count--;
	}
	pthread_mutex_unlock(&lock);
	return job;
}

static void job_do(const struct job *job)
{
	const struct linger none = {.l_onoff = 0};

	if (job->fd >= 0) {
		/* This has no effect if it is not a socket. */
		setsockopt(job->fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
		close(job->fd);
		return;
	}
	/* MADV_REMOVE punches a hole as large as the file, and takes the file's lock, which any
	 * process that has it open may hold. It fails for memory that is locked, as all memory of a
	 * program that called mlockall is. */
	if (job->ours) {
		munlock(job->memory, job->bytes);
		madvise(job->memory, job->bytes, MADV_REMOVE);
	}
	munmap(job->memory, job->bytes);
}

static void *closer_run(void *arg)
{
	struct job *job = NULL;

	while ((job = job_next(job)) != NULL)
		job_do(job);
	return arg;
}

/* Start a closing thread. If that fails, a thread that is started later does the job. */
static void closer_start(void)
{
	if (thread_start(closer_run, NULL, 0) == 0)
		return;
	pthread_mutex_lock(&lock);
	closer_count--;
	pthread_mutex_unlock(&lock);
}

static void let_go(const struct job *what)
{
	struct job *job = malloc(sizeof(*job));
	bool starts;

	/* Without memory for the job, the descriptor or mapping leaks. */
	if (!job)
		return;
	*job = *what;
	pthread_mutex_lock(&lock);
	job->user = user_get_locked(charged);
	job->user->waiting++;
	STAILQ_INSERT_TAIL(&waiting, job, link);
	waiting_count++;
	starts = closer_count < CLOSERS_MAX;
	closer_count += starts;
	pthread_mutex_unlock(&lock);
	if (starts)
		closer_start();
}

uint64_t memif_socket_charge(uint64_t user)
{
	const uint64_t before = charged;

	charged = user;
	return before;
}

bool memif_socket_is_stuck(void)
{
	const struct user *user;
	bool stuck;

	pthread_mutex_lock(&lock);
	user = user_find_locked(charged);
	stuck = waiting_count >= WAITING_MAX ||
		(user && user != &nobody && user->waiting >= WAITING_USER_MAX);
	pthread_mutex_unlock(&lock);
	return stuck;
}

bool memif_socket_is_late(void)
{
	bool late;

	pthread_mutex_lock(&lock);
	late = waiting_count >= WAITING_LATE_MAX;
	pthread_mutex_unlock(&lock);
	return late;
}

void memif_socket_discard(int fd)
{
	if (fd >= 0)
		let_go(&(const struct job){.fd = fd});
}

void memif_socket_unmap(void *memory, size_t bytes)
{
	let_go(&(const struct job){.fd = -1, .memory = memory, .bytes = bytes});
}

void memif_socket_remove(void *memory, size_t bytes)
{
	let_go(&(const struct job){.fd = -1, .memory = memory, .bytes = bytes, .ours = true});
}

void memif_socket_end(int epoll_fd, int fd)
{
	if (fd < 0)
		return;
	/* The descriptor is closed some time later, and the process that passed it has it open,
	 * too. */
	epoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	shutdown(fd, SHUT_RDWR);
	memif_socket_discard(fd);
}
