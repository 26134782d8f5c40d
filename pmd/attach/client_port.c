/* SPDX-License-Identifier: BSD-3-Clause */
/* The port of an attached process: bursts through its rings (port/port.h), the slots of its further
 * engines, and the ports of rdma_cm that it asks for. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "attach/attach.h"
#include "base/log.h"
#include "base/own.h"
#include "client.h"
#include "cm/ports.h"
#include "net/link.h"
#include "port/port.h"
#include "wire/qpn_block.h"

/*
 * If the first engine has a packet socket, it receives the packets to its own queue pairs only. So
 * each other engine must have a socket, too; if one cannot have it, all packets to and from other
 * hosts pass through the owner.
 */
static int client_share_sockets(struct share_client *first, const struct share_client *client)
{
	if (!first->psock || client->psock)
		return 0;
	log_info("packets pass through uroced: a further engine has no packet socket");
	return client_decline_psocks(first);
}

int client_open_queue(void *arg, uint32_t number, uint32_t count, struct port *queue)
{
	struct share_client *first = arg, *client;
	int rc;

	if (first->engines != count)
		return -EOPNOTSUPP;
	rc = attach_open_further(first, number, queue, &client);
	if (rc != 0)
		return rc;
	SLIST_INSERT_HEAD(&first->further, client, link);
	return client_share_sockets(first, client);
}

/* Send a request to the owner and return its result. -ENODEV: an owner that does not answer
 * counts as gone. */
static int ports_ask(struct share_client *client, struct share_message *message)
{
	return client_ask(client, message) == 0 ? message->result : -ENODEV;
}

static int ports_claim(void *user, struct cm_port_claim *claim, uint32_t *id)
{
	struct share_message message;
	int rc;

	memset(&message, 0, sizeof(message));
	message.type = SHARE_CLAIM;
	message.claim = (struct share_claim){
		.space = claim->space,
		.vlan_id = claim->vlan_id,
		.port = claim->port,
		.ip_version = claim->ip_version,
		.any_address = claim->any_address,
		.reuse = claim->reuse,
	};
	memcpy(message.claim.address, claim->address, sizeof(message.claim.address));
	rc = ports_ask(user, &message);
	if (rc != 0)
		return rc;
	claim->port = message.claim.port;
	*id = message.claim.id;
	return 0;
}

static int ports_listen(void *user, uint32_t id)
{
	struct share_message message;

	memset(&message, 0, sizeof(message));
	message.type = SHARE_LISTEN;
	message.claim.id = id;
	return ports_ask(user, &message);
}

static int ports_change(void *user, uint32_t id, uint8_t ip_version, bool reuse)
{
	struct share_message message;

	memset(&message, 0, sizeof(message));
	message.type = SHARE_CHANGE;
	message.claim = (struct share_claim){.id = id, .ip_version = ip_version, .reuse = reuse};
	return ports_ask(user, &message);
}

static void ports_release(void *user, uint32_t id)
{
	struct share_message message;

	memset(&message, 0, sizeof(message));
	message.type = SHARE_RELEASE;
	message.claim.id = id;
	client_tell(user, &message);
}

static int ports_ids(void *user, uint32_t *mask, uint32_t *value)
{
	const struct share_client *client = user;

	*mask = client->id_mask;
	*value = client->id_value;
	return 0;
}

static const struct cm_ports_ops client_ports = {
	.claim = ports_claim,
	.listen = ports_listen,
	.change = ports_change,
	.release = ports_release,
	.ids = ports_ids,
};

int32_t share_owner_pid(const struct link *link)
{
	const struct share_client *client = link->remote_arg;

	return client->owner_pid;
}

const struct cm_ports_ops *share_ports(const struct link *link, void **user)
{
	if (link->remote != &client_link_remote)
		return NULL;
	*user = link->remote_arg;
	return &client_ports;
}

#define BURST_MAX 64

static uint16_t client_put_to_owner(struct share_client *client, struct rte_mbuf **mbufs,
				    uint16_t n)
{
	uint64_t words[BURST_MAX];

	if (client->below)
		return client->below_ops->tx_burst(client->below, mbufs, n);
	for (uint16_t i = 0; i < n; i++) {
		const struct share_packet packet = client_packet(client, mbufs[i]);

		words[i] = share_pack(&packet);
	}
	return (uint16_t)share_ring_put(&client->rings[SHARE_RING_TX], words, n);
}

/* Where packets go besides a direct channel. */
static const char owner_way, psock_way;

/* Return where a packet goes: a channel, or one of these two. */
static const void *client_way(struct share_client *client, const struct rte_mbuf *mbuf)
{
	const struct client_direct *direct = client_direct_of(client, port_local_qpn(mbuf));

	if (direct)
		return direct;
	return client_psock_sends(client, mbuf) ? &psock_way : &owner_way;
}

static uint16_t client_put(struct share_client *client, const void *way, struct rte_mbuf **mbufs,
			   uint16_t n)
{
	if (way == &psock_way)
		return client_psock_put(client, mbufs, n);
	if (way == &owner_way)
		return client_put_to_owner(client, mbufs, n);
	client_direct_send(client, (struct client_direct *)(uintptr_t)way, mbufs, n);
	return n;
}

uint16_t client_tx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	struct share_client *client = arg;
	const void *way, *next;
	uint16_t sent = 0, run, taken;
	bool to_owner = false, to_direct = false;

	if (n == 0)
		return 0;
	n = RTE_MIN(n, (uint16_t)BURST_MAX);
	next = client_way(client, mbufs[0]);
	/* Send one run of packets with the same way at a time. */
	do {
		way = next;
		for (run = 1; sent + run < n; run++) {
			next = client_way(client, mbufs[sent + run]);
			if (next != way)
				break;
		}
		to_owner |= way == &owner_way && !client->below;
		to_direct |= way != &psock_way && way != &owner_way;
		taken = client_put(client, way, mbufs + sent, run);
		sent = (uint16_t)(sent + taken);
	} while (taken == run && sent < n);
	if (!to_owner && !to_direct)
		return sent;
	/* Order the stores of the packets before the loads of the sleep flags: a receiver sets
	 * its flag, and then looks for packets once more. Pairs with client_arm and serve_arm. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (to_owner)
		client_wake_owner(client);
	client_directs_wake(client);
	return sent;
}

/* Return true if a word of another process describes a packet inside a buffer. */
static bool is_sane(const struct share_client *client, const struct share_packet *packet)
{
	return packet->buffer < client->buffers && packet->len <= client->buffer_bytes &&
	       packet->offset <= client->buffer_bytes - packet->len;
}

static __rte_noinline uint16_t client_take_words(struct share_client *client,
						 struct rte_mbuf **mbufs, uint16_t n)
{
	uint64_t words[BURST_MAX];
	uint16_t received = 0;
	uint32_t count;

	count = share_ring_take(&client->rings[SHARE_RING_RX], words,
				RTE_MIN(n, (uint16_t)BURST_MAX));
	for (uint32_t i = 0; i < count; i++) {
		const struct share_packet packet = share_unpack(words[i]);
		struct rte_mbuf *mbuf;

		if (unlikely(!is_sane(client, &packet)))
			continue;
		mbuf = client_mbuf(client, packet.buffer);
		mbuf->data_off = packet.offset;
		mbuf->data_len = packet.len;
		mbuf->pkt_len = packet.len;
		mbuf->port = packet.flags & SHARE_FLAG_LOCAL ? PORT_HANDED_OVER : PORT_PASSED_ON;
		mbuf->ol_flags = packet.flags & SHARE_FLAG_SUMS
					 ? RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD
					 : 0;
		mbufs[received++] = mbuf;
	}
	return received;
}

static uint16_t client_take_from_owner(struct share_client *client, struct rte_mbuf **mbufs,
				       uint16_t n)
{
	return share_ring_count(&client->rings[SHARE_RING_RX]) > 0
		       ? client_take_words(client, mbufs, n)
		       : 0;
}

static uint16_t client_rx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	typedef uint16_t take(struct share_client * client, struct rte_mbuf * *mbufs, uint16_t n);
	/* Begin at another one each time, so that none keeps the others out for ever. */
	static take *const sources[] = {client_directs_take, client_take_from_owner,
					client_psock_take, client_directs_take,
					client_take_from_owner};
	struct share_client *client = arg;
	take *const *source = &sources[client->first_source];
	uint16_t received;

	client->first_source = client->first_source < 2 ? client->first_source + 1 : 0;
	received = source[0](client, mbufs, n);
	received = (uint16_t)(received +
			      source[1](client, mbufs + received, (uint16_t)(n - received)));
	return (uint16_t)(received + source[2](client, mbufs + received, (uint16_t)(n - received)));
}

/* The ring to the owner tells of packets that the owner has not forwarded, and the page of those
 * that it dropped. Nothing is known of the kernel's interface. */
static bool client_taken(void *arg, uint32_t qpn, bool is_local, struct port_taken *taken)
{
	struct share_client *client = arg;
	const struct share_ring *ring = &client->rings[SHARE_RING_TX];
	const struct client_direct *direct = client_direct_of(client, is_local ? qpn : 0);
	bool known;

	if (direct && client_direct_taken(direct, taken, &known))
		return known;
	if (client->psock && !is_local)
		return false;
	taken->dropped += client->away.times;
	if (unlikely(client_is_away(client))) {
		/* Nothing is taken, and nothing is lost for good, until the next owner is there. */
		taken->given = ring->own + 1;
		taken->taken = ring->own;
		return true;
	}
	taken->given = ring->own;
	/* Acquire: the owner has counted what it dropped of the packets that it took. It drops only
	 * packets to processes of this host. */
	taken->taken = __atomic_load_n(&ring->memory->cons, __ATOMIC_ACQUIRE);
	if (is_local) {
		taken->dropped += __atomic_load_n(&client->page->dropped, __ATOMIC_RELAXED);
		taken->unread = (__atomic_load_n(&client->page->unread, __ATOMIC_RELAXED) &
				 wire_block_bit(qpn)) != 0;
	}
	return !ring->broken && taken->given - taken->taken <= ring->size;
}

static bool client_arm(void *arg)
{
	struct share_client *client = arg;
	struct share_ring *rx = &client->rings[SHARE_RING_RX];
	struct epoll_event events[2]; /* as many as may be in the set */

	/* Discard old notifications. */
	if (own_is(client->process_fd) &&
	    epoll_wait(client->process_fd, events, RTE_DIM(events), 0) < 0)
		return true;
	__atomic_store_n(&client->page->process_sleeps, 1, __ATOMIC_RELAXED);
	client_directs_say_asleep(client, true);
	/* Orders the stores before the loads: either we see what others put, or they see that we
	 * sleep. Pairs with server_poll_wake and client_tx_burst. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	/* Read the indices as atomics, because any thread that runs the engine may read them. Do
	 * not use share_ring_count, which writes. */
	return __atomic_load_n(&rx->memory->prod, __ATOMIC_ACQUIRE) !=
		       __atomic_load_n(&rx->memory->cons, __ATOMIC_RELAXED) ||
	       client_directs_wait(client) || client_psock_waits(client);
}

static bool client_link_up(void *arg, bool connected)
{
	const struct share_client *client = arg;

	(void)connected;
	return __atomic_load_n(&client->page->link_up, __ATOMIC_RELAXED) != 0 &&
	       !__atomic_load_n(&client->lost, __ATOMIC_RELAXED);
}

static bool client_connected(void *arg)
{
	const struct share_client *client = arg;

	/* The owner knows where a packet goes, and drops packets that reach nobody. */
	return !__atomic_load_n(&client->lost, __ATOMIC_RELAXED);
}

static bool client_lost(void *arg)
{
	struct share_client *client = arg;

	client_listen(client);
	client_directs_look(client);
	return __atomic_load_n(&client->lost, __ATOMIC_RELAXED);
}

static bool client_port_returned(void *arg)
{
	return client_returned(arg);
}

/* Wake the owner when the process ends: the packets that were sent are in the ring, and the
 * owner takes them from there. */
static void client_close(void *arg)
{
	struct share_client *client = arg;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	client_wake_owner(client);
	client_stop_psock(client);
}

/* The owner has gone. Packets that still arrive at the socket would wake us for nothing. */
static void client_give_up(void *arg)
{
	client_stop_psock(arg);
}

const struct port_ops client_port_ops = {
	.rx_burst = client_rx_burst,
	.tx_burst = client_tx_burst,
	.expect = client_expect,
	.offer = client_offer,
	.place = client_place,
	.aim = client_aim,
	.placed = client_placed,
	.push = client_push,
	.waits = client_waits,
	.send_held = client_send_held,
	.taken = client_taken,
	.arm = client_arm,
	.link_up = client_link_up,
	.connected = client_connected,
	.lost = client_lost,
	.lose = client_give_up,
	.returned = client_port_returned,
	.renew = client_renew,
	.open_queue = client_open_queue,
	.close = client_close,
};
