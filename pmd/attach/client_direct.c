/* SPDX-License-Identifier: BSD-3-Clause */
/* A process's direct channels to other processes of its owner (share/direct.h): opens and closes
 * them, and knows which one leads to a queue pair. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/own.h"
#include "base/meter.h"
#include "base/tuning.h"
#include "client.h"

/* In a route: the other process's device has several engines. */
#define ROUTE_ENGINES 0x80

static_assert(SHARE_DIRECTS_MAX < ROUTE_ENGINES, "a route has room for both");

/* Release packets that were received. */
static int direct_enqueue(struct rte_mempool *pool, void *const *objects, unsigned int n)
{
	struct client_direct *direct = pool->pool_data;

	for (unsigned int i = 0; i < n; i++)
		direct_done(&direct->rx,
			    (uint32_t)((const struct rte_mbuf *)objects[i] - direct->mbufs));
	direct_give_back(&direct->rx);
	return 0;
}

static int direct_dequeue(struct rte_mempool *pool, void **objects, unsigned int n)
{
	(void)pool, (void)objects, (void)n;
	return -ENOBUFS;
}

static unsigned int direct_count(const struct rte_mempool *pool)
{
	(void)pool;
	return 0;
}

static const struct client_pool_kind direct_pool_kind = {
	.enqueue = direct_enqueue,
	.dequeue = direct_dequeue,
	.get_count = direct_count,
};

/* Map a channel's memory. NULL: it cannot be mapped, or no descriptor came. */
static struct direct_memory *direct_map(int fd)
{
	struct direct_memory *memory =
		mmap(NULL, sizeof(*memory), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (memory == MAP_FAILED)
		return NULL;
	madvise(memory, sizeof(*memory), MADV_DONTFORK);
	madvise(memory, sizeof(*memory), MADV_DONTDUMP);
	return memory;
}

/* Close a doorbell, unless the program has closed it: its number may be the program's by now. An
 * untrusted process sees the end of its socket. It may make closing slow, which delays only what
 * such processes are charged for. */
static void doorbell_close(int wake_fd, bool trusted, int fd)
{
	uint64_t before;

	if (!own_is(fd))
		return;
	if (trusted) {
		close(fd);
		return;
	}
	before = memif_socket_charge(MEMIF_SOCKET_PEERS);
	memif_socket_end(wake_fd, fd);
	memif_socket_charge(before);
}

/* Unmap a channel's memory. An untrusted process may keep it, and the pages are counted as ours
 * where we wrote first: remove them, unless that process may still read our last packets there. */
static void direct_unmap(const struct client_direct *direct)
{
	uint64_t before;

	if (direct->offer.trusted || direct->state != DIRECT_CLOSED) {
		munmap(direct->memory, sizeof(*direct->memory));
		return;
	}
	before = memif_socket_charge(MEMIF_SOCKET_PEERS);
	memif_socket_remove(direct->memory, sizeof(*direct->memory));
	memif_socket_charge(before);
}

/* Release what came with an offer that is not taken. */
static void offer_refuse(const struct client_offer *offer)
{
	if (offer->memory)
		munmap(offer->memory, sizeof(*offer->memory));
	doorbell_close(-1, offer->offer.trusted, offer->doorbell_fd);
}

static bool offer_is_sane(const struct share_client *client, const struct share_offer *offer)
{
	return offer->number != 0 && offer->peer < SHARE_PEERS_MAX && offer->side <= 1 &&
	       offer->engines - 1u < SHARE_ENGINES_MAX && offer->trusted == !client->below &&
	       (offer->trusted || tuning.direct);
}

void client_directs_offer(struct share_client *client, const struct share_message *message,
			  const int *fds)
{
	const struct client_offer offer = {
		.offer = message->offer,
		.memory = direct_map(fds[SHARE_DIRECT_FD_MEMORY]),
		.doorbell_fd = fds[SHARE_DIRECT_FD_DOORBELL],
	};

	if (fds[SHARE_DIRECT_FD_MEMORY] >= 0)
		close(fds[SHARE_DIRECT_FD_MEMORY]);
	own_mark(offer.doorbell_fd);
	/* Refuse a bad offer, or one too many. The other process then never sees us ready, and
	 * both go on through the owner. */
	if (client->offer_count == SHARE_DIRECTS_MAX || !offer.memory ||
	    !offer_is_sane(client, &offer.offer)) {
		offer_refuse(&offer);
		return;
	}
	client->offers[client->offer_count++] = offer;
}

static int direct_make_pool(struct client_direct *direct)
{
	direct->pool =
		client_new_pool(&direct_pool_kind, direct, DIRECT_SLOTS, DIRECT_BUFFER_BYTES);
	if (!direct->pool)
		return -ENOMEM;
	for (uint32_t i = 0; i < DIRECT_SLOTS; i++) {
		struct rte_mbuf *mbuf = &direct->mbufs[i];

		mbuf->buf_len = DIRECT_BUFFER_BYTES;
		mbuf->nb_segs = 1;
		rte_mbuf_refcnt_set(mbuf, 1);
		mbuf->pool = direct->pool;
	}
	return 0;
}

/* Let the doorbell wake us. An eventfd of ours is in the set already, and this one wakes the other
 * process. */
static int direct_watch(const struct share_client *client, const struct client_direct *direct)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = direct->doorbell_fd};

	if (direct->offer.trusted)
		return 0;
	return epoll_ctl(port_wake_fd(client->port), EPOLL_CTL_ADD, direct->doorbell_fd, &event) ==
			       0
		       ? 0
		       : -errno;
}

static void direct_destroy(struct share_client *client, struct client_direct *direct)
{
	client_drop_held(client, direct);
	direct_unmap(direct);
	doorbell_close(port_wake_fd(client->port), direct->offer.trusted, direct->doorbell_fd);
	free(direct->pool);
	free(direct);
}

/* Make a channel from an offer, and take over what came with it. NULL: it cannot be made. */
static struct client_direct *direct_create(struct share_client *client,
					   const struct client_offer *offer)
{
	struct client_direct *direct =
		aligned_alloc(_Alignof(struct client_direct), sizeof(*direct));
	int rc;

	if (!direct) {
		offer_refuse(offer);
		return NULL;
	}
	memset(direct, 0, sizeof(*direct));
	direct->offer = offer->offer;
	direct->memory = offer->memory;
	direct->doorbell_fd = offer->doorbell_fd;
	rc = offer->offer.trusted ? direct_make_pool(direct) : 0;
	/* The program may have closed the doorbell, or none came. */
	if (rc == 0)
		rc = own_is(direct->doorbell_fd) ? direct_watch(client, direct) : -EBADF;
	if (rc != 0) {
		direct_destroy(client, direct);
		return NULL;
	}
	direct_init(&direct->tx, &direct->rx, direct->memory, offer->offer.side);
	meter_init(&direct->meter);
	return direct;
}

/* Return the route by a channel. */
static uint8_t direct_route(const struct client_direct *direct, uint8_t index)
{
	return (uint8_t)((index + 1) | (direct->offer.engines > 1 ? ROUTE_ENGINES : 0));
}

static void client_set_routes(struct share_client *client, const struct share_offer *offer,
			      uint8_t from, uint8_t to)
{
	const uint32_t count = RTE_MIN(offer->qpn_count, BLOCKS * BLOCK_QPNS);

	for (uint32_t qpn = 0; qpn < count; qpn += BLOCK_QPNS) {
		uint8_t *route = &client->routes[blocks_index(offer->qpn_first + qpn)];

		if (*route == from)
			*route = to;
	}
}

/* Tell the other process that we are ready. `sleeps` is set before, so that it wakes us for the
 * first packet. */
static void direct_say_ready(struct client_direct *direct)
{
	struct direct_side *own = &direct->memory->sides[direct->offer.side];

	__atomic_store_n(&own->sleeps, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&own->ready, 1, __ATOMIC_RELEASE);
}

/* Open the offered channel. Return false if there is no room: keep the offer. */
static bool client_accept(struct share_client *client, const struct client_offer *offer)
{
	struct client_direct *direct;
	uint8_t i = 0;

	while (i < SHARE_DIRECTS_MAX && client->directs[i])
		i++;
	if (i == SHARE_DIRECTS_MAX)
		return false;
	direct = direct_create(client, offer);
	if (!direct)
		return true;
	pthread_mutex_lock(&client->directs_lock);
	client->directs[i] = direct;
	client->directs_end = RTE_MAX(client->directs_end, i + 1u);
	pthread_mutex_unlock(&client->directs_lock);
	client_set_routes(client, &direct->offer, 0, direct_route(direct, i));
	direct_say_ready(direct);
	return true;
}

/* Return the route by another channel to the same process; 0: there is none. */
static uint8_t client_other_route(const struct share_client *client,
				  const struct client_direct *direct)
{
	for (uint8_t i = 0; i < SHARE_DIRECTS_MAX; i++) {
		const struct client_direct *other = client->directs[i];

		if (other && other != direct && other->state != DIRECT_CLOSED &&
		    other->offer.qpn_first == direct->offer.qpn_first)
			return direct_route(other, i);
	}
	return 0;
}

/* Close a channel: no packet is sent there any more. Packets that the other process sent before are
 * still taken. */
static void client_close_direct(struct share_client *client, uint8_t index)
{
	struct client_direct *direct = client->directs[index];

	direct->state = DIRECT_CLOSED;
	client->offer_qpn = 0;
	client_set_routes(client, &direct->offer, direct_route(direct, index),
			  client_other_route(client, direct));
	client_drop_held(client, direct);
	direct_end(&direct->rx);
}

static void client_remove_direct(struct share_client *client, uint8_t index)
{
	struct client_direct *direct = client->directs[index];

	pthread_mutex_lock(&client->directs_lock);
	client->directs[index] = NULL;
	pthread_mutex_unlock(&client->directs_lock);
	if (client->last_direct == direct)
		client_set_last(client, NULL);
	if (client->aimed == direct)
		client->aimed = client->placing = NULL;
	direct_destroy(client, direct);
}

/* Return true if the owner has ended a channel, or the other process has. */
static bool direct_has_ended(const struct share_client *client, struct client_direct *direct)
{
	struct pollfd doorbell = {.fd = direct->doorbell_fd, .events = POLLRDHUP};

	if (direct->offer.trusted)
		return __atomic_load_n(&client->page->directs[direct->offer.peer],
				       __ATOMIC_ACQUIRE) != direct->offer.number;
	/* A process that breaks a rule gets no more packets. */
	direct_look(&direct->tx);
	return direct->tx.broken || !own_is(direct->doorbell_fd) || poll(&doorbell, 1, 0) == 1;
}

static void client_look_at(struct share_client *client, uint8_t index)
{
	struct client_direct *direct = client->directs[index];

	if (direct->state != DIRECT_CLOSED && direct_has_ended(client, direct))
		client_close_direct(client, index);
	if (direct->state == DIRECT_CLOSED && direct_is_over(&direct->rx))
		client_remove_direct(client, index);
}

void client_directs_drop(struct share_client *client)
{
	for (uint8_t i = 0; i < SHARE_DIRECTS_MAX; i++) {
		if (client->directs[i])
			client_remove_direct(client, i);
	}
	memset(client->routes, 0, sizeof(client->routes));
}

void client_offers_drop_locked(struct share_client *client)
{
	while (client->offer_count > 0)
		offer_refuse(&client->offers[--client->offer_count]);
}

void client_directs_look(struct share_client *client)
{
	uint32_t left = 0;

	for (uint8_t i = 0; i < SHARE_DIRECTS_MAX; i++) {
		if (client->directs[i])
			client_look_at(client, i);
	}
	if (pthread_mutex_trylock(&client->lock) != 0)
		return;
	/* The next owner's channels are accepted when its memory is in place. */
	for (uint32_t i = 0; i < client->offer_count; i++) {
		if (client_is_away(client) || client_returned(client) ||
		    !client_accept(client, &client->offers[i]))
			client->offers[left++] = client->offers[i];
	}
	client->offer_count = left;
	pthread_mutex_unlock(&client->lock);
}

/* Mark the packets that were sent through the owner until now. */
static struct memif_mark client_sent(const struct share_client *client)
{
	return client->below
		       ? memif_caller_sent(client->below)
		       : (struct memif_mark){.index = (uint16_t)client->rings[SHARE_RING_TX].own};
}

static bool client_has_taken(const struct share_client *client, const struct memif_mark *mark)
{
	const struct share_ring *ring = &client->rings[SHARE_RING_TX];
	uint32_t cons;

	if (client->below)
		return memif_caller_has_taken(client->below, mark);
	/* Acquire: the owner has put the packets into the other process's ring. */
	cons = __atomic_load_n(&ring->memory->cons, __ATOMIC_ACQUIRE);
	return cons == ring->own || (int16_t)((uint16_t)cons - mark->index) >= 0;
}

/* Return a channel, unless its other process has not mapped it yet. */
static __rte_noinline struct client_direct *client_direct_begin(const struct share_client *client,
								struct client_direct *direct)
{
	if (!__atomic_load_n(&direct->memory->sides[!direct->offer.side].ready, __ATOMIC_ACQUIRE))
		return NULL;
	direct->state = DIRECT_SWITCHES;
	direct->sent = client_sent(client);
	return direct;
}

/* Return true if a channel leads to a process's queue pair. The owner counts packets that reach no
 * process. */
static bool direct_leads_to(const struct client_direct *direct, uint32_t qpn)
{
	return qpn - direct->offer.qpn_first < direct->offer.qpn_count;
}

static struct client_direct *client_direct_if_ready(const struct share_client *client,
						    struct client_direct *direct)
{
	return unlikely(direct->state == DIRECT_UNREADY) ? client_direct_begin(client, direct)
							 : direct;
}

/* Return the channel to the engine of a queue pair, of a process whose device has several. NULL:
 * there is none yet, or no process. */
static __rte_noinline struct client_direct *
client_direct_of_engine(const struct share_client *client, uint32_t qpn, uint8_t route)
{
	struct client_direct *direct;
	uint32_t first, bit;

	if (route == 0)
		return NULL;
	direct = client->directs[(route & ~ROUTE_ENGINES) - 1];
	if (!direct_leads_to(direct, qpn))
		return NULL;
	first = direct->offer.qpn_first;
	bit = 1u << qpn % direct->offer.engines;
	for (int i = 0; !(direct->offer.served & bit); i++) {
		struct client_direct *other;

		if (i == SHARE_DIRECTS_MAX)
			return NULL;
		other = client->directs[i];
		if (other && other->state != DIRECT_CLOSED && other->offer.qpn_first == first)
			direct = other;
	}
	return client_direct_if_ready(client, direct);
}

struct client_direct *client_direct_of(struct share_client *client, uint32_t qpn)
{
	struct client_direct *direct;
	uint32_t index;

	if (qpn == 0)
		return NULL;
	index = client->routes[blocks_index(qpn)] - 1u;
	/* There is no channel, or the device has several engines. */
	if (index >= SHARE_DIRECTS_MAX)
		return client_direct_of_engine(client, qpn, (uint8_t)(index + 1));
	direct = client->directs[index];
	if (unlikely(!direct_leads_to(direct, qpn)))
		return NULL;
	return client_direct_if_ready(client, direct);
}

bool client_has_switched(const struct share_client *client, struct client_direct *direct)
{
	if (likely(direct->state == DIRECT_OPEN))
		return true;
	if (direct->state != DIRECT_SWITCHES || !client_has_taken(client, &direct->sent))
		return false;
	direct->state = DIRECT_OPEN;
	return true;
}
