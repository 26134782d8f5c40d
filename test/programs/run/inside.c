/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program with its own threads, handlers and descriptors. It checks that the device that it opens
 * does not disturb them. The argument selects a check; failures are reported on stderr.
 */
#include "inside.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <linux/capability.h>

#define SOCKETS 32

struct ibv_context *open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;

	EXPECT(context);
	return context;
}

static void handler(int sig)
{
	(void)sig;
}

static volatile bool ended;

static void *start(void *arg)
{
	open_device();
	ended = true;
	return arg;
}

static bool is_kept(int sig)
{
	struct sigaction now;

	sigaction(sig, NULL, &now);
	return now.sa_handler == handler;
}

/* Change one signal and one file after another while the devices start. */
static void check_start(void)
{
	static int fds[4096];
	int count = 0;
	pthread_t thread;

	EXPECT(pthread_create(&thread, NULL, start, NULL) == 0);
	while (!ended) {
		for (int sig = SIGUSR1; sig <= SIGUSR2; sig++)
			signal(sig, count % 2 ? SIG_DFL : handler);
		if (count < 4096)
			fds[count++] = open("/dev/null", O_RDONLY);
		signal(SIGPIPE, SIG_IGN);
		signal(SIGUSR1, handler);
		signal(SIGCHLD, handler);
		usleep(100);
		EXPECT(is_kept(SIGUSR1) && is_kept(SIGCHLD) && !is_kept(SIGPIPE));
	}
	pthread_join(thread, NULL);
	for (int i = 0; i < count; i++)
		EXPECT(fds[i] >= 0 && !(fcntl(fds[i], F_GETFD) & FD_CLOEXEC));
	EXPECT(is_kept(SIGUSR1) && is_kept(SIGCHLD));
}

/* Close all descriptors but those of DPDK's interrupt thread, which checks no mark
 * (doc/user/guest.md). */
static void close_all(void)
{
	static const char *const dpdks[] = {"pipe:", "anon_inode:[eventpoll]",
					    "anon_inode:[timerfd]"};
	char path[64], name[64];

	for (int fd = 3; fd < 1024; fd++) {
		ssize_t len;
		bool is_dpdks = false;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		len = readlink(path, name, sizeof(name) - 1);
		if (len < 0)
			continue;
		name[len] = '\0';
		for (size_t i = 0; i < sizeof(dpdks) / sizeof(dpdks[0]); i++)
			is_dpdks |= strncmp(name, dpdks[i], strlen(dpdks[i])) == 0;
		if (!is_dpdks)
			close(fd);
	}
}

/* Close all descriptors as daemons do: afterwards the numbers are the program's. */
static void check_descriptors(void)
{
	struct ibv_context *context = open_device();
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, channel, 0);
	struct ibv_async_event event = {.event_type = IBV_EVENT_COMM_EST};
	int sockets[SOCKETS][2];
	char bytes[64];

	EXPECT(channel && cq);
	close_all();
	for (int i = 0; i < SOCKETS; i++) {
		EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets[i]) == 0);
		EXPECT(write(sockets[i][0], "hello", 5) == 5 &&
		       write(sockets[i][1], "hello", 5) == 5);
	}
	while (ibv_get_async_event(context, &event) != 0 ||
	       event.event_type != IBV_EVENT_DEVICE_FATAL) {
		ibv_req_notify_cq(cq, 0);
		usleep(1000);
	}
	ibv_destroy_cq(cq);
	ibv_destroy_comp_channel(channel);
	EXPECT(ibv_close_device(context) == 0);
	for (int i = 0; i < SOCKETS; i++) {
		for (int end = 0; end < 2; end++)
			EXPECT(recv(sockets[i][end], bytes, sizeof(bytes), MSG_DONTWAIT) == 5);
	}
}

/* The program reads all signals from a descriptor, and none of its threads can be interrupted. */
static void check_signals(void)
{
	static const int sent[] = {SIGBUS, SIGSEGV, SIGTERM, SIGBUS};
	struct signalfd_siginfo info;
	sigset_t all;
	int fd;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	fd = signalfd(-1, &all, SFD_CLOEXEC);
	open_device();
	for (size_t i = 0; i < 400; i++) {
		const int sig = sent[i % 4];

		EXPECT(kill(getpid(), sig) == 0);
		EXPECT(read(fd, &info, sizeof(info)) == sizeof(info));
		EXPECT((int)info.ssi_signo == sig && (pid_t)info.ssi_pid == getpid());
	}
}

static bool has_no_capability(const char *task)
{
	const uint64_t kept =
		CAP_TO_MASK(CAP_SETUID) | CAP_TO_MASK(CAP_SETGID) | CAP_TO_MASK(CAP_IPC_LOCK);
	unsigned long long effective = ~0ULL;
	char path[128], line[256];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%s/status", task);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "CapEff: %llx", &effective);
	if (file)
		fclose(file);
	return (effective & ~kept) == 0;
}

/* Drop the capabilities of the program, and then change its user. */
static void check_privileges(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	char tasks[4096] = "", *next = tasks, *task;
	FILE *list;

	open_device();
	memset(data, 0, sizeof(data));
	data[0].effective = data[0].permitted = CAP_TO_MASK(CAP_SETUID);
	EXPECT(syscall(SYS_capset, &header, data) == 0);
	list = popen("ls /proc/$PPID/task", "re");
	EXPECT(list && fread(tasks, 1, sizeof(tasks) - 1, list) > 0);
	pclose(list);
	while ((task = strsep(&next, "\n")) != NULL && task[0] != '\0')
		EXPECT(has_no_capability(task));
	EXPECT(setuid(65534) == 0);
}

static const struct {
	const char *name;
	void (*run)(void);
} checks[] = {
	{"start", check_start},	    {"descriptors", check_descriptors},
	{"signals", check_signals}, {"privileges", check_privileges},
	{"pages", check_pages},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		if (argc == 2 && strcmp(argv[1], checks[i].name) == 0) {
			checks[i].run();
			puts("good");
			return 0;
		}
	}
	return 2;
}
