/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet socket of an attached process on the owner's interface. Packets to other hosts, and
 * from them, take it instead of the owner's rings, in buffers that the process holds.
 */
#include <errno.h>
#include <linux/if_packet.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_ether.h>

#include "base/log.h"
#include "base/own.h"
#include "client.h"
#include "port/port.h"
#include "share/steer.h"

static int watch(int epoll_fd, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

/* Make a descriptor that becomes readable when another thread or process wakes us, and when the
 * socket has packets. */
static int client_make_wake_fd(struct share_client *client)
{
	int rc;

	client->wake_fd = epoll_create1(EPOLL_CLOEXEC);
	own_mark(client->wake_fd);
	rc = client->wake_fd < 0 ? -errno : watch(client->wake_fd, client->process_fd);
	return rc == 0 ? watch(client->wake_fd, psock_fd(client->psock)) : rc;
}

int client_use_psock(struct share_client *client, const struct share_welcome *welcome, int fd)
{
	int rc = psock_adopt(&client->psock, client->pool, fd);

	if (rc != 0)
		return rc;
	psock_expect(client->psock, welcome->qpn_first, BLOCK_SHIFT);
	if (client->engines > 1)
		psock_expect_share(client->psock, client->engine, client->engines);
	rc = client_make_wake_fd(client);
	if (rc == 0)
		return 0;
	psock_close(client->psock);
	client->psock = NULL;
	if (client->wake_fd >= 0)
		close(client->wake_fd);
	return rc;
}

static int client_decline(struct share_client *client)
{
	struct share_message message;
	int rc;

	memset(&message, 0, sizeof(message));
	message.type = SHARE_DECLINE;
	rc = client_ask(client, &message);
	return rc == 0 ? message.result : rc;
}

int client_open_psock(struct share_client *client, const struct share_welcome *welcome, int fd)
{
	int rc;

	client->wake_fd = -1;
	if (fd < 0)
		return 0;
	rc = client_use_psock(client, welcome, fd);
	if (rc == 0)
		return 0;
	log_info("packets pass through uroced: no packet socket: %s", strerror(-rc));
	return client_decline(client);
}

/* Close the socket of an engine. Its descriptor to sleep on still contains the eventfd. */
static void client_drop_psock(struct share_client *client)
{
	if (!client->psock)
		return;
	psock_close(client->psock);
	client->psock = NULL;
	client->port->kernel_beyond = false;
}

int client_decline_psocks(struct share_client *client)
{
	struct share_client *further;

	client_drop_psock(client);
	SLIST_FOREACH(further, &client->further, link)
	client_drop_psock(further);
	return client_decline(client);
}

uint32_t client_psock_ifindex(const struct share_client *client)
{
	struct sockaddr_ll address = {0};
	socklen_t len = sizeof(address);

	if (!client->psock || !own_is(psock_fd(client->psock)) ||
	    getsockname(psock_fd(client->psock), (struct sockaddr *)&address, &len) != 0)
		return 0;
	return (uint32_t)address.sll_ifindex;
}

/* Other threads may look at it, so it is not freed. */
static void client_end_psock(struct share_client *client)
{
	if (!client->psock)
		return;
	psock_stop(client->psock);
	client->last_psock = client->psock;
	client->psock = NULL;
	client->port->kernel_beyond = false;
}

void client_empty_psock(struct share_client *client)
{
	if (client->psock)
		psock_forget(client->psock);
	/* A child of fork(2) may keep the last owner's file: then it would stay in the set, and
	 * wake us for ever. */
	if (own_is(client->wake_fd) && own_is(client->process_fd))
		epoll_ctl(client->wake_fd, EPOLL_CTL_DEL, client->process_fd, NULL);
}

int client_renew_psock(struct share_client *client, bool keeps)
{
	/* A process that has lost its socket at an earlier restart still sleeps on the set. */
	if (client->wake_fd < 0)
		return 0;
	if (!keeps)
		client_end_psock(client);
	return watch(client->wake_fd, client->process_fd);
}

int client_decline_psocks_locked(struct share_client *first)
{
	struct share_message message = {.type = SHARE_DECLINE};
	struct share_client *client = first;
	int rc;

	for (; client;
	     client = client == first ? SLIST_FIRST(&first->further) : SLIST_NEXT(client, link)) {
		client_end_psock(client);
	}
	log_info("packets pass through uroced: no packet socket of the next one");
	rc = client_exchange_locked(first, &message);
	return rc == 0 ? message.result : rc;
}

bool client_psock_sends(const struct share_client *client, const struct rte_mbuf *mbuf)
{
	const uint8_t *frame = rte_pktmbuf_mtod(mbuf, const uint8_t *);

	return client->psock && !(frame[0] & RTE_ETHER_GROUP_ADDR) &&
	       memcmp(frame, client->mac, sizeof(client->mac)) != 0 &&
	       likely(!steer_is_mad(frame, mbuf->data_len));
}

uint16_t client_psock_put(struct share_client *client, struct rte_mbuf **mbufs, uint16_t n)
{
	struct port_drops *refused = &client->port->tx_refused;
	const uint16_t sent = psock_tx_burst(client->psock, mbufs, n);

	psock_refused(client->psock, &refused->packets, &refused->bytes);
	return sent;
}

/* Pass a packet that the kernel had joined to one of ours on to the owner. If the ring is full, the
 * packet is lost. */
static void client_pass_on(struct share_client *client, struct rte_mbuf *mbuf)
{
	struct share_packet packet = client_packet(client, mbuf);
	uint64_t word;

	packet.flags = SHARE_FLAG_STRAY;
	word = share_pack(&packet);
	if (share_ring_put(&client->rings[SHARE_RING_TX], &word, 1) == 0)
		client_keep(client, packet.buffer);
}

/* Take the strays out of a burst. Returns how many packets are left. */
static uint16_t client_pass_strays(struct share_client *client, struct rte_mbuf **mbufs, uint16_t n)
{
	uint16_t left = 0;

	for (uint16_t i = 0; i < n; i++) {
		if (likely(mbufs[i]->port != PSOCK_STRAY))
			mbufs[left++] = mbufs[i];
		else
			client_pass_on(client, mbufs[i]);
	}
	if (unlikely(left < n)) {
		/* Order the words before the load of the owner's sleep flag, as client_tx_burst. */
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		client_wake_owner(client);
	}
	return left;
}

static __rte_noinline uint16_t psock_take(struct share_client *client, struct rte_mbuf **mbufs,
					  uint16_t n)
{
	const uint16_t received = psock_rx_burst(client->psock, mbufs, n);

	client->port->rx_missed = psock_missed(client->psock);
	client->port->rx_too_long = psock_dropped(client->psock);
	return received > 0 ? client_pass_strays(client, mbufs, received) : 0;
}

uint16_t client_psock_take(struct share_client *client, struct rte_mbuf **mbufs, uint16_t n)
{
	return client->psock ? psock_take(client, mbufs, n) : 0;
}

/* Also read the socket's error. An interface that goes down leaves one, and the descriptor stays
 * readable until it is read, so that no sleep would last. */
bool client_psock_waits(const struct share_client *client)
{
	int error;
	socklen_t len = sizeof(error);

	if (!client->psock)
		return false;
	if (own_is(psock_fd(client->psock)))
		(void)getsockopt(psock_fd(client->psock), SOL_SOCKET, SO_ERROR, &error, &len);
	return psock_holds(client->psock);
}

void client_stop_psock(struct share_client *client)
{
	if (!client->psock)
		return;
	/* From now on the process sleeps without the socket. */
	__atomic_store_n(&client->port->wake_fd, client->process_fd, __ATOMIC_RELAXED);
	psock_stop(client->psock);
}
