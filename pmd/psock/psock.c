/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes, binds and closes packet sockets. */
#include "psock/psock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_mbuf.h>

#include "base/log.h"
#include "base/own.h"
#include "psock_internal.h"

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

#define SEND_BYTES (2 << 20)
#define QPN_BITS   24

static int set_option(int fd, int option, int value)
{
	return setsockopt(fd, SOL_PACKET, option, &value, sizeof(value)) < 0 ? -errno : 0;
}

/* Set the send buffer, beyond the system's limit if this process may. */
static void set_send_buffer(int fd, int bytes)
{
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) < 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)) < 0)
		log_debug("a packet socket's buffer stays as it is: %s", strerror(errno));
}

static int make_ring(struct psock *psock)
{
	const struct tpacket_req request = {
		.tp_block_size = BLOCK_FRAMES * FRAME_BYTES,
		.tp_block_nr = FRAMES / BLOCK_FRAMES,
		.tp_frame_size = FRAME_BYTES,
		.tp_frame_nr = FRAMES,
	};
	struct psock_ring *ring = &psock->ring;

	if (setsockopt(psock->fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof(request)) < 0)
		return -errno;
	ring->memory = mmap(NULL, PSOCK_RING_BYTES, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_POPULATE, psock->fd, 0);
	if (ring->memory == MAP_FAILED)
		return -errno;
	madvise(ring->memory, PSOCK_RING_BYTES, MADV_DONTDUMP);
	return 0;
}

/* Set the socket's options. The ring's layout depends on the first two; the others are not
 * necessary. */
static int set_options(struct psock *psock)
{
	int rc = set_option(psock->fd, PACKET_VERSION, TPACKET_V2);

	if (rc == 0)
		rc = set_option(psock->fd, PACKET_VNET_HDR, 1);
	if (rc != 0)
		return rc;
	psock->bypasses_qdiscs = set_option(psock->fd, PACKET_QDISC_BYPASS, 1) == 0;
	set_option(psock->fd, PACKET_IGNORE_OUTGOING, 1);
	return 0;
}

int psock_socket(void)
{
	const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	set_send_buffer(fd, SEND_BYTES / 2);
	return fd;
}

void psock_use_pool(struct psock *psock, struct rte_mempool *pool)
{
	psock->pool = pool;
	psock->room = rte_pktmbuf_data_room_size(pool) - RTE_PKTMBUF_HEADROOM;
}

int psock_adopt(struct psock **out, struct rte_mempool *pool, int fd)
{
	struct psock *psock = calloc(1, sizeof(*psock));
	int rc;

	if (!psock) {
		close(fd);
		return -ENOMEM;
	}
	if (pool)
		psock_use_pool(psock, pool);
	psock->ring.memory = MAP_FAILED;
	psock->sends_runs = true;
	psock->qpn_shift = QPN_BITS;
	psock->fd = fd;
	own_mark(psock->fd);
	rc = set_options(psock);
	if (rc == 0)
		rc = make_ring(psock);
	if (rc != 0) {
		psock_close(psock);
		return rc;
	}
	*out = psock;
	return 0;
}

int psock_open(struct psock **out, struct rte_mempool *pool)
{
	const int fd = psock_socket();

	return fd < 0 ? fd : psock_adopt(out, pool, fd);
}

void psock_expect(struct psock *psock, uint32_t qpn_first, unsigned int shift)
{
	psock->qpn_first = qpn_first;
	psock->qpn_shift = shift;
	psock->shares = 0;
}

void psock_expect_share(struct psock *psock, uint32_t share, uint32_t count)
{
	psock->share = share;
	psock->shares = count;
}

int psock_fd(const struct psock *psock)
{
	return __atomic_load_n(&psock->fd, __ATOMIC_RELAXED);
}

int psock_bind(int fd, unsigned int ifindex)
{
	const struct sockaddr_ll address = {.sll_family = AF_PACKET,
					    .sll_protocol = htons(ETH_P_ALL),
					    .sll_ifindex = (int)ifindex};

	return bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
}

int psock_start(struct psock *psock, unsigned int ifindex)
{
	return psock_bind(psock->fd, ifindex);
}

void psock_forget(struct psock *psock)
{
	struct psock_held *held = &psock->held;

	rte_pktmbuf_free_bulk(held->mbufs + held->first, held->count);
	held->first = 0;
	__atomic_store_n(&held->count, 0, __ATOMIC_RELAXED);
}

void psock_stop(struct psock *psock)
{
	const int fd = psock->fd;

	psock_forget(psock);
	if (psock->ring.memory != MAP_FAILED)
		munmap(psock->ring.memory, PSOCK_RING_BYTES);
	psock->ring.memory = MAP_FAILED;
	__atomic_store_n(&psock->fd, -1, __ATOMIC_RELAXED);
	/* The program may have closed the descriptor, and opened another file with the same
	 * number. */
	if (own_is(fd))
		close(fd);
}

void psock_close(struct psock *psock)
{
	psock_stop(psock);
	free(psock);
}
