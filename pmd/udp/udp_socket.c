/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes and closes UDP sockets of RoCE. */
#include "udp/udp_socket.h"

#include <errno.h>
#include <linux/filter.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_byteorder.h>
#include <rte_common.h>
#include <rte_mbuf.h>

#include "base/own.h"
#include "udp_internal.h"
#include "wire/headers.h"
#include "wire/icrc.h"

#define RECEIVE_BYTES (4 << 20) /* a burst that arrives while this process waits for a CPU */

/* Packets that wait in the socket for a slow interface leave in their order, and uroced cannot
 * divide the interface among tenants any more. So fewer wait there than one queue pair may send at
 * once. The kernel doubles the number. */
#define SEND_BYTES (256 << 10)

static int set(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) == 0 ? 0 : -errno;
}

/* Set a buffer's size, beyond the system's limit if this process may. */
static void set_buffer(int fd, int force, int option, int bytes)
{
	if (set(fd, SOL_SOCKET, force, bytes) != 0)
		(void)set(fd, SOL_SOCKET, option, bytes);
}

/* Without these options the socket cannot serve. */
static int set_ip(int fd)
{
	/* DF is set, so that the identification is known. */
	int rc = set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);

	if (rc == 0)
		rc = set(fd, IPPROTO_IP, IP_PKTINFO, 1);
	if (rc == 0)
		rc = set(fd, IPPROTO_IP, IP_RECVTOS, 1);
	if (rc == 0)
		rc = set(fd, IPPROTO_IP, IP_RECVTTL, 1);
	/* Of every group that a socket of this host has joined (net/groups.h). An IPv6 socket gets
	 * none over IPv4 by default. */
	if (rc == 0)
		rc = set(fd, IPPROTO_IP, IP_MULTICAST_ALL, 1);
	/* The device gives its own members of a group their copies. */
	return rc == 0 ? set(fd, IPPROTO_IP, IP_MULTICAST_LOOP, 0) : rc;
}

static int set_ipv6(int fd)
{
	int rc = set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);

	/* Adapters and Soft-RoCE send no UDP checksum: the ICRC checks more. */
	if (rc == 0)
		rc = set(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);
	if (rc == 0)
		rc = set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO);
	if (rc == 0)
		rc = set(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
	if (rc == 0)
		rc = set(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
	if (rc == 0)
		rc = set(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1);
	return rc == 0 ? set(fd, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 0) : rc;
}

/* Drop what comes from this host: packets between programs of one device pass no socket, and any
 * user could send to its address. */
static int drop_loopback(int fd)
{
	const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_IFINDEX)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, if_nametoindex("lo"), 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
	};
	const struct sock_fprog program = {.len = RTE_DIM(code),
					   .filter = (struct sock_filter *)(uintptr_t)code};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == 0
		       ? 0
		       : -errno;
}

static int bind_port(int fd, int family)
{
	const struct sockaddr_in any = {.sin_family = AF_INET,
					.sin_port = rte_cpu_to_be_16(WIRE_UDP_PORT)};
	const struct sockaddr_in6 any6 = {.sin6_family = AF_INET6,
					  .sin6_port = rte_cpu_to_be_16(WIRE_UDP_PORT)};
	const int rc = family == AF_INET6 ? bind(fd, (const struct sockaddr *)&any6, sizeof(any6))
					  : bind(fd, (const struct sockaddr *)&any, sizeof(any));

	return rc == 0 ? 0 : -errno;
}

/* Return the socket, which belongs to the program's file descriptors, or -errno. */
static int make(int family)
{
	const int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int rc;

	if (fd < 0)
		return -errno;
	rc = set_ip(fd);
	if (rc == 0 && family == AF_INET6)
		rc = set_ipv6(fd);
	if (rc == 0)
		rc = drop_loopback(fd);
	if (rc == 0) {
		/* Where the kernel does not know these, packets come one by one, and nobody counts
		 * those that are lost. */
		(void)set(fd, IPPROTO_UDP, UDP_GRO, 1);
		(void)set(fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
		set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, RECEIVE_BYTES);
		set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, SEND_BYTES);
		rc = bind_port(fd, family);
	}
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

int udp_open(struct udp_socket **out, struct rte_mempool *pool, const uint8_t mac[6],
	     const uint8_t gateway[6], unsigned int ifindex)
{
	struct udp_socket *udp = calloc(1, sizeof(*udp));

	if (!udp)
		return -ENOMEM;
	udp->receive.memory = mmap(NULL, (size_t)RECEIVE_MESSAGES * MESSAGE_BYTES,
				   PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (udp->receive.memory == MAP_FAILED) {
		free(udp);
		return -ENOMEM;
	}
	udp->ipv6 = true;
	udp->fd = make(AF_INET6);
	if (udp->fd == -EAFNOSUPPORT || udp->fd == -EADDRNOTAVAIL) {
		udp->ipv6 = false;
		udp->fd = make(AF_INET);
	}
	if (udp->fd < 0) {
		const int rc = udp->fd;

		udp_close(udp);
		return rc;
	}
	own_mark(udp->fd);
	udp->pool = pool;
	udp->room = rte_pktmbuf_data_room_size(pool) - RTE_PKTMBUF_HEADROOM;
	udp->ifindex = ifindex;
	memcpy(udp->mac, mac, sizeof(udp->mac));
	memcpy(udp->gateway, gateway, sizeof(udp->gateway));
	udp->send.runs = true;
	udp->send.id_to_udp = icrc_distance(ID_TO_UDP);
	udp_receive_init(udp);
	*out = udp;
	return 0;
}

int udp_fd(const struct udp_socket *udp)
{
	return __atomic_load_n(&udp->fd, __ATOMIC_RELAXED);
}

const struct udp_counts *udp_counts(const struct udp_socket *udp)
{
	return &udp->counts;
}

void udp_stop(struct udp_socket *udp)
{
	const int fd = udp->fd;

	udp->receive.message.left = 0;
	udp->receive.next = 0;
	__atomic_store_n(&udp->receive.count, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&udp->fd, -1, __ATOMIC_RELAXED);
	/* The program may have closed the descriptor, and opened another file with the same
	 * number. */
	if (own_is(fd))
		close(fd);
}

void udp_close(struct udp_socket *udp)
{
	udp_stop(udp);
	munmap(udp->receive.memory, (size_t)RECEIVE_MESSAGES * MESSAGE_BYTES);
	free(udp);
}
