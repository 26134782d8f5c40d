/* SPDX-License-Identifier: BSD-3-Clause */
/* Socket filters that divide an interface's frames between the kernel and us. */
#include "netdev/mute.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
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
#include "wire/headers.h"

#define TAKE_ALL 0xffffffffu
/* Offsets from the Ethernet header. The kernel has removed the VLAN tag. */
#define OFF_ETHERTYPE	 12
#define OFF_IPV4_FRAG	 20
#define OFF_IPV4_PROTO	 23
#define OFF_IPV4	 14
#define OFF_ARP_OPCODE	 20
#define OFF_IPV6_NEXT	 20
#define OFF_IPV6_L4	 54
#define UDP_DPORT	 2
#define ICMPV6_ADVERT	 136
#define FRAGMENT	 0x3fff /* more fragments, or an offset */
#define ARP_OPCODE_REPLY 2

#define LOAD_HALF(off)	BPF_STMT(BPF_LD | BPF_H | BPF_ABS, off)
#define LOAD_BYTE(off)	BPF_STMT(BPF_LD | BPF_B | BPF_ABS, off)
#define IF_EQ(k, t, f)	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k, t, f)
#define IF_ANY(k, t, f) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, k, t, f)
#define RETURN(k)	BPF_STMT(BPF_RET | BPF_K, k)

int mute_packet_socket(int fd)
{
	enum { IPV4 = 6, IPV6 = 13, ARP = 17, ICMPV6 = 19, DROP = 22, TAKE = 23 };
	/* A jump's distance counts from the next instruction. */
#define TO(from, to) ((to) - (from)-1)
	static const struct sock_filter code[] = {
		[0] = LOAD_HALF((uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE)),
		[1] = IF_EQ(PACKET_OUTGOING, TO(1, DROP), 0),
		[2] = LOAD_HALF(OFF_ETHERTYPE),
		[3] = IF_EQ(0x0800, TO(3, IPV4), 0),
		[4] = IF_EQ(0x86dd, TO(4, IPV6), 0),
		[5] = IF_EQ(0x0806, TO(5, ARP), TO(5, DROP)),
		[IPV4] = LOAD_BYTE(OFF_IPV4_PROTO),
		[7] = IF_EQ(IPPROTO_UDP, 0, TO(7, DROP)),
		[8] = LOAD_HALF(OFF_IPV4_FRAG),
		[9] = IF_ANY(FRAGMENT, TO(9, DROP), 0),
		[10] = BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, OFF_IPV4),
		[11] = BPF_STMT(BPF_LD | BPF_H | BPF_IND, OFF_IPV4 + UDP_DPORT),
		[12] = IF_EQ(WIRE_UDP_PORT, TO(12, TAKE), TO(12, DROP)),
		[IPV6] = LOAD_BYTE(OFF_IPV6_NEXT),
		[14] = IF_EQ(IPPROTO_UDP, 0, TO(14, ICMPV6)),
		[15] = LOAD_HALF(OFF_IPV6_L4 + UDP_DPORT),
		[16] = IF_EQ(WIRE_UDP_PORT, TO(16, TAKE), TO(16, DROP)),
		[ARP] = LOAD_HALF(OFF_ARP_OPCODE),
		[18] = IF_EQ(ARP_OPCODE_REPLY, TO(18, TAKE), TO(18, DROP)),
		[ICMPV6] = IF_EQ(IPPROTO_ICMPV6, 0, TO(19, DROP)),
		[20] = LOAD_BYTE(OFF_IPV6_L4),
		[21] = IF_EQ(ICMPV6_ADVERT, TO(21, TAKE), TO(21, DROP)),
		[DROP] = RETURN(0),
		[TAKE] = RETURN(TAKE_ALL),
	};
#undef TO
	const struct sock_fprog program = {.len = RTE_DIM(code),
					   .filter = (struct sock_filter *)(uintptr_t)code};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0 ? -errno
											   : 0;
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
	static const struct sock_filter code[] = {RETURN(0)};
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
	/* Attach the filter before binding, so that no packet is queued. */
	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
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
	if (fd == -EADDRINUSE)
		log_error("UDP port %d of %s is taken: unload the kernel's RDMA driver (rdma_rxe), "
			  "or "
			  "use another interface",
			  WIRE_UDP_PORT, ifname);
	else if (fd < 0)
		log_error("cannot hold UDP port %d of %s: %s", WIRE_UDP_PORT, ifname,
			  strerror(-fd));
	return fd;
}
