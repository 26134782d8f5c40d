/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of app/uroced/confine.c. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "confine.h"
#include "test.h"

#define BIT(capability) (UINT64_C(1) << (capability))
#define READ		BIT(CAP_DAC_READ_SEARCH)
#define ISOLATED	(BIT(CAP_SYS_PTRACE) | BIT(CAP_SYS_RESOURCE))
#define NETWORK		(BIT(CAP_NET_RAW) | BIT(CAP_NET_ADMIN))
#define HARDWARE	(BIT(CAP_IPC_LOCK) | BIT(CAP_SYS_RAWIO))

static uint64_t kept_for(const char *netdev, const char *port, bool physical)
{
	static struct settings settings;

	settings_init(&settings);
	settings.socket[0] = '\0';
	snprintf(settings.netdev, sizeof(settings.netdev), "%s", netdev);
	snprintf(settings.port, sizeof(settings.port), "%s", port);
	return confine_capabilities(&settings, 1, physical);
}

TEST(confine_capabilities__are_those_of_the_port)
{
	assert_int_equal(kept_for("eth0", "", false), READ | NETWORK);
	assert_int_equal(kept_for("", "local0", false), READ);
	assert_int_equal(kept_for("", "net_memif0,role=server,socket=/run/x.sock", false),
			 READ | BIT(CAP_DAC_OVERRIDE));
	assert_int_equal(kept_for("", "net_vhost0,iface=/run/x.sock,client=1", false),
			 READ | NETWORK | BIT(CAP_DAC_OVERRIDE));
	assert_int_equal(kept_for("", "net_tap0", false), READ | NETWORK);
	assert_int_equal(kept_for("", "0000:00:04.0", false), READ | NETWORK | HARDWARE);
	assert_int_equal(kept_for("", "0000:00:04.0", true),
			 READ | NETWORK | HARDWARE | BIT(CAP_SYS_ADMIN));
}

TEST(confine_capabilities__are_those_of_all_ports)
{
	static struct settings settings[2];

	for (int i = 0; i < 2; i++) {
		settings_init(&settings[i]);
		settings[i].socket[0] = '\0';
	}
	snprintf(settings[0].port, sizeof(settings[0].port), "local0");
	snprintf(settings[1].netdev, sizeof(settings[1].netdev), "eth0");
	snprintf(settings[1].isolated, sizeof(settings[1].isolated), "/nowhere/x.sock");
	assert_int_equal(confine_capabilities(settings, 2, false), READ | NETWORK | ISOLATED);
	assert_int_equal(confine_capabilities(settings, 1, false), READ);
	settings[1].udp = true;
	assert_int_equal(confine_capabilities(settings, 2, false), READ | ISOLATED);
}

/* The devices of EAL's options may be of any kind. */
TEST(confine_capabilities__are_those_of_devices_of_eal)
{
	static struct settings settings;

	settings_init(&settings);
	settings.socket[0] = '\0';
	snprintf(settings.port, sizeof(settings.port), "net_bonding0,slave=0000:00:04.0");
	snprintf(settings.eal, sizeof(settings.eal), "-a 0000:00:04.0");
	assert_int_equal(confine_capabilities(&settings, 1, false), READ | NETWORK | HARDWARE);
	assert_int_equal(confine_capabilities(&settings, 1, true),
			 READ | NETWORK | HARDWARE | BIT(CAP_SYS_ADMIN));
}

/* uroced removes its sockets at its end, also from a directory that is another user's. */
TEST(confine_capabilities__remove_sockets)
{
	static struct settings settings;
	char folder[] = "/tmp/uroce-confine-XXXXXX";

	assert_non_null(mkdtemp(folder));
	settings_init(&settings);
	snprintf(settings.socket, sizeof(settings.socket), "%s/x.sock", folder);
	assert_int_equal(confine_capabilities(&settings, 1, false), READ);
	if (chown(folder, geteuid() + 1, (gid_t)-1) == 0)
		assert_int_equal(confine_capabilities(&settings, 1, false),
				 READ | BIT(CAP_DAC_OVERRIDE));
	rmdir(folder);
}

/* Return true if a call has failed with an error. */
static bool failed(long rc, int error)
{
	return rc == -1 && errno == error;
}

/* Return true if no process, program, bpf or other family of sockets is to be had. */
static bool is_confined(void)
{
	static char *const argv[] = {"/bin/true", NULL};
	struct {
		long words[16];
	} attr = {{0}};

	return failed(fork(), EPERM) && failed(execve(argv[0], argv, NULL), EPERM) &&
	       failed(kill(getppid(), 0), EPERM) &&
	       failed(syscall(SYS_tkill, getppid(), 0), EPERM) &&
	       failed(syscall(SYS_tgkill, getppid(), getppid(), 0), EPERM) &&
	       failed(syscall(SYS_rt_sigqueueinfo, getppid(), 0, &attr), EPERM) &&
	       failed(syscall(SYS_rt_tgsigqueueinfo, getppid(), getppid(), 0, &attr), EPERM) &&
	       pthread_kill(pthread_self(), 0) == 0 &&
	       failed(ptrace(PTRACE_TRACEME, 0, 0, 0), EPERM) &&
	       failed(syscall(SYS_bpf, 0, &attr, sizeof(attr)), EPERM) &&
	       failed(unshare(CLONE_NEWUSER), EPERM) &&
	       failed(socket(AF_BLUETOOTH, SOCK_RAW, 0), EPERM);
}

/* The same by other ways: signals of a descriptor or of a limit, and input of a terminal. */
static bool has_no_detour(void)
{
	const struct f_owner_ex other = {.type = F_OWNER_PID, .pid = getppid()};
	const struct rlimit now = {.rlim_cur = 0, .rlim_max = 0};
	const int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	int owner = getppid();
	char key = 'x';
	struct rlimit own;

	return failed(fcntl(fd, F_SETOWN, owner), EPERM) &&
	       failed(fcntl(fd, F_SETOWN_EX, &other), EPERM) &&
	       failed(ioctl(fd, FIOSETOWN, &owner), EPERM) &&
	       failed(ioctl(fd, SIOCSPGRP, &owner), EPERM) &&
	       failed(ioctl(fd, TIOCSTI, &key), EPERM) &&
	       failed(ioctl(fd, TIOCLINUX, &key), EPERM) &&
	       failed(prlimit(getppid(), RLIMIT_CORE, &now, NULL), EPERM) &&
	       getrlimit(RLIMIT_CPU, &own) == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0 &&
	       ioctl(fd, FIONREAD, &owner) == 0 && close(fd) == 0;
}

static bool may_make_executable(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return page == MAP_FAILED || mprotect(page, 4096, PROT_READ | PROT_EXEC) == 0 ||
	       mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0) != MAP_FAILED;
}

static sem_t go;

static void *judge(void *arg)
{
	sem_wait(&go);
	*(bool *)arg = is_confined();
	return NULL;
}

/* The exit status of the child says what went wrong. */
enum { DONE, CANNOT, NO_FILTER, CAN_TOO_MUCH, CAN_EXECUTE, CAN_TOO_LITTLE };

/* A thread that ran before has the filter too, and new threads can be started. */
static int confined(void)
{
	bool old_is = false, new_is = false;
	pthread_t old, new;
	const int family[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};

	sem_init(&go, 0, 0);
	if (pthread_create(&old, NULL, judge, &old_is) != 0)
		return CANNOT;
	if (confine_filter() != 0)
		return NO_FILTER;
	if (pthread_create(&new, NULL, judge, &new_is) != 0)
		return CAN_TOO_LITTLE;
	sem_post(&go);
	sem_post(&go);
	pthread_join(old, NULL);
	pthread_join(new, NULL);
	if (!old_is || !new_is || !is_confined() || !has_no_detour())
		return CAN_TOO_MUCH;
	if (may_make_executable())
		return CAN_EXECUTE;
	for (size_t i = 0; i < sizeof(family) / sizeof(family[0]); i++) {
		if (socket(family[i], SOCK_DGRAM, 0) < 0)
			return CAN_TOO_LITTLE;
	}
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
	    MAP_FAILED)
		return CAN_TOO_LITTLE;
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? DONE : CAN_TOO_MUCH;
}

TEST(confine_filter__forbids_in_all_threads)
{
	int status;
	const pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0)
		_exit(confined());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, DONE << 8);
}
