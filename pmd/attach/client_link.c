/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of an attached process to the owner: neighbours, groups, addresses (net/link.h), and the
 * memory of the next owner. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/own.h"
#include "client.h"
#include "net/link.h"

/* Map a file in the place of an earlier one of the same length. The pages change in one step: other
 * threads look at the page (port_ops.arm). Closes `fd`. 0 or -errno. */
static int renew_map(void *memory, size_t bytes, int fd)
{
	void *again = mmap(memory, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	const int rc = again == MAP_FAILED ? -errno : 0;

	close(fd);
	if (rc != 0)
		return rc;
	madvise(memory, bytes, MADV_DONTDUMP);
	madvise(memory, bytes, MADV_DONTFORK);
	return 0;
}

/* Put a descriptor in the place of an earlier one, in one step. Closes `fd`. 0 or -errno. */
static int renew_fd(int fd, int place)
{
	const int rc = own_is(place) && dup3(fd, place, O_CLOEXEC) >= 0 ? 0 : -EBADF;

	close(fd);
	if (rc == 0)
		own_mark(place);
	return rc;
}

/* Use the memory and the descriptors of another welcome, all of which belong to this call, in the
 * place of those before. The engine holds no buffer. 0; -errno: the port is lost. */
static int renew_memory(struct share_client *client, const struct share_welcome *welcome, int *fds)
{
	int rc, fails;

	if (attach_arena_bytes(client, fds[SHARE_FD_ARENA]) != client->arena_bytes) {
		for (int i = 0; i < SHARE_FD_PSOCK; i++)
			close(fds[i]);
		return -EINVAL;
	}
	/* The socket holds buffers of the last arena. They go to the ring in its page. The direct
	 * channels are the last owner's. */
	client_empty_psock(client);
	client_directs_drop(client);
	rc = renew_map(client->arena, client->arena_bytes, fds[SHARE_FD_ARENA]);
	fails = renew_map(client->page, client->page_bytes, fds[SHARE_FD_PAGE]);
	rc = rc == 0 ? fails : rc;
	fails = renew_fd(fds[SHARE_FD_OWNER], client->owner_fd);
	rc = rc == 0 ? fails : rc;
	fails = renew_fd(fds[SHARE_FD_PROCESS], client->process_fd);
	rc = rc == 0 ? fails : rc;
	attach_init_rings(client);
	client_forget_buffers(client, welcome->quota);
	return rc;
}

/* Attach a further engine again. 0 or -errno. */
static int renew_further(struct share_client *first, struct share_client *client)
{
	struct share_message message = {.engine = {.number = client->engine,
						   .count = first->engines,
						   .slot = first->slot,
						   .generation = first->generation},
					.psock_ifindex = client_psock_ifindex(client)};
	const uint32_t engines = client->engines;
	int fds[SHARE_FDS];
	int rc;

	pthread_mutex_lock(&client->lock);
	client_offers_drop_locked(client);
	pthread_mutex_unlock(&client->lock);
	if (own_is(client->socket))
		close(client->socket);
	rc = attach_begin(client, &message, -1, fds);
	client->engines = engines;
	if (rc != 0)
		return rc;
	rc = renew_memory(client, &message.welcome, fds);
	if (fds[SHARE_FD_PSOCK] >= 0)
		close(fds[SHARE_FD_PSOCK]);
	if (rc == 0)
		rc = client_renew_psock(client, message.psock_ifindex != 0);
	client_be_here(client);
	return rc;
}

static int renew_all(struct share_client *first)
{
	const struct share_message *welcome = &first->away.welcome;
	struct share_client *client;
	bool declines = false;
	int rc = renew_memory(first, &welcome->welcome, first->away.fds);

	if (first->away.fds[SHARE_FD_PSOCK] >= 0)
		close(first->away.fds[SHARE_FD_PSOCK]);
	if (rc == 0)
		rc = client_renew_psock(first, welcome->psock_ifindex != 0);
	SLIST_FOREACH(client, &first->further, link)
	{
		if (rc == 0)
			rc = renew_further(first, client);
		declines |= first->psock && !client->psock;
	}
	for (int i = 0; i < SHARE_FDS; i++)
		first->away.fds[i] = -1;
	if (rc == 0 && declines)
		rc = client_decline_psocks_locked(first);
	return rc;
}

/* Return true if an error says that the owner has ended, too. */
static bool has_ended(int rc)
{
	return rc == -ECONNRESET || rc == -ECONNREFUSED || rc == -EPIPE || rc == -ENOENT;
}

int client_renew(void *arg)
{
	struct share_client *client = arg;
	int rc = 0;

	/* A thread that asks the owner waits a moment longer. */
	pthread_mutex_lock(&client->lock);
	if (client_returned(client)) {
		rc = renew_all(client);
		if (rc == 0)
			client_settle_locked(client);
		else if (has_ended(rc) && client_go_away_locked(client))
			rc = 0;
		else
			__atomic_store_n(&client->lost, true, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&client->lock);
	if (rc != 0)
		log_error("the next uroced cannot be used: %s", strerror(-rc));
	return rc;
}

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
