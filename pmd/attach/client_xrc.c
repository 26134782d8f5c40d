/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC domains of an attached process, which it shares with others (device/xrc_share.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach/attach.h"
#include "base/cancel.h"
#include "client.h"
#include "device/xrc_share.h"
#include "net/link.h"

struct client_note {
	STAILQ_ENTRY(client_note) link;
	struct xrc_note note;
};

static void append(struct client_notes *notes, const struct xrc_note *note)
{
	struct client_note *added = malloc(sizeof(*added));

	/* The other side of a link then waits until the requester gives up. */
	if (!added)
		return;
	added->note = *note;
	STAILQ_INSERT_TAIL(notes, added, link);
}

static void drop_first(struct client_notes *notes)
{
	struct client_note *first = STAILQ_FIRST(notes);

	STAILQ_REMOVE_HEAD(notes, link);
	free(first);
}

void client_xrc_hear_locked(struct share_client *client, const struct share_message *message)
{
	append(&client->xrc_in, &message->xrc);
}

void client_xrc_flush_locked(struct share_client *client)
{
	struct share_message message;
	int rc = 0;

	/* The next owner is told. */
	if (client_is_away(client) && !client->lost)
		return;
	memset(&message, 0, sizeof(message));
	message.type = SHARE_XRC;
	message.version = SHARE_VERSION;
	pthread_mutex_lock(&client->xrc_lock);
	while (rc == 0 && !STAILQ_EMPTY(&client->xrc_out)) {
		message.xrc = STAILQ_FIRST(&client->xrc_out)->note;
		rc = own_is(client->socket) ? message_send(client->socket, &message, NULL, 0)
					    : -EBADF;
		if (rc == 0)
			client_forget_locked(client, &message);
		/* A lost owner knows nothing of us any more. */
		if (rc != -EAGAIN)
			drop_first(&client->xrc_out);
	}
	pthread_mutex_unlock(&client->xrc_lock);
}

static int xrc_ask(void *user, struct xrc_note *note)
{
	struct share_message message;
	int rc;

	memset(&message, 0, sizeof(message));
	message.type = SHARE_XRC;
	message.xrc = *note;
	rc = client_ask(user, &message);
	note->result = message.result;
	return rc;
}

static void xrc_tell(void *user, const struct xrc_note *note)
{
	struct share_client *client = user;
	int cancel_state;

	/* An engine calls this within an engine poll, which must not end here. */
	cancel_state = cancel_disable();
	pthread_mutex_lock(&client->xrc_lock);
	append(&client->xrc_out, note);
	pthread_mutex_unlock(&client->xrc_lock);
	/* A thread that waits for an answer of the owner has the lock. Then the engine sends this
	 * when it next listens to the owner. */
	if (pthread_mutex_trylock(&client->lock) == 0) {
		client_xrc_flush_locked(client);
		pthread_mutex_unlock(&client->lock);
	}
	cancel_restore(cancel_state);
}

static bool xrc_has_next(void *user)
{
	struct share_client *client = user;
	bool found;

	if (pthread_mutex_trylock(&client->lock) != 0)
		return false;
	found = !STAILQ_EMPTY(&client->xrc_in);
	pthread_mutex_unlock(&client->lock);
	return found;
}

static bool xrc_next(void *user, struct xrc_note *note)
{
	struct share_client *client = user;
	bool found;

	if (pthread_mutex_trylock(&client->lock) != 0)
		return false;
	found = !STAILQ_EMPTY(&client->xrc_in);
	if (found) {
		*note = STAILQ_FIRST(&client->xrc_in)->note;
		drop_first(&client->xrc_in);
	}
	pthread_mutex_unlock(&client->lock);
	return found;
}

static const struct xrc_share_ops client_xrc = {
	.ask = xrc_ask,
	.tell = xrc_tell,
	.has_next = xrc_has_next,
	.next = xrc_next,
};

const struct xrc_share_ops *share_xrc_ops(const struct link *link, void **user)
{
	if (link->remote != &client_link_remote)
		return NULL;
	*user = link->remote_arg;
	return &client_xrc;
}
