/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Direct memifs in front of an isolated process's port to the owner: the operations of both
 * together. A packet to a queue pair of a process that has a direct memif with us goes there, and
 * each other packet to the owner.
 */
#include "client_direct.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/own.h"
#include "base/tuning.h"
#include "net/link.h"

void client_direct_offer(struct share_client *client, const struct share_offer *offer,
			 const int *fds)
{
	struct client_direct *direct = client->direct;
	struct direct_offer *kept;

	if (!direct || !tuning.direct || fds[SHARE_MEMIF_FD_SOCKET] < 0 ||
	    direct->offer_count == SHARE_DIRECTS_MAX || offer->side > 1 ||
	    offer->qpn_count > BLOCK_QPNS) {
		direct_peer_refuse(fds);
		return;
	}
	kept = &direct->offers[direct->offer_count++];
	kept->offer = *offer;
	memcpy(kept->fds, fds, sizeof(kept->fds));
	client_mark_sockets(fds);
}

/* Return the peer that packets to a queue pair go to; NULL: they go to the owner. */
static struct direct_peer *direct_find(struct client_direct *direct, uint32_t qpn)
{
	struct direct_peer *peer;
	uint8_t route;

	if (qpn == 0)
		return NULL;
	route = direct->routes[blocks_index(qpn)];
	if (likely(route == 0))
		return NULL;
	peer = direct->peers[route - 1];
	return direct_peer_takes(peer, qpn) ? peer : NULL;
}

static int direct_watch(const struct client_direct *direct, const struct port *port)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(direct->conn_epoll_fd, EPOLL_CTL_ADD, port_conn_fd(port), &event) == 0
		       ? 0
		       : -errno;
}

/* Set up an offered direct memif in a free place, or give it up. */
static void direct_begin(struct client_direct *direct, const struct direct_offer *offer,
			 uint8_t place)
{
	const struct port *port = &direct->link->port;
	struct direct_peer *peer = NULL;

	if (client_has_sockets(offer->fds))
		peer = direct_peer_create(&offer->offer, offer->fds, direct->link,
					  direct->below_arg);

	if (peer && direct_watch(direct, &peer->port) != 0) {
		direct_peer_destroy(peer);
		peer = NULL;
	}
	direct->peers[place] = peer;
	if (!peer)
		return;
	direct->routes[blocks_index(peer->qpn_first)] = (uint8_t)(place + 1);
	/* The helper may sleep until frames come. */
	if (port_is_armed(port))
		port_arm(&peer->port);
}

static void direct_end(struct client_direct *direct, uint8_t place)
{
	struct direct_peer *peer = direct->peers[place];
	uint8_t *route = &direct->routes[blocks_index(peer->qpn_first)];

	if (*route == place + 1)
		*route = 0;
	if (direct->aimed == peer) {
		direct->aimed = NULL;
		direct->has_placed = false;
	}
	direct->peers[place] = NULL;
	direct_peer_destroy(peer);
}

/* Take the offers that have come. Those for which there is no place wait: the owner makes no more
 * than we have places for, so one of ours is about to end. */
static void direct_take_offers(struct client_direct *direct)
{
	struct share_client *client = direct->client;
	uint8_t place = 0;

	if (pthread_mutex_trylock(&client->lock) != 0)
		return;
	while (direct->offer_count > 0) {
		while (place < SHARE_DIRECTS_MAX && direct->peers[place])
			place++;
		if (place == SHARE_DIRECTS_MAX)
			break;
		direct_begin(direct, &direct->offers[--direct->offer_count], place);
	}
	pthread_mutex_unlock(&client->lock);
}

/* Return a mbuf's way: a peer, or NULL for the owner. */
static struct direct_peer *direct_way(struct client_direct *direct, const struct rte_mbuf *mbuf)
{
	return direct_find(direct, port_local_qpn(mbuf));
}

static uint16_t direct_put(struct client_direct *direct, struct direct_peer *peer,
			   struct rte_mbuf **mbufs, uint16_t n)
{
	if (!peer)
		return direct->below->tx_burst(direct->below_arg, mbufs, n);
	direct_peer_send(peer, mbufs, n);
	return n;
}

/* Send one run of packets with the same way at a time. */
static uint16_t direct_tx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	struct client_direct *direct = arg;
	struct direct_peer *way, *next;
	uint16_t sent = 0, run, taken;

	if (n == 0)
		return 0;
	next = direct_way(direct, mbufs[0]);
	do {
		way = next;
		for (run = 1; sent + run < n; run++) {
			next = direct_way(direct, mbufs[sent + run]);
			if (next != way)
				break;
		}
		taken = direct_put(direct, way, mbufs + sent, run);
		sent = (uint16_t)(sent + taken);
	} while (taken == run && sent < n);
	return sent;
}

/* Receive from the owner and from the peers in turn. */
static uint16_t direct_rx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	struct client_direct *direct = arg;
	const uint32_t first = direct->bursts++;
	uint16_t received = 0;
	bool cut = false;

	for (uint32_t i = 0; i <= SHARE_DIRECTS_MAX; i++) {
		const uint32_t source = (first + i) % (SHARE_DIRECTS_MAX + 1);
		const uint16_t room = (uint16_t)(n - received);
		struct direct_peer *peer;

		if (source == SHARE_DIRECTS_MAX) {
			received = (uint16_t)(received + direct->below->rx_burst(direct->below_arg,
										 mbufs + received,
										 room));
			cut |= direct->link->port.rx_cut;
			continue;
		}
		peer = direct->peers[source];
		if (likely(!peer))
			continue;
		received = (uint16_t)(received + direct_peer_receive(peer, mbufs + received, room));
		cut |= peer->port.rx_cut;
	}
	direct->link->port.rx_cut = cut;
	return received;
}

/* The port whose buffers are used for packets now. */
static const struct port_ops *direct_ops(const struct client_direct *direct)
{
	return direct->aimed ? direct->aimed->port.ops : direct->below;
}

static void *direct_ops_arg(const struct client_direct *direct)
{
	return direct->aimed ? direct->aimed->port.ops_arg : direct->below_arg;
}

static void direct_push(void *arg)
{
	struct client_direct *direct = arg;
	const struct port *aimed = direct->aimed ? &direct->aimed->port : NULL;
	const uint32_t trials = aimed ? aimed->place_trials : 0;

	if (direct->has_placed)
		direct_ops(direct)->push(direct_ops_arg(direct));
	direct->has_placed = false;
	if (aimed)
		direct->link->port.place_trials += aimed->place_trials - trials;
}

static bool direct_aim(void *arg, uint32_t qpn)
{
	struct client_direct *direct = arg;
	struct direct_peer *peer = direct_find(direct, qpn);

	if (qpn != 0 && (!peer || !direct_peer_is_open(peer) || direct_peer_waits(peer)))
		return false;
	if (peer != direct->aimed) {
		direct_push(direct);
		direct->aimed = peer;
	}
	return true;
}

static void direct_expect(void *arg, uint32_t ahead, uint32_t len)
{
	const struct client_direct *direct = arg;

	direct_ops(direct)->expect(direct_ops_arg(direct), ahead, len);
}

/* This is the room for packets to the owner. Packets to a peer without room are held. */
static bool direct_has_room(void *arg)
{
	const struct client_direct *direct = arg;

	return direct->below->has_room(direct->below_arg);
}

static uint8_t *direct_place(void *arg, uint32_t len)
{
	const struct client_direct *direct = arg;
	uint8_t *place;

	/* Packets that were sent since the peer was aimed at may have been held. */
	if (direct->aimed && direct_peer_waits(direct->aimed))
		return NULL;
	place = direct_ops(direct)->place(direct_ops_arg(direct), len);
	/* The engine reads how to store the payload from the process's own port. */
	if (direct->aimed)
		direct->link->port.place_way = direct->aimed->port.place_way;
	return place;
}

static void direct_placed(void *arg, uint32_t len)
{
	struct client_direct *direct = arg;

	direct_ops(direct)->placed(direct_ops_arg(direct), len);
	direct->has_placed = true;
	/* The process has room again. */
	if (unlikely(direct->aimed && direct->aimed->held.given_up))
		direct->aimed->held.given_up = false;
}

/* Arm all ports; the port to the owner is the first, because it takes the old notifications of
 * all. */
static bool direct_arm(void *arg)
{
	const struct client_direct *direct = arg;
	bool waits = direct->below->arm(direct->below_arg);

	for (int i = 0; i < SHARE_DIRECTS_MAX; i++) {
		if (direct->peers[i])
			waits |= port_arm(&direct->peers[i]->port);
	}
	return waits;
}

static void direct_disarm(void *arg)
{
	const struct client_direct *direct = arg;

	direct->below->disarm(direct->below_arg);
	for (int i = 0; i < SHARE_DIRECTS_MAX; i++) {
		if (direct->peers[i])
			port_disarm(&direct->peers[i]->port);
	}
}

/* Between two owners nothing is taken, and nothing is lost for good. */
static bool direct_taken_below(const struct client_direct *direct, uint32_t qpn, bool is_local,
			       struct port_taken *taken)
{
	bool known = true;

	if (unlikely(client_is_between(direct->client)))
		*taken = (struct port_taken){.given = 1};
	else
		known = direct->below->taken(direct->below_arg, qpn, is_local, taken);
	taken->dropped += direct->client->away.times;
	return known;
}

static bool direct_taken(void *arg, uint32_t qpn, bool is_local, struct port_taken *taken)
{
	struct client_direct *direct = arg;
	struct direct_peer *peer = is_local ? direct_find(direct, qpn) : NULL;

	/* Until the direct memif is open, its first packets wait for those on the way to the owner.
	 */
	if (!peer || !direct_peer_is_open(peer))
		return direct_taken_below(direct, qpn, is_local, taken);
	if (!peer->port.ops->taken(peer->port.ops_arg, qpn, is_local, taken))
		return false;
	taken->dropped += peer->dropped;
	return true;
}

static bool direct_waits(void *arg, uint32_t qpn)
{
	const struct direct_peer *peer = direct_find(arg, qpn);

	return peer && direct_peer_waits(peer);
}

static void direct_send_held(void *arg)
{
	const struct client_direct *direct = arg;

	for (int i = 0; i < SHARE_DIRECTS_MAX; i++) {
		if (direct->peers[i])
			direct_peer_send_held(direct->peers[i]);
	}
}

static bool direct_link_up(void *arg, bool connected)
{
	const struct client_direct *direct = arg;

	return direct->below->link_up(direct->below_arg, connected);
}

static bool direct_connected(void *arg)
{
	const struct client_direct *direct = arg;

	/* Between two owners direct memifs go on. */
	return direct->below->connected(direct->below_arg) || client_is_between(direct->client);
}

/* This is called some times a second, and reads the owner's messages. */
static bool direct_lost(void *arg)
{
	struct client_direct *direct = arg;
	const bool lost = direct->below->lost(direct->below_arg);

	if (!lost)
		direct_take_offers(direct);
	/* The next owner has answered: do not wait until the connection is looked at. */
	if (unlikely(client_isolated_was_answered(direct->client)))
		direct->below->conn_run(direct->below_arg);
	return lost;
}

static bool direct_returned(void *arg)
{
	const struct client_direct *direct = arg;

	return client_returned(direct->client);
}

/* A direct memif must not outlive the owner that has made it: the next one does not end it when the
 * other program ends (pmd/owner/direct.c). */
static int direct_renew(void *arg)
{
	struct client_direct *direct = arg;
	struct share_client *client = direct->client;

	for (uint8_t place = 0; place < SHARE_DIRECTS_MAX; place++) {
		if (direct->peers[place])
			direct_end(direct, place);
	}
	pthread_mutex_lock(&client->lock);
	while (direct->offer_count > 0)
		direct_peer_refuse(direct->offers[--direct->offer_count].fds);
	if (client_returned(client)) {
		client_isolated_renew_locked(client);
		client_settle_locked(client);
	}
	pthread_mutex_unlock(&client->lock);
	return 0;
}

static void direct_lose(void *arg)
{
	const struct client_direct *direct = arg;

	direct->below->lose(direct->below_arg);
}

static void direct_conn_run(void *arg)
{
	struct client_direct *direct = arg;

	direct->below->conn_run(direct->below_arg);
	for (uint8_t place = 0; place < SHARE_DIRECTS_MAX; place++) {
		struct direct_peer *peer = direct->peers[place];

		if (!peer)
			continue;
		port_conn_run(&peer->port);
		if (port_lost(&peer->port))
			direct_end(direct, place);
	}
}

static int direct_conn_fd(const void *arg)
{
	const struct client_direct *direct = arg;

	return direct->conn_epoll_fd;
}

static int direct_conn_ms(const void *arg)
{
	const struct client_direct *direct = arg;
	int ms = direct->below->conn_ms(direct->below_arg);

	/* What comes from the next owner wakes nobody. */
	if (unlikely(client_is_between(direct->client)))
		ms = client_away_ms(direct->client);
	for (int i = 0; i < SHARE_DIRECTS_MAX; i++) {
		const int next = direct->peers[i] ? port_conn_ms(&direct->peers[i]->port) : -1;

		if (next >= 0 && (ms < 0 || next < ms))
			ms = next;
	}
	return ms;
}

static int direct_open(void *arg)
{
	struct client_direct *direct = arg;
	int rc = direct->below->open(direct->below_arg);
	struct epoll_event event = {.events = EPOLLIN};

	if (rc != 0)
		return rc;
	direct->conn_epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (direct->conn_epoll_fd < 0 ||
	    epoll_ctl(direct->conn_epoll_fd, EPOLL_CTL_ADD,
		      direct->below->conn_fd(direct->below_arg), &event) != 0)
		return -errno;
	own_mark(direct->conn_epoll_fd);
	return 0;
}

static void direct_close(void *arg)
{
	struct client_direct *direct = arg;

	for (uint8_t place = 0; place < SHARE_DIRECTS_MAX; place++) {
		if (direct->peers[place])
			direct_end(direct, place);
	}
	direct->below->close(direct->below_arg);
}

static void direct_destroy(void *arg)
{
	struct client_direct *direct = arg;

	direct->below->destroy(direct->below_arg);
	if (direct->conn_epoll_fd >= 0)
		close(direct->conn_epoll_fd);
	direct->client->direct = NULL;
	while (direct->offer_count > 0)
		direct_peer_refuse(direct->offers[--direct->offer_count].fds);
	free(direct);
}

static const struct port_ops direct_port_ops = {
	.open = direct_open,
	.rx_burst = direct_rx_burst,
	.tx_burst = direct_tx_burst,
	.expect = direct_expect,
	.has_room = direct_has_room,
	.place = direct_place,
	.aim = direct_aim,
	.placed = direct_placed,
	.push = direct_push,
	.taken = direct_taken,
	.waits = direct_waits,
	.send_held = direct_send_held,
	.arm = direct_arm,
	.disarm = direct_disarm,
	.link_up = direct_link_up,
	.connected = direct_connected,
	.lost = direct_lost,
	.lose = direct_lose,
	.returned = direct_returned,
	.renew = direct_renew,
	.conn_run = direct_conn_run,
	.conn_fd = direct_conn_fd,
	.conn_ms = direct_conn_ms,
	.close = direct_close,
	.destroy = direct_destroy,
};

int client_direct_prepare(struct share_client *client, struct link *link)
{
	struct client_direct *direct = calloc(1, sizeof(*direct));

	if (!direct)
		return -ENOMEM;
	direct->client = client;
	direct->link = link;
	direct->conn_epoll_fd = -1;
	direct->below = link->port.ops;
	direct->below_arg = link->port.ops_arg;
	link->port.ops = &direct_port_ops;
	link->port.ops_arg = direct;
	client->direct = direct;
	return 0;
}
