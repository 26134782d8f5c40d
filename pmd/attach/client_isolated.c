/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The port of an isolated process. It is a memif client (port/memif_caller.h). The owner makes both
 * ends of the sockets of the memif connection, and passes one end of each to the process over their
 * socket. So the process needs no directory that it may write to, the owner knows whose connection
 * it is, and neither can keep the other from reading.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach/attach.h"
#include "base/own.h"
#include "client.h"
#include "net/link.h"
#include "port/memif_caller.h"

/* Mark the sockets of a memif connection as ours, when they come (base/own.h). */
static void mark_sockets(const int fds[SHARE_MEMIF_FDS])
{
	for (int i = 0; i < SHARE_MEMIF_FDS; i++)
		own_mark(fds[i]);
}

/* Return true if the program has not closed them since. If it has closed one, close the others. */
static bool has_sockets(const int fds[SHARE_MEMIF_FDS])
{
	bool has = true;

	for (int i = 0; i < SHARE_MEMIF_FDS; i++)
		has = has && own_is(fds[i]);
	for (int i = 0; i < SHARE_MEMIF_FDS && !has; i++)
		if (own_is(fds[i]))
			memif_socket_discard(fds[i]);
	return has;
}

void client_isolated_answer(struct share_client *client, const struct share_message *message,
			    const int *fds)
{
	struct client_memif *memif = &client->memif;

	memif->asked = false;
	if (message->result != 0 || fds[SHARE_MEMIF_FD_SOCKET] < 0)
		return;
	memif->given = true;
	memcpy(memif->fds, fds, sizeof(memif->fds));
	mark_sockets(fds);
}

/* Ask the owner for a memif connection, unless it has been asked. If it cannot take a message now,
 * the port asks again later. */
static void isolated_ask_locked(struct share_client *client)
{
	const struct share_message message = {.type = SHARE_MEMIF, .version = SHARE_VERSION};

	if (!client->memif.asked)
		client->memif.asked = message_send(client->socket, &message, NULL, 0) == 0;
}

/* Ask the next owner for a memif connection; that of the last one is of no use. */
static void client_isolated_renew_locked(struct share_client *client)
{
	struct client_memif *memif = &client->memif;

	if (memif->given && has_sockets(memif->fds)) {
		for (int i = 0; i < SHARE_MEMIF_FDS; i++)
			memif_socket_discard(memif->fds[i]);
	}
	*memif = (struct client_memif){.renewed = true};
	isolated_ask_locked(client);
}

/* Return true if the answer of the next owner has come. */
static bool client_isolated_was_answered(struct share_client *client)
{
	struct client_memif *memif = &client->memif;
	bool answered;

	if (likely(!__atomic_load_n(&memif->renewed, __ATOMIC_RELAXED)) ||
	    pthread_mutex_trylock(&client->lock) != 0)
		return false;
	answered = memif->given;
	if (answered)
		memif->renewed = false;
	pthread_mutex_unlock(&client->lock);
	return answered;
}

static int isolated_call_locked(struct share_client *client, int *doorbell_fd)
{
	struct client_memif *memif = &client->memif;

	if (client->lost || !own_is(client->socket))
		return -ENETDOWN;
	/* Sockets of the last owner lead nowhere. */
	if (client->away.presence != CLIENT_HERE)
		return -EAGAIN;
	if (!memif->given) {
		isolated_ask_locked(client);
		return -EAGAIN;
	}
	memif->given = false;
	if (!has_sockets(memif->fds))
		return -EAGAIN;
	*doorbell_fd = memif->fds[SHARE_MEMIF_FD_DOORBELL];
	return memif->fds[SHARE_MEMIF_FD_SOCKET];
}

/* Return the socket of the connection that the owner has made. */
static int isolated_call(void *arg, int *doorbell_fd)
{
	struct share_client *client = arg;
	int rc;

	client_listen(client);
	/* A thread that asks the owner keeps the lock until the answer comes. */
	if (pthread_mutex_trylock(&client->lock) != 0)
		return -EAGAIN;
	rc = isolated_call_locked(client, doorbell_fd);
	pthread_mutex_unlock(&client->lock);
	return rc;
}

static bool isolated_link_up(void *arg)
{
	const struct share_client *client = arg;

	return __atomic_load_n(&client->link_up, __ATOMIC_RELAXED) &&
	       !__atomic_load_n(&client->lost, __ATOMIC_RELAXED);
}

static bool isolated_lost(void *arg)
{
	struct share_client *client = arg;

	client_listen(client);
	return __atomic_load_n(&client->lost, __ATOMIC_RELAXED);
}

static const struct memif_caller isolated_caller = {
	.call = isolated_call,
	.link_up = isolated_link_up,
	.lost = isolated_lost,
};

/* The port's operations: those of the memif port to the owner, with direct channels in front of
 * it. A packet to a queue pair of a process with which we have a channel goes there, and each other
 * packet to the owner. */

static uint16_t isolated_tx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	return client_tx_burst(memif_caller_arg(arg), mbufs, n);
}

/* Receive from the owner and from the channels in turn. The owner's port sets `rx_cut`, and the
 * channels only add to it. */
static uint16_t isolated_rx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	struct share_client *client = memif_caller_arg(arg);
	struct port *port = client->port;
	const bool owner_first = client->first_source++ % 2 == 0;
	uint16_t received = 0;

	if (owner_first)
		received = client->below_ops->rx_burst(arg, mbufs, n);
	else
		port->rx_cut = false;
	received = (uint16_t)(received + client_directs_take(client, mbufs + received,
							     (uint16_t)(n - received)));
	if (!owner_first) {
		const bool cut = port->rx_cut;

		received = (uint16_t)(received +
				      client->below_ops->rx_burst(arg, mbufs + received,
								  (uint16_t)(n - received)));
		port->rx_cut |= cut;
	}
	return received;
}

static bool isolated_aim(void *arg, uint32_t qpn)
{
	struct share_client *client = memif_caller_arg(arg);

	return client_aim(client, qpn) || qpn == 0;
}

static void isolated_expect(void *arg, uint32_t ahead, uint32_t len)
{
	struct share_client *client = memif_caller_arg(arg);

	if (client->aimed)
		client_expect(client, ahead, len);
	else
		client->below_ops->expect(arg, ahead, len);
}

static uint8_t *isolated_place(void *arg, uint32_t len)
{
	struct share_client *client = memif_caller_arg(arg);

	return client->aimed ? client_place(client, len) : client->below_ops->place(arg, len);
}

static void isolated_placed(void *arg, uint32_t len)
{
	struct share_client *client = memif_caller_arg(arg);

	if (client->aimed) {
		client_placed(client, len);
		return;
	}
	client->below_ops->placed(arg, len);
	client->places_below = true;
}

static void isolated_push(void *arg)
{
	struct share_client *client = memif_caller_arg(arg);

	if (client->places_below)
		client->below_ops->push(arg);
	client->places_below = false;
	client_push(client);
}

static bool isolated_waits(void *arg, uint32_t qpn)
{
	return client_waits(memif_caller_arg(arg), qpn);
}

static void isolated_send_held(void *arg)
{
	client_send_held(memif_caller_arg(arg));
}

static bool isolated_taken(void *arg, uint32_t qpn, bool is_local, struct port_taken *taken)
{
	struct share_client *client = memif_caller_arg(arg);
	const struct client_direct *direct = client_direct_of(client, is_local ? qpn : 0);
	bool known = true;

	/* Until the channel is open, its first packets wait for those on the way to the owner. */
	if (direct && client_direct_taken(direct, taken, &known))
		return known;
	/* Between two owners nothing is taken, and nothing is lost for good. */
	if (unlikely(client_is_between(client)))
		*taken = (struct port_taken){.given = 1};
	else
		known = client->below_ops->taken(arg, qpn, is_local, taken);
	taken->dropped += client->away.times;
	return known;
}

/* The port to the owner and the channels have one epoll set. Arming that port reads the old
 * notifications of all of them, so it comes first. */
static bool isolated_arm(void *arg)
{
	struct share_client *client = memif_caller_arg(arg);
	const bool waits = client->below_ops->arm(arg);

	client_directs_say_asleep(client, true);
	/* Orders the stores before the loads, as in client_arm. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return client_directs_wait(client) || waits;
}

static void isolated_disarm(void *arg)
{
	struct share_client *client = memif_caller_arg(arg);

	client->below_ops->disarm(arg);
	client_directs_say_asleep(client, false);
}

static bool isolated_connected(void *arg)
{
	const struct share_client *client = memif_caller_arg(arg);

	/* Between two owners direct channels go on. */
	return client->below_ops->connected(arg) || client_is_between(client);
}

/* This is called some times a second, and reads the owner's messages. */
static bool isolated_port_lost(void *arg)
{
	struct share_client *client = memif_caller_arg(arg);
	const bool lost = client->below_ops->lost(arg);

	if (!lost)
		client_directs_look(client);
	/* The next owner has answered: do not wait until the connection is looked at. */
	if (unlikely(client_isolated_was_answered(client)))
		client->below_ops->conn_run(arg);
	return lost;
}

static int isolated_conn_ms(const void *arg)
{
	const struct share_client *client = memif_caller_arg(arg);

	/* No descriptor wakes a thread when the next owner answers, so it looks again soon. */
	return unlikely(client_is_between(client)) ? client_away_ms(client)
						   : client->below_ops->conn_ms(arg);
}

static bool isolated_returned(void *arg)
{
	return client_returned(memif_caller_arg(arg));
}

/* A channel must not outlive the owner that has made it: the next one does not end it when the
 * other program ends (pmd/owner/direct.c). */
static int isolated_renew(void *arg)
{
	struct share_client *client = memif_caller_arg(arg);

	client_directs_drop(client);
	pthread_mutex_lock(&client->lock);
	client_offers_drop_locked(client);
	if (client_returned(client)) {
		client_isolated_renew_locked(client);
		client_settle_locked(client);
	}
	pthread_mutex_unlock(&client->lock);
	return 0;
}

static void isolated_close(void *arg)
{
	struct share_client *client = memif_caller_arg(arg);

	client_directs_drop(client);
	client->below_ops->close(arg);
}

static void isolated_destroy(void *arg)
{
	struct share_client *client = memif_caller_arg(arg);

	pthread_mutex_lock(&client->lock);
	client_offers_drop_locked(client);
	pthread_mutex_unlock(&client->lock);
	client->below_ops->destroy(arg);
}

void client_isolated_take_over(struct share_client *client, struct link *link)
{
	struct port *port = &link->port;

	client->port = port;
	client->net = link;
	client->below = port->ops_arg;
	client->below_ops = port->ops;
	taker_init(&client->taker);
	client->ops = *port->ops;
	client->ops.tx_burst = isolated_tx_burst;
	client->ops.rx_burst = isolated_rx_burst;
	client->ops.expect = isolated_expect;
	client->ops.place = isolated_place;
	client->ops.aim = isolated_aim;
	client->ops.placed = isolated_placed;
	client->ops.push = isolated_push;
	client->ops.wake_other_end = NULL;
	client->ops.taken = isolated_taken;
	client->ops.waits = isolated_waits;
	client->ops.send_held = isolated_send_held;
	client->ops.arm = isolated_arm;
	client->ops.disarm = isolated_disarm;
	client->ops.connected = isolated_connected;
	client->ops.lost = isolated_port_lost;
	client->ops.conn_ms = isolated_conn_ms;
	client->ops.returned = isolated_returned;
	client->ops.renew = isolated_renew;
	client->ops.open_queue = NULL;
	client->ops.close = isolated_close;
	client->ops.destroy = isolated_destroy;
	port->ops = &client->ops;
}

int share_isolate(struct link *link, const char *socket_path, int report_fd,
		  struct share_facts *facts)
{
	struct share_message message;
	struct share_client *client;
	int fds[SHARE_FDS];
	int rc;

	/* Register before EAL starts (for telemetry), because EAL's plugins fill DPDK's table of
	 * operations. */
	rc = client_register_ops();
	if (rc == 0)
		rc = attach_open(socket_path, 0, report_fd, 1, &client, &message, fds);
	if (rc != 0)
		return attach_error(socket_path, rc, &message);
	attach_learn(client, &message, facts);
	/* Offer only this port, because a program names the socket of the port that it wants. */
	facts->ports = 1;
	client->addresses = message.addresses;
	client->link_up = message.link_up;
	link_init_remote(link, &client_link_remote, client, &message.addresses);
	rc = memif_prepare_caller(&link->port, &isolated_caller, client, message.welcome.mac,
				  message.welcome.mtu_bytes);
	if (rc != 0) {
		attach_end(client);
		return attach_error(socket_path, rc, &message);
	}
	client_isolated_take_over(client, link);
	link->port.make_pool = client_make_private_pool;
	link->port.passed_on = true;
	link->port.tsc_hz = message.welcome.tsc_hz;
	link->port.own_qpn_first = facts->qpn_first;
	link->port.own_qpn_count = facts->qpn_count;
	/* The answer will be there when the port is opened. No other thread uses the client yet. */
	isolated_ask_locked(client);
	return 0;
}
