/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of an attached process to the owner: neighbours, groups, addresses (net/link.h). */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/own.h"
#include "client.h"
#include "net/link.h"

#define ANSWER_MS 5000 /* an owner that sends no answer for so long is taken to have stopped */

static void client_lose(struct share_client *client)
{
	if (!client_go_away_locked(client))
		__atomic_store_n(&client->lost, true, __ATOMIC_RELAXED);
}

/* Remember a claim that is given up: the owner may still answer it. */
static void client_abandon_locked(struct share_client *client, uint32_t number)
{
	if (client->abandoned_count < CLIENT_ABANDONED_MAX)
		client->abandoned[client->abandoned_count++] = number;
}

/* Release the port of a claim that was given up, and that the owner has granted since. */
static void client_release_late_locked(struct share_client *client,
				       const struct share_message *reply)
{
	struct share_message release;

	for (uint32_t i = 0; i < client->abandoned_count; i++) {
		if (client->abandoned[i] != reply->number)
			continue;
		client->abandoned[i] = client->abandoned[--client->abandoned_count];
		if (reply->result != 0)
			return;
		memset(&release, 0, sizeof(release));
		release.type = SHARE_RELEASE;
		release.version = SHARE_VERSION;
		release.claim.id = reply->claim.id;
		/* The socket has room: the owner answers only requests that it has taken from
		 * it. */
		(void)message_send(client->socket, &release, NULL, 0);
		return;
	}
}

/* Receive one message. Handle it, unless it is the reply that the caller waits for. 0: there may
 * be more messages; -EAGAIN: there are no more; another -errno: the owner is lost. */
static int client_receive_locked(struct share_client *client, struct share_message *message)
{
	int fds[SHARE_FDS];
	const int rc =
		own_is(client->socket) ? message_receive(client->socket, message, fds) : -EBADF;

	/* An offer without its descriptors is refused. */
	if (rc != 0 && rc != -EMFILE) {
		if (rc != -EAGAIN)
			client_lose(client);
		return rc;
	}
	if (message->type == SHARE_DIRECT)
		client_directs_offer(client, message, fds);
	if (message->type == SHARE_XRC)
		client_xrc_hear_locked(client, message);
	if (message->type == SHARE_MEMIF)
		client_isolated_answer(client, message, fds);
	if (message->type == SHARE_ADDRESSES && message->addresses.count <= ADDRESSES_MAX) {
		client->addresses = message->addresses;
		client->addresses_changed = true;
		client->away.ms = message->away_ms;
		__atomic_store_n(&client->link_up, message->link_up, __ATOMIC_RELAXED);
	}
	if (message->type == SHARE_REPLY && unlikely(client->abandoned_count > 0))
		client_release_late_locked(client, message);
	return 0;
}

void client_listen(struct share_client *client)
{
	struct share_message message;

	/* A thread that holds the lock is sending a request, and also handles these messages. */
	if (pthread_mutex_trylock(&client->lock) != 0)
		return;
	if (unlikely(client_is_away(client)) && !client->lost)
		client_seek_locked(client);
	client_xrc_flush_locked(client);
	while (!client->lost && !client_is_away(client) &&
	       client_receive_locked(client, &message) == 0)
		;
	pthread_mutex_unlock(&client->lock);
}

/* Wait until the socket is ready for `events`, or a signal came. 0, -ETIMEDOUT or -errno. */
static int client_poll_locked(const struct share_client *client, short events)
{
	struct pollfd fd = {.fd = client->socket, .events = events};
	const int rc = poll(&fd, 1, ANSWER_MS);

	if (rc == 0)
		return -ETIMEDOUT;
	return rc < 0 && errno != EINTR ? -errno : 0;
}

/* Send once the socket has room. */
static int client_send_locked(const struct share_client *client,
			      const struct share_message *message)
{
	int rc;

	do {
		rc = message_send(client->socket, message, NULL, 0);
		if (rc != -EAGAIN)
			return rc;
		rc = client_poll_locked(client, POLLOUT);
	} while (rc == 0);
	return rc;
}

static int client_wait_locked(struct share_client *client, uint32_t number,
			      struct share_message *message)
{
	int rc;

	do {
		rc = client_receive_locked(client, message);
		if (rc == 0 && message->type == SHARE_REPLY && message->number == number)
			return 0;
		if (rc == 0)
			continue;
		if (rc != -EAGAIN)
			return rc;
		rc = client_poll_locked(client, POLLIN);
	} while (rc == 0);
	return rc;
}

int client_exchange_locked(struct share_client *client, struct share_message *message)
{
	const uint32_t number = ++client->requests;
	const bool claims = message->type == SHARE_CLAIM;
	int rc;

	message->version = SHARE_VERSION;
	message->number = number;
	rc = client_send_locked(client, message);
	if (rc == -EPIPE || rc == -ECONNRESET || rc == -ENOTCONN)
		client_lose(client);
	if (rc == 0)
		rc = client_wait_locked(client, number, message);
	if (rc == -ETIMEDOUT && claims)
		client_abandon_locked(client, number);
	return rc;
}

/* Ask the owner, or the next one if this one ends before it has answered. */
static int client_ask_locked(struct share_client *client, struct share_message *message)
{
	const struct share_message request = *message;
	int rc;

	do {
		rc = client_await_locked(client);
		if (rc != 0)
			return rc;
		client_xrc_flush_locked(client);
		*message = request;
		client_translate_locked(client, message);
		rc = client_exchange_locked(client, message);
	} while (rc != 0 && client_is_away(client) && !client->lost);
	if (rc != 0)
		return rc;
	if (request.type == SHARE_CLAIM && message->result == 0)
		message->claim.id = client_promise_claim_locked(client, &message->claim);
	else
		client_promise_locked(client, &request, message);
	return 0;
}

int client_ask(struct share_client *client, struct share_message *message)
{
	int rc = -ENETDOWN, cancel_state;

	/* A thread that is cancelled while it waits would never release the lock. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	pthread_mutex_lock(&client->lock);
	if (!client->lost && own_is(client->socket))
		rc = client_ask_locked(client, message);
	pthread_mutex_unlock(&client->lock);
	pthread_setcancelstate(cancel_state, NULL);
	return rc;
}

void client_tell(struct share_client *client, struct share_message *message)
{
	const struct share_message told = *message;
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	pthread_mutex_lock(&client->lock);
	message->version = SHARE_VERSION;
	client_translate_locked(client, message);
	client_forget_locked(client, &told);
	/* An owner that has gone, or has stopped for good, knows nothing of us any more. */
	if (!client->lost && !client_is_away(client) && own_is(client->socket))
		(void)client_send_locked(client, message);
	pthread_mutex_unlock(&client->lock);
	pthread_setcancelstate(cancel_state, NULL);
}

static struct share_message *client_request(struct share_message *message,
					    enum share_message_type type,
					    const uint8_t gid[GID_LEN])
{
	memset(message, 0, sizeof(*message));
	message->type = type;
	memcpy(message->gid, gid, GID_LEN);
	return message;
}

static bool client_refresh(struct link *link)
{
	struct share_client *client = link->remote_arg;
	bool changed;

	client_listen(client);
	/* A thread that asks the owner keeps the lock until the answer comes. Look again later: the
	 * caller has the engine, which all other threads wait for. */
	if (pthread_mutex_trylock(&client->lock) != 0)
		return false;
	changed = client->addresses_changed;
	client->addresses_changed = false;
	if (changed) {
		pthread_mutex_lock(&link->addresses_lock);
		link->addresses = client->addresses;
		pthread_mutex_unlock(&link->addresses_lock);
	}
	pthread_mutex_unlock(&client->lock);
	return changed;
}

static int client_join(struct link *link, const uint8_t gid[GID_LEN])
{
	struct share_message message;
	const int rc = client_ask(link->remote_arg, client_request(&message, SHARE_JOIN, gid));

	return rc == 0 ? message.result : rc;
}

/* An owner that comes later is not told of the group, so there is nothing to wait for. */
static void client_leave(struct link *link, const uint8_t gid[GID_LEN])
{
	struct share_message message;

	client_tell(link->remote_arg, client_request(&message, SHARE_LEAVE, gid));
}

static int client_route(struct link *link, const struct address *from, const uint8_t dgid[GID_LEN],
			struct link_hop *hop)
{
	struct share_message message;

	client_request(&message, SHARE_ROUTE, dgid)->from = *from;
	if (client_ask(link->remote_arg, &message) != 0)
		return -ENETUNREACH;
	*hop = message.hop;
	return message.result;
}

static bool client_resolve(struct link *link, const struct address *from,
			   const uint8_t gid[GID_LEN], uint8_t mac[6])
{
	struct share_message message;

	/* The caller has the engine, which must go on, and asks again. */
	if (client_is_away(link->remote_arg))
		return false;
	client_request(&message, SHARE_RESOLVE, gid)->from = *from;
	if (client_ask(link->remote_arg, &message) != 0 || message.result == 0)
		return false;
	memcpy(mac, message.mac, sizeof(message.mac));
	return true;
}

const struct link_remote client_link_remote = {
	.refresh = client_refresh,
	.join = client_join,
	.leave = client_leave,
	.route = client_route,
	.resolve = client_resolve,
};
