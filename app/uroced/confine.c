/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Confines uroced to the folders of its sockets, by Landlock, to some capabilities, and by a filter
 * of system calls. A thread under Landlock cannot reach a process that is not: neither its memory,
 * nor its descriptors, nor its namespaces. What is read is not limited: libraries, and what the C
 * library needs to find a user, are anywhere.
 *
 * The filter of system calls names what is forbidden. A filter that named what is
 * allowed would have to know each call that DPDK's drivers and the C library may make, of all
 * versions, and a call that it forgot would fail in the middle of operation.
 */
#include "confine.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rte_common.h>

#include "config/devargs.h"
#include "eal/privilege.h"
#include "eal/runtime.h"

/* The headers of Linux before 6.2 lack it. */
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (UINT64_C(1) << 14)
#endif

/* Changes that uroced makes in its folders, and nowhere else. */
#define CHANGES                                                          \
	(LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | \
	 LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |  \
	 LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK)

/* Changes that uroced makes nowhere. */
#define NEVER                                                           \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_CHAR |    \
	 LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK | \
	 LANDLOCK_ACCESS_FS_MAKE_SYM)

struct rules {
	int fd;
	uint64_t changes;
};

/* Return the changes that this kernel can forbid; 0: it has no Landlock. */
static uint64_t known_changes(void)
{
	const long version =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	if (version < 1)
		return 0;
	return CHANGES | (version >= 3 ? LANDLOCK_ACCESS_FS_TRUNCATE : 0);
}

/* Allow changes beneath a folder. One that does not exist has nothing to change. */
static void allow(const struct rules *rules, const char *folder)
{
	const int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const struct landlock_path_beneath_attr rule = {.allowed_access = rules->changes,
							.parent_fd = fd};

	if (fd < 0)
		return;
	syscall(SYS_landlock_add_rule, rules->fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
	close(fd);
}

/* Allow changes beside a socket. */
static void allow_beside(const struct rules *rules, const char *path)
{
	char copy[PATH_MAX];

	if (path[0] == '\0')
		return;
	snprintf(copy, sizeof(copy), "%s", path);
	allow(rules, dirname(copy));
}

/* Return true if a port may have files of its own: those of drivers, and memif's socket. */
static bool has_files(const struct settings *settings)
{
	struct devargs devargs;

	return settings->port[0] != '\0' &&
	       (devargs_parse(settings->port, &devargs) != 0 || !devargs_is(&devargs, "local"));
}

/* Return true if uroced may change files that are not known, or finds the users of isolated
 * programs by their namespaces. */
static bool needs_more(const struct settings *settings, size_t count, enum serve_dpdk dpdk)
{
	bool more = dpdk == SERVE_DPDK_FIRST;

	for (size_t i = 0; i < count; i++)
		more |= has_files(&settings[i]) ||
			(settings[i].isolated[0] != '\0' && privilege_has(CAP_SYS_PTRACE));
	return more;
}

int confine_files(const struct settings *settings, size_t count, enum serve_dpdk dpdk)
{
	struct rules rules = {.changes = known_changes()};
	const struct landlock_ruleset_attr attr = {.handled_access_fs = rules.changes | NEVER};
	char folder[PATH_MAX];
	int rc = 0;

	if (rules.changes == 0 || needs_more(settings, count, dpdk))
		return 0;
	rules.fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (rules.fd < 0)
		return -errno;
	for (size_t i = 0; i < count; i++) {
		allow_beside(&rules, settings[i].socket);
		allow_beside(&rules, settings[i].isolated);
		allow_beside(&rules, settings[i].metrics);
	}
	if (dpdk == SERVE_DPDK_LATER && runtime_make_directory(folder, sizeof(folder)))
		allow(&rules, folder);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    syscall(SYS_landlock_restrict_self, rules.fd, 0) != 0)
		rc = -errno;
	close(rules.fd);
	return rc;
}

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__) && __BYTE_ORDER == __LITTLE_ENDIAN
#define ARCH AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define ARCH AUDIT_ARCH_RISCV64
#elif defined(__powerpc64__) && __BYTE_ORDER == __LITTLE_ENDIAN
#define ARCH AUDIT_ARCH_PPC64LE
#endif

#define BIT(capability) (UINT64_C(1) << (capability))
#define X32_BIT		0x40000000 /* in the numbers of x86's other ABI */

/* For isolated programs: to see whose they are (/proc/PID/ns), and to have more descriptors on
 * their way to them than RLIMIT_NOFILE. */
#define ISOLATED (BIT(CAP_SYS_PTRACE) | BIT(CAP_SYS_RESOURCE))

/* Packet sockets for programs, and their buffers (SO_SNDBUFFORCE); changes of a kernel interface.
 */
#define NETWORK (BIT(CAP_NET_RAW) | BIT(CAP_NET_ADMIN))

/* Memory that the device may access, and the registers of devices without vfio-pci. */
#define HARDWARE (BIT(CAP_IPC_LOCK) | BIT(CAP_SYS_RAWIO))

/* Return true if this process needs privilege to remove a file: another user has the directory. */
static bool is_others(const char *path)
{
	char copy[PATH_MAX];
	struct stat folder;

	snprintf(copy, sizeof(copy), "%s", path);
	return path[0] != '\0' && stat(dirname(copy), &folder) == 0 && folder.st_uid != geteuid();
}

/* The sockets are removed at the end. */
static uint64_t confine_of_files(const struct settings *settings)
{
	const bool others = is_others(settings->socket) || is_others(settings->isolated) ||
			    is_others(settings->metrics);

	return others ? BIT(CAP_DAC_OVERRIDE) : 0;
}

static uint64_t confine_of_port(const struct settings *settings, bool physical)
{
	struct devargs devargs;
	char error[256];
	uint64_t kept = confine_of_files(settings);

	if (settings->isolated[0] != '\0')
		kept |= ISOLATED;
	if ((settings->netdev[0] != '\0' && !settings->udp) || settings->kernel[0] != '\0')
		kept |= NETWORK;
	/* Devices of EAL's options, such as those that a bond uses, may be of any kind. */
	if (settings->eal[0] != '\0')
		kept |= NETWORK | HARDWARE | (physical ? BIT(CAP_SYS_ADMIN) : 0);
	if (settings->port[0] == '\0' ||
	    devargs_read(settings->port, &devargs, error, sizeof(error)) != 0)
		return kept;
	if (devargs.bus != DEVARGS_VDEV)
		return kept | NETWORK | HARDWARE | (physical ? BIT(CAP_SYS_ADMIN) : 0);
	/* To connect again to the socket of a server, which may be another user's. */
	if (devargs_is(&devargs, "net_memif"))
		return kept | BIT(CAP_DAC_OVERRIDE);
	if (devargs_is(&devargs, "net_vhost"))
		return kept | NETWORK | BIT(CAP_DAC_OVERRIDE);
	return devargs_is(&devargs, "local") ? kept : kept | NETWORK;
}

uint64_t confine_capabilities(const struct settings *settings, size_t count, bool physical)
{
	/* To read the settings again, from a folder of another user. */
	uint64_t kept = BIT(CAP_DAC_READ_SEARCH);

	for (size_t i = 0; i < count; i++)
		kept |= confine_of_port(&settings[i], physical);
	return kept;
}

#ifdef ARCH

/* Calls that uroced makes, if at all, only while it starts. */
static const int forbidden[] = {
	/* other programs and processes */
	SYS_execve,
	SYS_execveat,
	SYS_ptrace,
	SYS_process_vm_readv,
	SYS_process_vm_writev,
	SYS_kcmp,
	SYS_kill,
	SYS_tkill,
#ifdef SYS_fork
	SYS_fork,
	SYS_vfork,
#endif
#ifdef SYS_pidfd_send_signal
	SYS_pidfd_send_signal,
#endif
#ifdef SYS_pidfd_getfd
	SYS_pidfd_getfd,
#endif
#ifdef SYS_process_madvise
	SYS_process_madvise,
#endif
	/* users */
	SYS_setuid,
	SYS_setgid,
	SYS_setreuid,
	SYS_setregid,
	SYS_setresuid,
	SYS_setresgid,
	SYS_setgroups,
	SYS_setfsuid,
	SYS_setfsgid,
	/* namespaces and file systems */
	SYS_setns,
	SYS_unshare,
	SYS_chroot,
	SYS_pivot_root,
	SYS_mount,
	SYS_umount2,
	SYS_swapon,
	SYS_swapoff,
	SYS_quotactl,
	SYS_open_by_handle_at,
	SYS_fanotify_init,
	SYS_mknodat,
	/* files whose owner uroced is, which Landlock does not protect from these */
	SYS_truncate,
	SYS_fchmod,
	SYS_fchmodat,
#ifdef SYS_fchmodat2
	SYS_fchmodat2,
#endif
	SYS_fchown,
	SYS_fchownat,
	SYS_setxattr,
	SYS_lsetxattr,
	SYS_fsetxattr,
	SYS_removexattr,
	SYS_lremovexattr,
	SYS_fremovexattr,
	SYS_utimensat,
#ifdef SYS_chmod
	SYS_chmod,
	SYS_chown,
	SYS_lchown,
	SYS_utime,
	SYS_utimes,
#endif
#ifdef SYS_mknod
	SYS_mknod,
#endif
#ifdef SYS_open_tree
	SYS_open_tree,
	SYS_move_mount,
	SYS_fsopen,
	SYS_fsconfig,
	SYS_fsmount,
	SYS_fspick,
#endif
#ifdef SYS_mount_setattr
	SYS_mount_setattr,
#endif
#ifdef SYS_quotactl_fd
	SYS_quotactl_fd,
#endif
	/* the kernel */
	SYS_init_module,
	SYS_finit_module,
	SYS_delete_module,
	SYS_kexec_load,
#ifdef SYS_kexec_file_load
	SYS_kexec_file_load,
#endif
	SYS_reboot,
	SYS_acct,
	SYS_syslog,
	SYS_bpf,
	SYS_perf_event_open,
	SYS_add_key,
	SYS_request_key,
	SYS_keyctl,
	SYS_settimeofday,
	SYS_clock_settime,
	SYS_clock_adjtime,
	SYS_adjtimex,
	SYS_sethostname,
	SYS_setdomainname,
	SYS_personality,
#ifdef SYS_io_uring_setup
	SYS_io_uring_setup,
	SYS_io_uring_enter,
	SYS_io_uring_register,
#endif
#ifdef SYS_iopl
	SYS_iopl,
	SYS_ioperm,
#endif
#ifdef SYS_modify_ldt
	SYS_modify_ldt,
#endif
};

/* Families of sockets that uroced opens while it serves. */
static const int families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET};

struct program {
	struct sock_filter insns[2 * RTE_DIM(forbidden) + 96];
	unsigned short count;
};

/* The kernel refuses a program whose end is missing. */
static void add(struct program *program, struct sock_filter insn)
{
	if (program->count < RTE_DIM(program->insns))
		program->insns[program->count++] = insn;
}

static void load(struct program *program, size_t offset)
{
	add(program, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

/* Load the lower half of a call's argument. */
static void load_arg(struct program *program, unsigned int number)
{
	load(program, offsetof(struct seccomp_data, args[number]));
}

/* Return an answer if the loaded word is compared with `word` as `condition` says, or is not. */
static void answer_if(struct program *program, uint16_t condition, uint32_t word, bool holds,
		      uint32_t answer)
{
	add(program,
	    (struct sock_filter)BPF_JUMP(BPF_JMP | condition | BPF_K, word, !holds, holds));
	add(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer));
}

#define FAIL(error) (SECCOMP_RET_ERRNO | (error))

/* Begin to judge a call by its arguments. Return where the judgement begins, for end_call. */
static unsigned short begin_call(struct program *program, int number)
{
	load(program, offsetof(struct seccomp_data, nr));
	add(program,
	    (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 0));
	return program->count;
}

/* All other calls jump to here. */
static void end_call(struct program *program, unsigned short begin)
{
	program->insns[begin - 1].jf = (uint8_t)(program->count - begin);
}

/* Forbid a call if comparing its argument with `word` by `condition` gives `holds`. */
static void judge_arg(struct program *program, int number, unsigned int arg, uint16_t condition,
		      uint32_t word, bool holds)
{
	const unsigned short begin = begin_call(program, number);

	load_arg(program, arg);
	answer_if(program, condition, word, holds, FAIL(EPERM));
	end_call(program, begin);
}

/* Threads are allowed, processes are not. The flags of clone3 are in memory, which a filter cannot
 * read: the C library then takes clone. */
static void judge_clone(struct program *program)
{
	judge_arg(program, SYS_clone, 0, BPF_JSET, CLONE_THREAD, false);
#ifdef SYS_clone3
	load(program, offsetof(struct seccomp_data, nr));
	answer_if(program, BPF_JEQ, SYS_clone3, true, FAIL(ENOSYS));
#endif
}

/* A thread may signal threads of this process. */
static void judge_signals(struct program *program)
{
	static const int sends[] = {SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo};

	for (size_t i = 0; i < RTE_DIM(sends); i++)
		judge_arg(program, sends[i], 0, BPF_JEQ, (uint32_t)getpid(), false);
}

/* Forbid a call whose argument is one of these. */
static void judge_words(struct program *program, int number, unsigned int arg,
			const uint32_t *words, size_t count)
{
	const unsigned short begin = begin_call(program, number);

	load_arg(program, arg);
	for (size_t i = 0; i < count; i++)
		answer_if(program, BPF_JEQ, words[i], true, FAIL(EPERM));
	end_call(program, begin);
}

/* Ways around the above. A descriptor that becomes ready sends its owner any signal (fcntl(2),
 * F_SETSIG), a limit of CPU time ends a process, and a shell executes what is put into the terminal
 * on which uroced was started. */
static void judge_detours(struct program *program)
{
	static const uint32_t owners[] = {F_SETOWN, F_SETOWN_EX};
	static const uint32_t requests[] = {FIOSETOWN, SIOCSPGRP, TIOCSTI, TIOCLINUX};

	judge_words(program, SYS_fcntl, 1, owners, RTE_DIM(owners));
	judge_words(program, SYS_ioctl, 1, requests, RTE_DIM(requests));
	judge_arg(program, SYS_prlimit64, 0, BPF_JEQ, 0, false);
}

static void judge_socket(struct program *program)
{
	const unsigned short begin = begin_call(program, SYS_socket);

	load_arg(program, 0);
	for (size_t i = 0; i < RTE_DIM(families); i++)
		answer_if(program, BPF_JEQ, (uint32_t)families[i], true, SECCOMP_RET_ALLOW);
	add(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, FAIL(EPERM)));
	end_call(program, begin);
}

/* No mapping is made executable that was writable. Files, such as libraries, may be mapped. */
static void judge_memory(struct program *program)
{
	const unsigned short begin = begin_call(program, SYS_mmap);

	load_arg(program, 2);
	add(program,
	    (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, PROT_WRITE | PROT_EXEC));
	answer_if(program, BPF_JEQ, PROT_WRITE | PROT_EXEC, true, FAIL(EPERM));
	end_call(program, begin);
	judge_arg(program, SYS_mprotect, 2, BPF_JSET, PROT_EXEC, true);
#ifdef SYS_pkey_mprotect
	judge_arg(program, SYS_pkey_mprotect, 2, BPF_JSET, PROT_EXEC, true);
#endif
}

static void write_program(struct program *program)
{
	load(program, offsetof(struct seccomp_data, arch));
	answer_if(program, BPF_JEQ, ARCH, false, FAIL(EPERM));
	load(program, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
	answer_if(program, BPF_JGE, X32_BIT, true, FAIL(EPERM));
#endif
	for (size_t i = 0; i < RTE_DIM(forbidden); i++)
		answer_if(program, BPF_JEQ, (uint32_t)forbidden[i], true, FAIL(EPERM));
	judge_clone(program);
	judge_signals(program);
	judge_detours(program);
	judge_socket(program);
	judge_memory(program);
	add(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
}

int confine_filter(void)
{
	struct program program = {.count = 0};
	struct sock_fprog what = {.filter = program.insns};
	long rc;

	write_program(&program);
	what.len = program.count;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -errno;
	rc = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &what);
	if (rc < 0)
		return -errno;
	/* The number of a thread that cannot take the filter. */
	return rc == 0 ? 0 : -EBUSY;
}

#else

int confine_filter(void)
{
	return -EOPNOTSUPP;
}

#endif
