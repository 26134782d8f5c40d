/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps the kernel silent about RoCE, and us from receiving what is the kernel's. */
#include "netdev/mute.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <rte_common.h>

#include "base/log.h"
#include "netdev/divide.h"
#include "wire/headers.h"

struct holder {
	uint64_t inode; /* of the socket */
	unsigned int uid;
};

/* Find a socket of that port in one of the kernel's lists. */
static bool find_socket(const char *list, uint16_t port, struct holder *holder)
{
	char line[512];
	unsigned int local;
	bool found = false;
	FILE *file = fopen(list, "re");

	while (file && !found && fgets(line, sizeof(line), file))
		/* sl, local address and port, remote ones, state, queues, timer, retransmissions,
		 * uid, timeout, inode */
		found = sscanf(line, "%*s %*[0-9A-Fa-f]:%x %*s %*s %*s %*s %*s %u %*s %" SCNu64,
			       &local, &holder->uid, &holder->inode) == 3 &&
			local == port;
	if (file)
		fclose(file);
	return found;
}

/* Return true if a process has the socket open. */
static bool process_has(const char *pid, uint64_t inode)
{
	char path[PATH_MAX], wanted[64], target[64];
	const struct dirent *entry;
	bool has = false;
	DIR *dir;

	snprintf(wanted, sizeof(wanted), "socket:[%" PRIu64 "]", inode);
	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	dir = opendir(path);
	while (dir && !has && (entry = readdir(dir)) != NULL) {
		const ssize_t len =
			readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

		target[len < 0 ? 0 : len] = '\0';
		has = strcmp(target, wanted) == 0;
	}
	if (dir)
		closedir(dir);
	return has;
}

/* Read a process's name. Another user may have chosen it, so leave out what is not printable. */
static void read_name(const char *pid, char *name, size_t size)
{
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	file = fopen(path, "re");
	if (!file || !fgets(name, (int)size, file))
		name[0] = '\0';
	if (file)
		fclose(file);
	name[strcspn(name, "\n")] = '\0';
	for (char *c = name; *c; c++)
		if (!isprint((unsigned char)*c))
			*c = '?';
}

static bool name_process(const struct holder *holder, char *text, size_t size)
{
	const struct dirent *entry;
	DIR *dir = opendir("/proc");
	bool found = false;
	char name[32];

	while (dir && !found && (entry = readdir(dir)) != NULL) {
		if (!isdigit((unsigned char)entry->d_name[0]) ||
		    !process_has(entry->d_name, holder->inode))
			continue;
		read_name(entry->d_name, name, sizeof(name));
		snprintf(text, size, "process %.16s (%s) of user %u", entry->d_name, name,
			 holder->uid);
		found = true;
	}
	if (dir)
		closedir(dir);
	return found;
}

void holder_of_udp_port(uint16_t port, char *text, size_t size)
{
	struct holder holder;

	if (!find_socket("/proc/thread-self/net/udp", port, &holder) &&
	    !find_socket("/proc/thread-self/net/udp6", port, &holder))
		snprintf(text, size, "another program");
	else if (name_process(&holder, text, size))
		return;
	else if (holder.uid == 0)
		snprintf(text, size, "the kernel's RDMA driver (rdma_rxe), or a process of root");
	else
		snprintf(text, size, "a process of user %u", holder.uid);
}

int mute_packet_socket(int fd)
{
	const struct divide_blocks none = {.count = 0};

	return divide_all_but(fd, &none);
}

/*
 * Return true if the kernel shows joined packets correctly. Before Linux 6.2, packets that it joins
 * on receipt for such a socket do not reach packet sockets. Before 6.9 it joins packets with any
 * IPv4 identifications. The ICRC covers these, and they cannot be recovered afterwards.
 */
static bool kernel_tells_of_runs(void)
{
	unsigned int major, minor;
	struct utsname name;

	return uname(&name) == 0 && sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 9));
}

/* Open a datagram socket on the RoCE port, on one interface only, that drops everything. */
static int mute_open(int family, const char *ifname)
{
	static const struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
	const struct sock_fprog program = {.len = RTE_DIM(code),
					   .filter = (struct sock_filter *)(uintptr_t)code};
	struct sockaddr_storage addr = {.ss_family = (sa_family_t)family};
	const rte_be16_t port = rte_cpu_to_be_16(WIRE_UDP_PORT);
	const int on = 1, off = 0;
	socklen_t addr_len;
	int fd, err;

	fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	/* Without this option the kernel splits runs of packets for the socket. */
	if (kernel_tells_of_runs())
		setsockopt(fd, SOL_UDP, UDP_GRO, &on, sizeof(on));
	if (family == AF_INET6) {
		((struct sockaddr_in6 *)&addr)->sin6_port = port;
		addr_len = sizeof(struct sockaddr_in6);
	} else {
		((struct sockaddr_in *)&addr)->sin_port = port;
		addr_len = sizeof(struct sockaddr_in);
	}
	/* Attach the filter before binding, so that no packet is queued. SO_REUSEPORT lets only
	 * processes of this user bind beside this socket. SO_REUSEADDR would let any user bind to
	 * an address of the interface, and Linux would give all RoCE packets to that socket. */
	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, ifname, (socklen_t)strlen(ifname)) < 0 ||
	    (family == AF_INET6 &&
	     setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) < 0) ||
	    bind(fd, (struct sockaddr *)&addr, addr_len) < 0) {
		err = errno;
		close(fd);
		return -err;
	}
	return fd;
}

int mute_kernel(const char *ifname)
{
	int fd = mute_open(AF_INET6, ifname);

	/* Use IPv4 alone if the kernel has no IPv6. */
	if (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL)
		fd = mute_open(AF_INET, ifname);
	if (fd == -EADDRINUSE) {
		char holder[HOLDER_TEXT_MAX];

		holder_of_udp_port(WIRE_UDP_PORT, holder, sizeof(holder));
		log_error("UDP port %d of %s is taken by %s: end it, or use another interface",
			  WIRE_UDP_PORT, ifname, holder);
	} else if (fd < 0)
		log_error("cannot hold UDP port %d of %s: %s", WIRE_UDP_PORT, ifname,
			  strerror(-fd));
	return fd;
}
