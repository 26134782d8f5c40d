/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the next owner of the port, and tells it what this process has. */
#include "client_away.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/log.h"
#include "base/monotonic.h"
#include "base/own.h"
#include "client.h"
#include "port/port.h"

#define NS_PER_MS UINT64_C(1000000)
#define TRY_NS	  UINT64_C(2000000) /* between two tries to connect */
#define SOON_MS	  2
#define LATER_MS  20

static void set_presence(struct share_client *client, enum client_presence presence)
{
	__atomic_store_n(&client->away.presence, presence, __ATOMIC_RELEASE);
}

static void lose(struct share_client *client)
{
	__atomic_store_n(&client->lost, true, __ATOMIC_RELAXED);
}

static void begin(struct client_away *away)
{
	const uint64_t now = monotonic_ns();

	away->end_ns = now + away->ms * NS_PER_MS;
	__atomic_store_n(&away->since_ns, now, __ATOMIC_RELAXED);
}

bool client_go_away_locked(struct share_client *client)
{
	struct client_away *away = &client->away;

	if (away->ms == 0 || away->pid != getpid() || !own_is(client->socket))
		return false;
	if (away->presence == CLIENT_BACK)
		attach_close_fds(away->fds);
	if (away->presence != CLIENT_AWAY && away->presence != CLIENT_GREETED)
		begin(away);
	away->tried_ns = 0;
	set_presence(client, CLIENT_AWAY);
	return true;
}

uid_t client_peer_user(int fd)
{
	struct ucred peer = {.uid = (uid_t)-1};
	socklen_t len = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 ? peer.uid : (uid_t)-1;
}

/* Return true if the next owner is of the last one's user, or root's. The last one has removed its
 * socket, and another user may have put one in its place. */
static bool is_owners(const struct share_client *client, int fd)
{
	const uid_t user = client_peer_user(fd);

	return user == 0 || user == client->away.owner;
}

/* Connect again, by the same descriptor, and send the hello. Return false if nobody listens. */
static bool greet(struct share_client *client)
{
	struct share_message hello = {
		.type = SHARE_HELLO, .version = SHARE_VERSION, .engine.count = client->engines};
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool greeted;

	if (fd < 0)
		return false;
	attach_ask_sender(fd, 1);
	memcpy(hello.token, client->away.token, sizeof(hello.token));
	hello.psock_ifindex = client_psock_ifindex(client);
	greeted = connect(fd, (const struct sockaddr *)&client->address, sizeof(client->address)) ==
			  0 &&
		  is_owners(client, fd) &&
		  message_send(fd, &hello, &client->away.report_fd, client->away.report_fd >= 0) ==
			  0 &&
		  own_is(client->socket) && dup3(fd, client->socket, O_CLOEXEC) >= 0;
	close(fd);
	if (greeted)
		own_mark(client->socket);
	return greeted;
}

/* Return what keeps the engine from using what the next owner gives; NULL: nothing. */
static const char *differs(const struct share_client *client, const struct share_message *message)
{
	const struct share_welcome *welcome = &message->welcome;

	if (welcome->qpn_first != client->port->own_qpn_first ||
	    welcome->qpn_count != client->port->own_qpn_count ||
	    welcome->id_value != client->id_value)
		return "other numbers";
	if (memcmp(welcome->mac, client->port->mac, sizeof(welcome->mac)) != 0 ||
	    welcome->mtu_bytes != client->port->mtu_bytes)
		return "another port";
	if (welcome->engines != client->engines)
		return "fewer engines";
	if (client->arena &&
	    (welcome->buffers != client->buffers || welcome->buffer_bytes != client->buffer_bytes ||
	     welcome->buffer_stride != client->buffer_stride ||
	     welcome->spares_icrc != client->spares_icrc))
		return "other buffers";
	return NULL;
}

/* Return the same for an error. */
static const char *refusal(int rc)
{
	switch (rc) {
	case -ESTALE:
		return "nothing of the last one";
	case -EPROTO:
		return "another version than this program's libraries (start the program again)";
	case -ENODEV:
		return "lost its port";
	default:
		return strerror(-rc);
	}
}

/* Send a request again, and wait for its result. */
static int ask_again(struct share_client *client, struct share_message *message)
{
	const int rc = client_exchange_locked(client, message);

	return rc == 0 ? message->result : rc;
}

static int renew_promise(struct share_client *client, struct client_promise *promise)
{
	struct share_message message = {.type = promise->type};
	int rc;

	memcpy(message.gid, promise->gid, sizeof(message.gid));
	message.claim = promise->claim;
	message.xrc = promise->xrc;
	rc = ask_again(client, &message);
	if (rc != 0 || promise->type != SHARE_CLAIM)
		return rc;
	promise->claim.id = message.claim.id;
	if (!promise->listens)
		return 0;
	message = (struct share_message){.type = SHARE_LISTEN, .claim.id = promise->claim.id};
	return ask_again(client, &message);
}

/* Tell the next owner what this process has, in the order in which it has got it. */
static void renew_promises(struct share_client *client)
{
	struct client_promise *promise;

	TAILQ_FOREACH (promise, &client->away.promises, link) {
		const int rc = renew_promise(client, promise);

		if (client->away.presence != CLIENT_BACK)
			return;
		if (rc != 0 && promise->type == SHARE_CLAIM)
			log_warn("port %u of rdma_cm is lost with the last uroced: %s",
				 promise->claim.port, strerror(-rc));
		else if (rc != 0)
			log_warn("a group or XRC domain is lost with the last uroced: %s",
				 strerror(-rc));
	}
}

/* The next owner has answered the hello. */
static void come_back(struct share_client *client, int rc)
{
	struct client_away *away = &client->away;
	const char *reason = rc == 0 ? differs(client, &away->welcome) : refusal(rc);

	if (reason) {
		attach_close_fds(away->fds);
		log_error("the next uroced at %s has %s: the device is lost",
			  client->address.sun_path, reason);
		lose(client);
		return;
	}
	client->slot = away->welcome.welcome.slot;
	client->generation = away->welcome.welcome.generation;
	away->ms = away->welcome.away_ms;
	client->addresses = away->welcome.addresses;
	client->addresses_changed = true;
	__atomic_store_n(&client->link_up, away->welcome.link_up, __ATOMIC_RELAXED);
	client->abandoned_count = 0;
	client_offers_drop_locked(client);
	set_presence(client, CLIENT_BACK);
	renew_promises(client);
}

void client_seek_locked(struct share_client *client)
{
	struct client_away *away = &client->away;
	const uint64_t now = monotonic_ns();
	int rc;

	if (now >= away->end_ns || !own_is(client->socket)) {
		if (own_is(client->socket))
			log_error("no uroced has come back at %s", client->address.sun_path);
		lose(client);
		return;
	}
	/* A further engine's client comes back with the first one's. */
	if (client->engine > 0)
		return;
	if (away->presence == CLIENT_AWAY) {
		if (now - away->tried_ns < TRY_NS)
			return;
		away->tried_ns = now;
		if (!greet(client))
			return;
		set_presence(client, CLIENT_GREETED);
	}
	rc = message_receive_from(client->socket, &away->welcome, away->fds, &client->owner_pid);
	if (rc == -EAGAIN)
		return;
	if (rc == 0 && away->welcome.type != SHARE_WELCOME)
		rc = -EPROTO;
	if (rc == 0)
		rc = away->welcome.result;
	/* The owner has ended again, or one of the two has no descriptors just now. */
	if (rc == -ECONNRESET || rc == -EPIPE || rc == -EMFILE) {
		attach_close_fds(away->fds);
		set_presence(client, CLIENT_AWAY);
		return;
	}
	attach_ask_sender(client->socket, 0);
	come_back(client, rc);
}

/* Look the more rarely the longer the owner has been away: all its processes look, and the next one
 * needs the CPUs. One that is there answers within milliseconds, so look often for longer. */
int client_away_ms(const struct share_client *client)
{
	const uint64_t since_ns = __atomic_load_n(&client->away.since_ns, __ATOMIC_RELAXED);
	const uint64_t away_ms = (monotonic_ns() - since_ns) / NS_PER_MS;
	const uint64_t part_ms = away_ms / (client_is_away(client) ? 16 : 64);

	if (__atomic_load_n(&client->lost, __ATOMIC_RELAXED))
		return -1;
	return (int)RTE_MIN(RTE_MAX(part_ms, (uint64_t)SOON_MS), (uint64_t)LATER_MS);
}

int client_await_locked(struct share_client *client)
{
	const struct timespec nap = {.tv_nsec = NS_PER_MS};

	while (!client->lost && client_is_away(client)) {
		client_seek_locked(client);
		if (!client->lost && client_is_away(client))
			nanosleep(&nap, NULL);
	}
	return client->lost ? -ENETDOWN : 0;
}

static struct client_promise *find_claim(struct share_client *client, uint32_t id)
{
	struct client_promise *promise;

	LIST_FOREACH (promise, &client->away.claims[id % CLIENT_CLAIM_BUCKETS], same) {
		if (promise->id == id)
			return promise;
	}
	return NULL;
}

/* Find a group, or an XRC domain or target. */
static struct client_promise *find_like(struct share_client *client,
					const struct share_message *message)
{
	struct client_promise *promise;

	TAILQ_FOREACH (promise, &client->away.promises, link) {
		if (promise->type == SHARE_JOIN &&
		    (message->type == SHARE_JOIN || message->type == SHARE_LEAVE) &&
		    memcmp(promise->gid, message->gid, GID_LEN) == 0)
			return promise;
		if (promise->type != SHARE_XRC || message->type != SHARE_XRC)
			continue;
		if (promise->xrc.type == XRC_OPEN && message->xrc.type == XRC_CLOSE &&
		    promise->xrc.dev == message->xrc.dev && promise->xrc.ino == message->xrc.ino)
			return promise;
		if (promise->xrc.type == XRC_TARGET && message->xrc.type == XRC_TARGET_END &&
		    promise->xrc.target == message->xrc.target)
			return promise;
	}
	return NULL;
}

static void forget(struct share_client *client, struct client_promise *promise)
{
	if (!promise)
		return;
	TAILQ_REMOVE(&client->away.promises, promise, link);
	if (promise->type == SHARE_CLAIM)
		LIST_REMOVE(promise, same);
	free(promise);
}

static struct client_promise *promise_new(struct share_client *client, enum share_message_type type)
{
	struct client_promise *promise = calloc(1, sizeof(*promise));

	/* Without memory the next owner does not hear of it. */
	if (!promise)
		return NULL;
	promise->type = type;
	TAILQ_INSERT_TAIL(&client->away.promises, promise, link);
	return promise;
}

static void promise_xrc(struct share_client *client, const struct xrc_note *note)
{
	struct client_promise *promise;

	if (note->type != XRC_OPEN && note->type != XRC_TARGET)
		return;
	promise = promise_new(client, SHARE_XRC);
	if (!promise)
		return;
	promise->xrc = *note;
	/* Other processes may be back sooner, or later. */
	promise->xrc.flags = XRC_FLAG_CREATE;
}

void client_promise_locked(struct share_client *client, const struct share_message *request,
			   const struct share_message *reply)
{
	struct client_promise *promise;

	if (reply->result != 0)
		return;
	switch (request->type) {
	case SHARE_JOIN:
		if (!find_like(client, request)) {
			promise = promise_new(client, SHARE_JOIN);
			if (promise)
				memcpy(promise->gid, request->gid, GID_LEN);
		}
		break;
	case SHARE_LEAVE:
		forget(client, find_like(client, request));
		break;
	case SHARE_LISTEN:
		promise = find_claim(client, request->claim.id);
		if (promise)
			promise->listens = true;
		break;
	case SHARE_CHANGE:
		promise = find_claim(client, request->claim.id);
		if (promise) {
			promise->claim.ip_version = request->claim.ip_version;
			promise->claim.reuse = request->claim.reuse;
		}
		break;
	case SHARE_XRC:
		promise_xrc(client, &request->xrc);
		break;
	default:
		break;
	}
}

uint32_t client_promise_claim_locked(struct share_client *client, const struct share_claim *claim)
{
	struct client_promise *promise;
	uint32_t id = claim->id;

	/* The last owner may have given this id to another claim. */
	while (find_claim(client, id))
		id = ~client->away.ids++;
	promise = promise_new(client, SHARE_CLAIM);
	if (!promise)
		return claim->id;
	promise->claim = *claim;
	promise->id = id;
	LIST_INSERT_HEAD(&client->away.claims[id % CLIENT_CLAIM_BUCKETS], promise, same);
	return id;
}

void client_forget_locked(struct share_client *client, const struct share_message *message)
{
	forget(client, message->type == SHARE_RELEASE ? find_claim(client, message->claim.id)
						      : find_like(client, message));
}

void client_translate_locked(struct share_client *client, struct share_message *message)
{
	const struct client_promise *promise;

	if (message->type != SHARE_LISTEN && message->type != SHARE_CHANGE &&
	    message->type != SHARE_RELEASE)
		return;
	promise = find_claim(client, message->claim.id);
	if (promise)
		message->claim.id = promise->claim.id;
}

bool client_returned(const struct share_client *client)
{
	return __atomic_load_n(&client->away.presence, __ATOMIC_RELAXED) == CLIENT_BACK;
}

void client_be_here(struct share_client *client)
{
	client->away.times++;
	set_presence(client, CLIENT_HERE);
}

void client_settle_locked(struct share_client *client)
{
	const struct share_message message = {.type = SHARE_RETURNED, .version = SHARE_VERSION};

	client_be_here(client);
	/* If the owner has ended again, that is noticed soon. */
	(void)message_send(client->socket, &message, NULL, 0);
}
