/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of the direct channels of isolated processes (pmd/attach/client_isolated.c,
 * client_direct.c, client_packets.c): two of them, and their owner, which the test plays. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_mbuf.h>

#include "attach/attach.h"
#include "base/own.h"
#include "client.h"
#include "memif/doorbell.h"
#include "memif/server_end.h"
#include "memif/socket.h"
#include "net/link.h"
#include "port/memif_caller.h"
#include "test.h"
#include "wire/build.h"
#include "wire/mad.h"
#include "wire/opcode.h"
#include "wire/packet.h"
#include "wire/qpn_block.h"

#define SIDES  2
#define ROUNDS 40
#define BURST  32
#define RING   DIRECT_SLOTS
#define MTU    4200

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1}, other_mac[6] = {2, 0, 0, 0, 0, 2};
static struct addresses addresses;

/* A process, and what the owner has of it. */
static struct side {
	struct share_client client; /* first */
	struct link link;
	uint32_t qpn_first;
	int called_fd; /* the socket to the owner, until the port takes it; -1 */
	int called_doorbell_fd;
	int owner_fd; /* the owner's end of that socket */
	struct memif_server owner;
	uint32_t passed; /* packets that the owner has passed on to it */
} sides[SIDES];

static int call(void *arg, int *doorbell_fd)
{
	struct side *side = arg; /* it begins with the client */
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

static void owner_hear(struct side *side)
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

/* Handle all that has happened to the connections. */
static void run(void)
{
	for (int i = 0; i < ROUNDS * SIDES; i++) {
		struct side *side = &sides[i % SIDES];

		owner_hear(side);
		if (side->link.port.ops) {
			(void)port_lost(&side->link.port);
			port_conn_run(&side->link.port);
		}
	}
}

static void begin(struct side *side, uint32_t qpn_first)
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

static void end(struct side *side)
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

static int setup(TEST_STATE)
{
	struct address address = {.vlan = -1, .prefix_len = 24};

	addresses.count = 0;
	gid_from_ipv4("\x0a\x00\x00\x01", address.gid);
	assert_int_equal(addresses_add(&addresses, &address), 0);
	for (uint32_t i = 0; i < SIDES; i++)
		begin(&sides[i], (i + 3) << BLOCK_SHIFT);
	run();
	for (int i = 0; i < SIDES; i++)
		assert_true(port_connected(&sides[i].link.port));
	return 0;
}

static int teardown(TEST_STATE)
{
	for (int i = 0; i < SIDES; i++)
		end(&sides[i]);
	return 0;
}

TEST_FIXTURE(setup, teardown);

/* Offer a process a direct channel with a process that has these numbers. */
static void offer_to(struct side *side, uint16_t at, uint32_t qpn_first, int memory_fd,
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

static int make_memory(void)
{
	const int fd = memfd_create("direct", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, sizeof(struct direct_memory)), 0);
	return fd;
}

/* Offer both a direct channel, and return the owner's descriptor of it. */
static int offer(void)
{
	const int memory_fd = make_memory();
	int doorbell[2], kept;

	assert_int_equal(memif_doorbell_make(doorbell), 0);
	kept = dup(doorbell[0]);
	for (uint16_t i = 0; i < SIDES; i++)
		offer_to(&sides[i], i, sides[!i].qpn_first, dup(memory_fd), doorbell[i]);
	close(memory_fd);
	run();
	return kept;
}

static struct client_direct *first_peer(const struct side *side)
{
	for (int i = 0; i < SHARE_DIRECTS_MAX; i++) {
		if (side->client.directs[i])
			return side->client.directs[i];
	}
	return NULL;
}

static uint32_t peers(const struct side *side)
{
	uint32_t count = 0;

	for (int i = 0; i < SHARE_DIRECTS_MAX; i++)
		count += side->client.directs[i] != NULL;
	return count;
}

/* The fields of a frame. */
struct wish {
	uint8_t opcode;
	uint32_t src_qpn, dest_qpn;
	const uint8_t *src_mac;
	const char *from;
};

static size_t build(uint8_t *frame, const struct wish *wish, uint8_t number)
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

static struct wish wish_from(const struct side *side)
{
	return (struct wish){.opcode = OPCODE_UD | OPCODE_SEND_ONLY,
			     .src_qpn = side->qpn_first + 5,
			     .dest_qpn = sides[side == sides].qpn_first + 7,
			     .src_mac = mac,
			     .from = "\x0a\x00\x00\x01"};
}

/* Send a packet in an mbuf. Return false if it must wait. */
static bool try_wish(struct side *side, const struct wish *wish, uint8_t number)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(side->link.port.pool);

	assert_non_null(mbuf);
	mbuf->data_len = (uint16_t)build(rte_pktmbuf_mtod(mbuf, uint8_t *), wish, number);
	mbuf->pkt_len = mbuf->data_len;
	port_set_local_qpn(mbuf, wish->dest_qpn);
	if (port_tx_burst(&side->link.port, &mbuf, 1) == 1)
		return true;
	rte_pktmbuf_free(mbuf);
	return false;
}

static bool try_send(struct side *side, uint8_t number)
{
	const struct wish wish = wish_from(side);

	return try_wish(side, &wish, number);
}

/* Pass on what a process has sent through the owner. Returns how many packets there were. */
static uint32_t owner_pass(struct side *from)
{
	struct side *to = &sides[from == sides];
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

static bool is_marked(const struct rte_mbuf *mbuf, const struct side *by)
{
	uint8_t marked[6];

	wire_mark_sender(marked, by->qpn_first);
	return memcmp(rte_pktmbuf_mtod(mbuf, const uint8_t *) + sizeof(marked), marked,
		      sizeof(marked)) == 0;
}

/* Receive once. Returns how many packets there were, and their numbers. */
static uint16_t receive(struct side *side, uint8_t *numbers)
{
	struct rte_mbuf *mbufs[BURST];
	const uint16_t n = port_rx_burst(&side->link.port, mbufs, BURST);

	for (uint16_t i = 0; i < n; i++)
		numbers[i] = number_of(mbufs[i]);
	rte_pktmbuf_free_bulk(mbufs, n);
	return n;
}

static void expect_one(struct side *side, uint8_t number)
{
	uint8_t numbers[BURST];

	assert_int_equal(receive(side, numbers), 1);
	assert_int_equal(numbers[0], number);
}

/* A packet of a connection does not contain its sender's number, so the receiver marks it. */
TEST(client_direct__tells_the_sender_of_a_packet)
{
	const int kept = offer();
	struct rte_mbuf *mbuf;

	assert_true(try_send(&sides[0], 1));
	assert_int_equal(owner_pass(&sides[0]), 0);
	assert_int_equal(port_rx_burst(&sides[1].link.port, &mbuf, 1), 1);
	assert_true(is_marked(mbuf, &sides[0]));
	rte_pktmbuf_free(mbuf);
	close(kept);
}

TEST(client_direct__carries_packets_past_the_owner)
{
	const int kept = offer();

	for (uint8_t i = 0; i < SIDES; i++) {
		assert_int_equal(peers(&sides[i]), 1);
		assert_true(try_send(&sides[i], i));
		assert_int_equal(owner_pass(&sides[i]), 0);
		expect_one(&sides[!i], i);
	}
	close(kept);
}

TEST(client_direct__leaves_the_rest_to_the_owner)
{
	const int kept = offer();
	struct wish wish = wish_from(&sides[0]);

	/* Nobody's number, in another block; one beyond the peer's numbers; a MAD. */
	for (int i = 0; i < 3; i++) {
		const uint32_t qpns[] = {9 << BLOCK_SHIFT, sides[1].qpn_first + BLOCK_QPNS,
					 GSI_QPN};

		wish.dest_qpn = qpns[i];
		assert_true(try_wish(&sides[0], &wish, 1));
		assert_int_equal(owner_pass(&sides[0]), 1);
		assert_false(sides[0].link.port.ops->aim(sides[0].link.port.ops_arg, qpns[i]));
	}
	close(kept);
}

/* Long packets are built where the other process reads them. */
TEST(client_direct__offers_its_buffers)
{
	const struct port *port = &sides[0].link.port;
	struct wish wish = wish_from(&sides[0]);
	const int kept = offer();
	uint8_t *place;
	size_t len;

	for (int i = 0; i < 2; i++) {
		const uint32_t qpn = i == 0 ? wish.dest_qpn : 0;

		assert_true(port->ops->aim(port->ops_arg, qpn));
		assert_true(port->ops->has_room(port->ops_arg));
		port->ops->expect(port->ops_arg, 1, PACKET_HDR_MAX);
		place = port->ops->place(port->ops_arg, PACKET_FRAME_MAX);
		assert_non_null(place);
		len = build(place, &wish, (uint8_t)i);
		port->ops->placed(port->ops_arg, (uint32_t)len);
	}
	assert_int_equal(owner_pass(&sides[0]), 0);
	port->ops->push(port->ops_arg);
	expect_one(&sides[1], 0);
	assert_int_equal(owner_pass(&sides[0]), 1);
	expect_one(&sides[1], 1);
	close(kept);
}

/* A packet that was placed in a channel cannot be sealed. The next one goes to the owner. */
TEST(client_direct__forgets_what_was_not_sealed)
{
	const struct port *port = &sides[0].link.port;
	struct wish wish = wish_from(&sides[0]);
	uint8_t numbers[BURST], *place;
	const int kept = offer();

	assert_true(port->ops->aim(port->ops_arg, wish.dest_qpn));
	assert_non_null(port->ops->place(port->ops_arg, PACKET_FRAME_MAX));
	wish.dest_qpn = 0;
	assert_true(port->ops->aim(port->ops_arg, 0));
	place = port->ops->place(port->ops_arg, PACKET_FRAME_MAX);
	assert_non_null(place);
	port->ops->placed(port->ops_arg, (uint32_t)build(place, &wish, 1));
	port->ops->push(port->ops_arg);
	assert_int_equal(receive(&sides[1], numbers), 0);
	assert_int_equal(owner_pass(&sides[0]), 1);
	expect_one(&sides[1], 1);
	close(kept);
}

TEST(client_direct__waits_until_the_owner_has_taken_earlier_packets)
{
	struct port *port = &sides[0].link.port;
	uint8_t numbers[BURST];
	int kept;

	assert_true(try_send(&sides[0], 1));
	kept = offer();
	assert_true(try_send(&sides[0], 2));
	for (int i = 0; i < ROUNDS; i++) {
		port->ops->send_held(port->ops_arg);
		assert_int_equal(port->tx_held, 1);
		assert_true(port->ops->aim(port->ops_arg, sides[1].qpn_first));
		assert_null(port->ops->place(port->ops_arg, 1));
	}
	assert_int_equal(owner_pass(&sides[0]), 1);
	port->ops->send_held(port->ops_arg);
	assert_int_equal(port->tx_held, 0);
	assert_int_equal(owner_pass(&sides[0]), 0);
	for (uint8_t n = 0; n < 2;) {
		const uint16_t more = receive(&sides[1], numbers);

		for (uint16_t i = 0; i < more; i++)
			assert_int_equal(numbers[i], ++n);
	}
	close(kept);
}

TEST(client_direct__receives_earlier_packets_of_the_owner_first)
{
	uint8_t numbers[2 * BURST];
	uint16_t n = 0;
	int kept;

	for (uint8_t i = 0; i < BURST + 4; i++)
		assert_true(try_send(&sides[0], i));
	owner_pass(&sides[0]);
	kept = offer();
	for (uint8_t i = BURST + 4; i < BURST + 8; i++)
		assert_true(try_send(&sides[0], i));
	assert_int_equal(owner_pass(&sides[0]), 0);
	for (int i = 0; i < ROUNDS && n < BURST + 8; i++)
		n = (uint16_t)(n + receive(&sides[1], numbers + n));
	assert_int_equal(n, BURST + 8);
	for (uint8_t i = 0; i < n; i++)
		assert_int_equal(numbers[i], i);
	close(kept);
}

TEST(client_direct__drops_and_counts_what_the_other_may_not_send)
{
	const struct wish right = wish_from(&sides[0]);
	const int kept = offer();
	struct wish wrong[5];
	uint8_t numbers[BURST];

	for (int i = 0; i < 5; i++)
		wrong[i] = right;
	wrong[0].src_qpn = sides[1].qpn_first;
	wrong[1].src_mac = other_mac;
	wrong[2].from = "\x0a\x00\x00\x02";
	wrong[3].dest_qpn = wrong[3].src_qpn = GSI_QPN;
	wrong[4].dest_qpn = 0;
	for (int i = 0; i < 5; i++) {
		/* As if it had not chosen its way by the number in the packet. */
		const struct port *port = &sides[0].link.port;
		uint8_t *place;

		assert_true(port->ops->aim(port->ops_arg, right.dest_qpn));
		place = port->ops->place(port->ops_arg, PACKET_FRAME_MAX);
		port->ops->placed(port->ops_arg, (uint32_t)build(place, &wrong[i], 0));
		port->ops->push(port->ops_arg);
		assert_int_equal(receive(&sides[1], numbers), 0);
		assert_int_equal(sides[1].link.port.rx_refused, i + 1);
	}
	assert_true(try_send(&sides[0], 3));
	expect_one(&sides[1], 3);
	close(kept);
}

/* Fill the direct channel, and then what the port holds. */
static void fill(struct side *side)
{
	struct port *port = &side->link.port;
	uint32_t sent = 0;

	while (port->tx_held == 0) {
		assert_true(try_send(side, (uint8_t)sent));
		sent++;
	}
	assert_int_equal(sent, RING + 1);
	for (uint32_t i = 1; i < HELD_MAX; i++)
		assert_true(try_send(side, (uint8_t)(RING + i)));
	assert_int_equal(port->tx_held, HELD_MAX);
}

/* The other process has no CPU: nothing is lost, and packets to others need not wait. */
TEST(client_direct__holds_what_the_other_has_no_room_for)
{
	struct port *port = &sides[0].link.port;
	const uint32_t qpn = wish_from(&sides[0]).dest_qpn;
	const int kept = offer();
	struct wish wish = wish_from(&sides[0]);
	uint8_t numbers[BURST], frame[PACKET_FRAME_MAX];
	uint32_t received = 0;
	uint16_t n;

	assert_true(port->ops->aim(port->ops_arg, qpn));
	fill(&sides[0]);
	assert_true(port->ops->waits(port->ops_arg, qpn));
	assert_false(port->ops->waits(port->ops_arg, 1));
	/* Nothing may overtake what is held, not even where it was aimed at before. */
	assert_null(port->ops->place(port->ops_arg, 1));
	wish.dest_qpn = 0;
	assert_true(try_wish(&sides[0], &wish, 1));
	assert_true(memif_server_receive(&sides[0].owner, frame, sizeof(frame)) > 0);
	port->ops->send_held(port->ops_arg);
	assert_int_equal(port->tx_held, HELD_MAX);
	while (received < RING + HELD_MAX) {
		n = receive(&sides[1], numbers);
		for (uint16_t i = 0; i < n; i++)
			assert_int_equal(numbers[i], (uint8_t)received++);
		port->ops->send_held(port->ops_arg);
	}
	assert_int_equal(port->tx_held, 0);
	assert_false(port->ops->waits(port->ops_arg, qpn));
	assert_true(port->ops->aim(port->ops_arg, qpn));
	close(kept);
}

/* What is held when the other process ends is dropped. */
TEST(client_direct__drops_what_it_holds_at_the_end)
{
	struct port *port = &sides[0].link.port;
	const int kept = offer();

	fill(&sides[0]);
	shutdown(kept, SHUT_RDWR);
	run();
	assert_int_equal(peers(&sides[0]), 0);
	assert_int_equal(port->tx_held, 0);
	assert_int_equal(port->tx_refused.packets, HELD_MAX);
	close(kept);
}

/* Datagrams may be sent while many are held. */
TEST(client_direct__drops_what_the_other_does_not_take)
{
	struct port *port = &sides[0].link.port;
	const uint32_t qpn = wish_from(&sides[0]).dest_qpn;
	struct port_taken counts = {0};
	const int kept = offer();

	fill(&sides[0]);
	/* It has not taken them, and the port knows that. */
	assert_true(port->ops->taken(port->ops_arg, qpn, true, &counts));
	assert_int_equal(counts.given - counts.taken, RING);
	assert_int_equal(counts.dropped, 0);
	for (int i = 0; i < BURST; i++)
		assert_true(try_send(&sides[0], 3));
	assert_int_equal(port->tx_refused.packets, BURST);
	assert_true(port->ops->taken(port->ops_arg, qpn, true, &counts));
	assert_int_equal(counts.dropped, BURST);
	/* The owner's ring is another way. */
	counts.dropped = 0;
	assert_true(port->ops->taken(port->ops_arg, qpn, false, &counts));
	assert_int_equal(counts.given, counts.taken);
	assert_int_equal(counts.dropped, 0);
	assert_true(port->tx_refused.bytes > BURST);
	close(kept);
}

/* The other process has stopped: the timers of queue pairs must run, and nobody waits for it. */
TEST(client_direct__gives_up_who_takes_nothing_for_long)
{
	struct port *port = &sides[0].link.port;
	const uint32_t qpn = wish_from(&sides[0]).dest_qpn;
	const int kept = offer();
	struct client_direct *peer = first_peer(&sides[0]);
	uint8_t numbers[BURST];

	fill(&sides[0]);
	port->ops->send_held(port->ops_arg);
	assert_int_equal(port->tx_held, HELD_MAX);
	/* It was not tried meanwhile: this process was stopped, too. */
	peer->held.since_ns -= HELD_NS;
	peer->held.tried_ns -= HELD_NS;
	port->ops->send_held(port->ops_arg);
	assert_int_equal(port->tx_held, HELD_MAX);
	peer->held.since_ns -= HELD_NS;
	port->ops->send_held(port->ops_arg);
	assert_int_equal(port->tx_held, 0);
	assert_int_equal(port->tx_refused.packets, HELD_MAX);
	assert_int_equal(peer->dropped, HELD_MAX);
	assert_false(port->ops->waits(port->ops_arg, qpn));
	/* Nothing is held again before it has room. */
	assert_true(try_send(&sides[0], 1));
	assert_int_equal(port->tx_held, 0);
	assert_int_equal(port->tx_refused.packets, HELD_MAX + 1);
	while (receive(&sides[1], numbers) > 0)
		;
	fill(&sides[0]);
	assert_int_equal(port->tx_held, HELD_MAX);
	close(kept);
}

static bool is_woken(const struct side *side)
{
	struct pollfd wake = {.fd = port_wake_fd(&side->link.port), .events = POLLIN};

	return poll(&wake, 1, 0) == 1;
}

/* A direct channel that is made while the process sleeps wakes it, too. */
TEST(client_direct__wakes_who_is_armed)
{
	struct port *port = &sides[1].link.port;
	int kept;

	assert_false(port_arm(port));
	assert_false(is_woken(&sides[1]));
	kept = offer();
	/* The port looks once at the new ring. */
	assert_true(is_woken(&sides[1]));
	assert_false(port_arm(port));
	assert_false(is_woken(&sides[1]));
	assert_true(try_send(&sides[0], 1));
	assert_true(is_woken(&sides[1]));
	assert_true(port_arm(port));
	assert_false(is_woken(&sides[1]));
	expect_one(&sides[1], 1);
	port_disarm(port);
	assert_true(try_send(&sides[0], 2));
	assert_false(is_woken(&sides[1]));
	expect_one(&sides[1], 2);
	/* Nobody can keep it awake by ending the direct channel. */
	shutdown(kept, SHUT_RDWR);
	close(kept);
	run();
	assert_int_equal(peers(&sides[1]), 0);
	assert_false(port_arm(port));
	assert_false(is_woken(&sides[1]));
}

/* Nor by a word in its memory, and an index that is not its own. */
TEST(client_direct__is_not_kept_awake_by_an_index)
{
	struct port *port = &sides[1].link.port;
	const int kept = offer();
	struct direct_ring *ring = &first_peer(&sides[1])->memory->rings[0];

	(void)port_arm(port);
	ring->cons = 1;
	ring->slots[1].word = share_pack(&(struct share_packet){.flags = direct_round(1)});
	for (int i = 0; i < ROUNDS; i++) {
		uint8_t numbers[BURST];

		assert_int_equal(receive(&sides[1], numbers), 0);
		assert_false(port_arm(port));
	}
	port_disarm(port);
	close(kept);
}

/* Send to a process that sleeps, with doorbells that are full. */
static void send_to_sleeper(struct side *from, struct side *to, uint8_t number)
{
	const struct client_direct *direct = first_peer(from);

	/* That takes the rings. */
	(void)port_arm(&to->link.port);
	assert_false(port_arm(&to->link.port));
	while (send(direct->doorbell_fd, "", 1, MSG_DONTWAIT) == 1)
		;
	assert_int_equal(errno, EAGAIN);
	assert_true(try_send(from, number));
	/* It has tried to ring. */
	assert_int_equal(direct->memory->sides[!direct->offer.side].sleeps, 0);
	assert_int_equal(owner_pass(from), 0);
	expect_one(to, number);
}

/* The other process does not read its doorbell, and always asks to be woken. Both ends of the
 * doorbells are blocking, as it can make them. */
TEST(client_direct__never_waits_for_the_other)
{
	const int kept = offer();

	for (int i = 0; i < SIDES; i++) {
		const int fd = first_peer(&sides[i])->doorbell_fd;

		assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK), 0);
	}
	for (uint8_t i = 0; i < 2 * SIDES; i++)
		send_to_sleeper(&sides[i % SIDES], &sides[!(i % SIDES)], i);
	close(kept);
}

/* The owner shuts the doorbells down when it stops serving one of the two. */
TEST(client_direct__ends_with_the_socket)
{
	const int kept = offer();

	assert_true(try_send(&sides[0], 1));
	assert_int_equal(shutdown(kept, SHUT_RDWR), 0);
	close(kept);
	/* The engine receives what is left before it handles a connection's end. */
	expect_one(&sides[1], 1);
	run();
	for (int i = 0; i < SIDES; i++) {
		assert_int_equal(peers(&sides[i]), 0);
		assert_true(try_send(&sides[i], 2));
		assert_int_equal(owner_pass(&sides[i]), 1);
		expect_one(&sides[!i], 2);
	}
}

TEST(client_direct__last_packets_are_received_when_the_other_ends)
{
	const int kept = offer();

	assert_true(try_send(&sides[0], 1));
	port_close(&sides[0].link.port);
	port_destroy(&sides[0].link.port);
	expect_one(&sides[1], 1);
	run();
	assert_int_equal(peers(&sides[1]), 0);
	close(kept);
}

/* Offer a channel with a process that the test plays. Returns the other end of the doorbells. */
static int offer_one(struct side *side, uint16_t at)
{
	int doorbell[2];

	assert_int_equal(memif_doorbell_make(doorbell), 0);
	offer_to(side, at, 9 << BLOCK_SHIFT, make_memory(), doorbell[0]);
	run();
	return doorbell[1];
}

/* An index that cannot be: the other process has taken more than it was sent. */
TEST(client_direct__gives_up_what_breaks_a_rule)
{
	const int kept = offer();
	struct client_direct *direct = first_peer(&sides[0]);
	uint8_t numbers[BURST];

	assert_true(try_send(&sides[0], 1));
	expect_one(&sides[1], 1);
	direct->memory->rings[0].cons = 2 * RING;
	for (uint32_t i = 0; i < RING; i++)
		assert_true(try_send(&sides[0], 2));
	run();
	/* The other one ends the channel when it has taken the packets that are still there. */
	while (receive(&sides[1], numbers) > 0)
		;
	run();
	for (int i = 0; i < SIDES; i++)
		assert_int_equal(peers(&sides[i]), 0);
	assert_true(try_send(&sides[0], 3));
	assert_int_equal(owner_pass(&sides[0]), 1);
	close(kept);
}

/* The other process may change a packet, its length and its word at any time: each is read once. A
 * word that describes no packet is dropped, and counted. */
TEST(client_direct__drops_what_is_outside_of_its_place)
{
	const int kept = offer();
	struct client_direct *direct = first_peer(&sides[0]);
	uint8_t numbers[BURST];

	assert_true(try_send(&sides[0], 1));
	expect_one(&sides[1], 1);
	direct_placed(&direct->tx, DIRECT_BUFFER_BYTES + 1, 0);
	direct_placed(&direct->tx, DIRECT_SHORT_BYTES + 1, SHARE_FLAG_SHORT);
	direct_placed(&direct->tx, 0, 0);
	direct_show(&direct->tx);
	assert_int_equal(receive(&sides[1], numbers), 0);
	assert_int_equal(sides[1].link.port.rx_too_long, 2);
	assert_int_equal(sides[1].link.port.rx_refused, 1);
	assert_true(try_send(&sides[0], 2));
	expect_one(&sides[1], 2);
	close(kept);
}

/* A burst of long packets ends where they would not fit into the nearest cache. */
TEST(client_direct__cuts_a_burst_of_long_packets)
{
	const int kept = offer();
	struct client_direct *direct = first_peer(&sides[0]);
	const struct wish wish = wish_from(&sides[0]);
	uint8_t frame[PACKET_FRAME_MAX], numbers[BURST];
	const size_t len = build(frame, &wish, 1);

	assert_true(try_send(&sides[0], 1));
	expect_one(&sides[1], 1);
	assert_false(sides[1].link.port.rx_cut);
	for (int i = 0; i < 6; i++) {
		memcpy(direct_buffer(&direct->tx, 0), frame, len);
		direct_placed(&direct->tx, 4096, 0);
	}
	direct_show(&direct->tx);
	assert_int_equal(receive(&sides[1], numbers), 4);
	assert_true(sides[1].link.port.rx_cut);
	assert_int_equal(receive(&sides[1], numbers), 2);
	assert_false(sides[1].link.port.rx_cut);
	close(kept);
}

/* Until the other process is ready, and if it never is, packets go through the owner. */
TEST(client_direct__works_without_an_answer)
{
	const int fd = offer_one(&sides[0], 0);
	struct wish wish = wish_from(&sides[0]);

	wish.dest_qpn = (9 << BLOCK_SHIFT) + 1;
	assert_true(try_wish(&sides[0], &wish, 1));
	assert_int_equal(owner_pass(&sides[0]), 1);
	close(fd);
}

static bool is_shut(int fd)
{
	struct pollfd end = {.fd = fd, .events = POLLRDHUP};

	return poll(&end, 1, -1) == 1;
}

/* The memory's description is the other process's, too: it can take our mark from it. */
TEST(client_directs_offer__needs_no_mark_of_the_memory)
{
	const int others_fd = make_memory(), memory_fd = dup(others_fd);
	int doorbell[2];

	assert_int_equal(memif_doorbell_make(doorbell), 0);
	offer_to(&sides[0], 0, 9 << BLOCK_SHIFT, memory_fd, doorbell[0]);
	assert_int_equal(fcntl(others_fd, F_SETSIG, 0), 0);
	run();
	assert_int_equal(peers(&sides[0]), 1);
	assert_int_equal(fcntl(memory_fd, F_GETFD), -1);
	close(others_fd);
	close(doorbell[1]);
}

/* The other process sees that there is no channel, and nothing stays open. */
TEST(client_directs_offer__refuses_what_cannot_be_mapped)
{
	int doorbell[2], pipe_fds[2];

	assert_int_equal(memif_doorbell_make(doorbell), 0);
	assert_int_equal(pipe(pipe_fds), 0);
	offer_to(&sides[0], 0, 9 << BLOCK_SHIFT, pipe_fds[0], doorbell[0]);
	assert_int_equal(sides[0].client.offer_count, 0);
	assert_true(is_shut(doorbell[1]));
	assert_int_equal(fcntl(pipe_fds[0], F_GETFD), -1);
	close(pipe_fds[1]);
	close(doorbell[1]);
}

/* The program has closed our descriptors, and has got their numbers for its own. */
TEST(client_offers_drop_locked__leaves_descriptors_of_the_program)
{
	struct share_client *client = &sides[0].client;
	const int memory_fd = make_memory();
	int doorbell[2], ours[2];
	char byte;

	assert_int_equal(memif_doorbell_make(doorbell), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ours), 0);
	offer_to(&sides[0], 0, 9 << BLOCK_SHIFT, memory_fd, doorbell[0]);
	assert_int_equal(client->offer_count, 1);
	assert_int_equal(dup2(ours[0], memory_fd), memory_fd);
	assert_int_equal(dup2(ours[0], doorbell[0]), doorbell[0]);
	pthread_mutex_lock(&client->lock);
	client_offers_drop_locked(client);
	pthread_mutex_unlock(&client->lock);
	assert_int_equal(client->offer_count, 0);
	assert_int_equal(write(memory_fd, "m", 1), 1);
	assert_int_equal(write(doorbell[0], "d", 1), 1);
	assert_int_equal(read(ours[1], &byte, 1), 1);
	for (int i = 0; i < 2; i++)
		close(ours[i]), close(doorbell[i]);
	close(memory_fd);
}

TEST(client_directs_offer__has_a_limit)
{
	int fds[2 * SHARE_DIRECTS_MAX], last;

	for (int i = 0; i < 2 * SHARE_DIRECTS_MAX; i++)
		fds[i] = offer_one(&sides[0], 0);
	assert_int_equal(peers(&sides[0]), SHARE_DIRECTS_MAX);
	/* The last ones wait for a place. One more is refused. */
	last = offer_one(&sides[0], 0);
	assert_true(is_shut(last));
	close(last);
	assert_int_equal(sides[0].client.offer_count, SHARE_DIRECTS_MAX);
	shutdown(fds[0], SHUT_RDWR);
	run();
	assert_int_equal(sides[0].client.offer_count, SHARE_DIRECTS_MAX - 1);
	/* An offer that makes no sense. */
	last = offer_one(&sides[1], 2);
	assert_int_equal(sides[1].client.offer_count, 0);
	assert_true(is_shut(last));
	close(last);
	for (int i = 0; i < 2 * SHARE_DIRECTS_MAX; i++)
		close(fds[i]);
}
