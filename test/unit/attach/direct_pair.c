/* SPDX-License-Identifier: BSD-3-Clause */
#include "direct_pair.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "attach/attach.h"
#include "base/own.h"
#include "memif/doorbell.h"
#include "memif/socket.h"
#include "port/memif_caller.h"
#include "wire/build.h"
#include "wire/opcode.h"
#include "wire/packet.h"
#include "wire/qpn_block.h"

#define MTU 4200

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
static struct addresses addresses;

struct pair_side pair_sides[SIDES];

static int call(void *arg, int *doorbell_fd)
{
	struct pair_side *side = arg; /* it begins with the client */
	const int fd = side->called_fd;

	side->called_fd = -1;
	*doorbell_fd = side->called_doorbell_fd;
	return fd >= 0 ? fd : -ENETDOWN;
}

static bool is_up(void *arg)
{
	(void)arg;
	return true;
}

static bool is_lost(void *arg)
{
	(void)arg;
	return false;
}

static const struct memif_caller caller = {.call = call, .link_up = is_up, .lost = is_lost};

static void owner_hear(struct pair_side *side)
{
	struct memif_message message, answer;
	int fd;

	while (memif_socket_receive(side->owner_fd, &message, sizeof(message), &fd) > 0) {
		const int rc = memif_server_take(&side->owner, &message, fd, &answer);

		if (rc == -ECONNRESET)
			return;
		assert_int_equal(rc, 0);
		assert_int_equal(memif_socket_send(side->owner_fd, &answer, sizeof(answer)), 0);
	}
}

void pair_run(void)
{
	for (int i = 0; i < ROUNDS * SIDES; i++) {
		struct pair_side *side = &pair_sides[i % SIDES];

		owner_hear(side);
		if (side->link.port.ops) {
			(void)port_lost(&side->link.port);
			port_conn_run(&side->link.port);
		}
	}
}

static void begin(struct pair_side *side, uint32_t qpn_first)
{
	struct port *port = &side->link.port;
	struct memif_message hello;
	int ends[2], doorbell[2];

	memset(side, 0, sizeof(*side));
	pthread_mutex_init(&side->client.lock, NULL);
	pthread_mutex_init(&side->client.directs_lock, NULL);
	side->qpn_first = qpn_first;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
	side->called_fd = ends[0];
	side->owner_fd = ends[1];
	memif_server_init(&side->owner, &memif_limits_isolated);
	assert_int_equal(memif_doorbell_make(doorbell), 0);
	side->called_doorbell_fd = doorbell[0];
	own_mark(doorbell[1]);
	memif_end_take_doorbell(&side->owner.end, doorbell[1]);
	memif_server_hello(&side->owner, &hello, "test");
	assert_int_equal(memif_socket_send(side->owner_fd, &hello, sizeof(hello)), 0);
	link_init_remote(&side->link, &client_link_remote, &side->client, &addresses);
	assert_int_equal(memif_prepare_caller(port, &caller, &side->client, mac, MTU), 0);
	client_isolated_take_over(&side->client, &side->link);
	port->make_pool = client_make_private_pool;
	assert_int_equal(port_open(port), 0);
}

static void end(struct pair_side *side)
{
	struct port *port = &side->link.port;
	struct rte_mempool *pool = port->pool;
	const uint32_t buffers = port->mbufs;

	if (port->ops) {
		port_close(port);
		port_destroy(port);
		/* All buffers have come back. */
		assert_int_equal(rte_mempool_avail_count(pool), buffers);
		for (int i = 0; i < SHARE_DIRECTS_MAX; i++)
			assert_null(side->client.directs[i]);
	}
	free(pool->pool_data);
	free(pool);
	close(side->owner_fd);
	memif_server_fini(&side->owner);
}

int pair_set_up(TEST_STATE)
{
	struct address address = {.vlan = -1, .prefix_len = 24};

	addresses.count = 0;
	gid_from_ipv4("\x0a\x00\x00\x01", address.gid);
	assert_int_equal(addresses_add(&addresses, &address), 0);
	for (uint32_t i = 0; i < SIDES; i++)
		begin(&pair_sides[i], (i + 3) << BLOCK_SHIFT);
	pair_run();
	for (int i = 0; i < SIDES; i++)
		assert_true(port_connected(&pair_sides[i].link.port));
	return 0;
}

int pair_tear_down(TEST_STATE)
{
	for (int i = 0; i < SIDES; i++)
		end(&pair_sides[i]);
	return 0;
}

void pair_offer_to(struct pair_side *side, uint16_t at, uint32_t qpn_first, int memory_fd,
		   int doorbell_fd)
{
	static uint32_t number;
	const struct share_message message = {.offer = {.number = ++number,
							.side = at,
							.qpn_first = qpn_first,
							.qpn_count = BLOCK_QPNS,
							.engines = 1,
							.served = 0x1}};
	const int fds[SHARE_DIRECT_FDS] = {
		[SHARE_DIRECT_FD_MEMORY] = memory_fd,
		[SHARE_DIRECT_FD_DOORBELL] = doorbell_fd,
	};

	pthread_mutex_lock(&side->client.lock);
	client_directs_offer(&side->client, &message, fds);
	pthread_mutex_unlock(&side->client.lock);
}

int pair_make_memory(void)
{
	const int fd = memfd_create("direct", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, sizeof(struct direct_memory)), 0);
	return fd;
}

int pair_offer(void)
{
	const int memory_fd = pair_make_memory();
	int doorbell[2], kept;

	assert_int_equal(memif_doorbell_make(doorbell), 0);
	kept = dup(doorbell[0]);
	for (uint16_t i = 0; i < SIDES; i++)
		pair_offer_to(&pair_sides[i], i, pair_sides[!i].qpn_first, dup(memory_fd),
			      doorbell[i]);
	close(memory_fd);
	pair_run();
	return kept;
}

struct client_direct *pair_channel(const struct pair_side *side)
{
	for (int i = 0; i < SHARE_DIRECTS_MAX; i++) {
		if (side->client.directs[i])
			return side->client.directs[i];
	}
	return NULL;
}

uint32_t pair_count_channels(const struct pair_side *side)
{
	uint32_t count = 0;

	for (int i = 0; i < SHARE_DIRECTS_MAX; i++)
		count += side->client.directs[i] != NULL;
	return count;
}

size_t pair_build(uint8_t *frame, const struct pair_wish *wish, uint8_t number)
{
	struct path_attr attr = {.vlan_tci = -1, .udp_sport = 0xc000, .hop_limit = 64};
	const struct bth_fields bth = {
		.opcode = wish->opcode, .pkey = 0xffff, .dest_qpn = wish->dest_qpn};
	struct packet_out out = {.frame = frame};
	const uint8_t payload[4] = {number};
	struct path path;
	int len;

	gid_from_ipv4(wish->from, attr.sgid);
	gid_from_ipv4("\x0a\x00\x00\x01", attr.dgid);
	memcpy(attr.src_mac, wish->src_mac, sizeof(attr.src_mac));
	memcpy(attr.dst_mac, mac, sizeof(attr.dst_mac));
	assert_int_equal(path_init(&path, &attr), 0);
	packet_begin(&out, &path, &bth);
	if ((wish->opcode & OPCODE_SERVICE_MASK) == OPCODE_UD) {
		struct deth *deth = packet_extend(&out, sizeof(*deth));

		memset(deth, 0, sizeof(*deth));
		wire_put24(deth->src_qpn, wish->src_qpn);
	}
	packet_payload(&out, FRAG_COPY, payload, sizeof(payload));
	len = packet_seal(&out);
	assert_true(len > 0);
	return (size_t)len;
}

static uint8_t number_of(const struct rte_mbuf *mbuf)
{
	struct packet packet;

	assert_int_equal(packet_parse(rte_pktmbuf_mtod(mbuf, const uint8_t *), mbuf->data_len,
				      false, &packet),
			 PACKET_OK);
	return packet.payload[0];
}

struct pair_wish pair_wish_from(const struct pair_side *side)
{
	return (struct pair_wish){.opcode = OPCODE_UD | OPCODE_SEND_ONLY,
				  .src_qpn = side->qpn_first + 5,
				  .dest_qpn = pair_sides[side == pair_sides].qpn_first + 7,
				  .src_mac = mac,
				  .from = "\x0a\x00\x00\x01"};
}

bool pair_try_wish(struct pair_side *side, const struct pair_wish *wish, uint8_t number)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(side->link.port.pool);

	assert_non_null(mbuf);
	mbuf->data_len = (uint16_t)pair_build(rte_pktmbuf_mtod(mbuf, uint8_t *), wish, number);
	mbuf->pkt_len = mbuf->data_len;
	port_set_local_qpn(mbuf, wish->dest_qpn);
	if (port_tx_burst(&side->link.port, &mbuf, 1) == 1)
		return true;
	rte_pktmbuf_free(mbuf);
	return false;
}

bool pair_try_send(struct pair_side *side, uint8_t number)
{
	const struct pair_wish wish = pair_wish_from(side);

	return pair_try_wish(side, &wish, number);
}

uint32_t pair_owner_pass(struct pair_side *from)
{
	struct pair_side *to = &pair_sides[from == pair_sides];
	uint8_t frame[PACKET_FRAME_MAX];
	uint32_t count = 0;
	int len;

	while ((len = memif_server_receive(&from->owner, frame, sizeof(frame))) > 0) {
		assert_int_equal(memif_end_send(&to->owner.end, frame, (size_t)len), 0);
		memif_end_push(&to->owner.end);
		count++;
	}
	memif_end_release(&from->owner.end);
	to->passed += count;
	return count;
}

uint16_t pair_receive(struct pair_side *side, uint8_t *numbers)
{
	struct rte_mbuf *mbufs[BURST];
	const uint16_t n = port_rx_burst(&side->link.port, mbufs, BURST);

	for (uint16_t i = 0; i < n; i++)
		numbers[i] = number_of(mbufs[i]);
	rte_pktmbuf_free_bulk(mbufs, n);
	return n;
}

void pair_expect_one(struct pair_side *side, uint8_t number)
{
	uint8_t numbers[BURST];

	assert_int_equal(pair_receive(side, numbers), 1);
	assert_int_equal(numbers[0], number);
}
