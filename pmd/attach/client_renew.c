/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts the memory and the descriptors of the next owner in the place of the last one's. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/own.h"
#include "client.h"

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
