/* SPDX-License-Identifier: BSD-3-Clause */
/* The port of an attached process: bursts through its rings (link/port.h). */
#include <errno.h>
#include <unistd.h>

#include <rte_ether.h>

#include "client.h"
#include "link/port.h"

#define BURST_MAX 64

static void client_wake_owner(struct share_client *client)
{
	const uint64_t one = 1;

	/* Orders the store of what was put before this load: the owner looks at the rings after it
	 * has said that it sleeps. Pairs with owner_arm. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&client->page->owner_sleeps, __ATOMIC_RELAXED) == 0 ||
	    __atomic_exchange_n(&client->page->owner_sleeps, 0, __ATOMIC_RELAXED) == 0)
		return;
	/* The only failure is a counter that is full, and then it is awake. */
	if (write(client->owner_fd, &one, sizeof(one)) < 0)
		return;
}

static uint16_t client_tx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	struct share_client *client = arg;
	uint64_t words[BURST_MAX];
	uint32_t put;

	n = RTE_MIN(n, (uint16_t)BURST_MAX);
	for (uint16_t i = 0; i < n; i++) {
		const struct share_packet packet = {
			.buffer = (uint32_t)(mbufs[i] - client->mbufs),
			.offset = mbufs[i]->data_off,
			.len = mbufs[i]->data_len,
		};

		words[i] = share_pack(&packet);
	}
	put = share_ring_put(&client->rings[SHARE_RING_TX], words, n);
	client_wake_owner(client);
	return (uint16_t)put;
}

static bool client_is_sane(const struct share_client *client, const struct share_packet *packet)
{
	return packet->buffer < client->buffers && packet->len <= client->buffer_bytes &&
	       packet->offset <= client->buffer_bytes - packet->len;
}

static uint16_t client_rx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	struct share_client *client = arg;
	uint64_t words[BURST_MAX];
	uint16_t received = 0;
	uint32_t count;

	count = share_ring_take(&client->rings[SHARE_RING_RX], words,
				RTE_MIN(n, (uint16_t)BURST_MAX));
	for (uint32_t i = 0; i < count; i++) {
		const struct share_packet packet = share_unpack(words[i]);
		struct rte_mbuf *mbuf;

		if (unlikely(!client_is_sane(client, &packet)))
			continue;
		mbuf = client_mbuf(client, packet.buffer);
		mbuf->data_off = packet.offset;
		mbuf->data_len = packet.len;
		mbuf->pkt_len = packet.len;
		mbuf->port = packet.flags & SHARE_FLAG_LOCAL ? PORT_HANDED_OVER : 0;
		mbuf->ol_flags = packet.flags & SHARE_FLAG_SUMS
					 ? RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD
					 : 0;
		mbufs[received++] = mbuf;
	}
	return received;
}

static bool client_arm(void *arg)
{
	struct share_client *client = arg;
	struct share_ring *rx = &client->rings[SHARE_RING_RX];
	uint64_t count;

	/* What it told of before is known. */
	if (read(client->process_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		return true;
	__atomic_store_n(&client->page->process_sleeps, 1, __ATOMIC_RELAXED);
	/* Orders the store before the load: either we see what the owner put, or it sees that we
	 * sleep. Pairs with slot_wake. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	/* Read by whoever runs the engine, as an atomic: not share_ring_count, which writes. */
	return __atomic_load_n(&rx->memory->prod, __ATOMIC_ACQUIRE) !=
	       __atomic_load_n(&rx->memory->cons, __ATOMIC_RELAXED);
}

static bool client_link_up(void *arg)
{
	const struct share_client *client = arg;

	return __atomic_load_n(&client->page->link_up, __ATOMIC_RELAXED) != 0 &&
	       !__atomic_load_n(&client->lost, __ATOMIC_RELAXED);
}

static bool client_connected(void *arg)
{
	const struct share_client *client = arg;

	/* The owner knows where a packet goes, and drops what reaches nobody. */
	return !__atomic_load_n(&client->lost, __ATOMIC_RELAXED);
}

static bool client_lost(void *arg)
{
	struct share_client *client = arg;

	client_listen(client);
	return __atomic_load_n(&client->lost, __ATOMIC_RELAXED);
}

/* At the end of the process: what was sent is in the ring, and the owner takes it from there. */
static void client_close(void *arg)
{
	struct share_client *client = arg;

	client_wake_owner(client);
}

const struct port_ops client_port_ops = {
	.rx_burst = client_rx_burst,
	.tx_burst = client_tx_burst,
	.arm = client_arm,
	.link_up = client_link_up,
	.connected = client_connected,
	.lost = client_lost,
	.close = client_close,
};
