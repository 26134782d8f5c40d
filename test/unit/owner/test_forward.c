/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/owner/forward.c and slot.c: what a process has sent when it goes, and what happens
 * to its slot. */
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

#include "base/own.h"
#include "arbiter_mads.h"
#include "attach_rig.h"
#include "control.h"
#include "event.h"
#include "forward.h"
#include "isolated.h"
#include "memif/doorbell.h"
#include "memif/client_end.h"
#include "memif/socket.h"
#include "port_rig.h"
#include "share/message.h"
#include "slot.h"
#include "test.h"
#include "server_poll.h"
#include "wire/build.h"
#include "wire/headers.h"
#include "wire/opcode.h"
#include "wire/qpn_block.h"

#define MANY	     (SERVER_BURST + 8) /* more than a poll takes */
#define PAYLOAD	     64
#define USER	     54321
#define DRAIN_NS_MAX UINT64_C(1000000000)
#define BUFFERS_MAX  16384 /* more buffers than there are */

#define CALL_NS UINT64_C(1000) /* from one reading of the clock to the next */

uint64_t __real_event_now_ns(void);
uint64_t __wrap_event_now_ns(void);

/* A clock that runs with the work, so that a test that loses its CPU sees no slot's time run out.
 */
uint64_t __wrap_event_now_ns(void)
{
	static uint64_t now_ns;

	if (!TEST_FILE_RUNS())
		return __real_event_now_ns();
	if (now_ns == 0)
		now_ns = __real_event_now_ns();
	return now_ns += CALL_NS;
}

TEST_GROUP(port_rig_group_setup, port_rig_group_teardown);
TEST_FIXTURE(port_rig_setup, port_rig_teardown);

/* Build a packet to a process, or to the peer, with the MAC address of this host. Returns its
 * length. */
static uint16_t build(uint8_t *frame, bool to_peer, uint16_t n)
{
	struct path_attr attr = {.vlan_tci = -1, .udp_sport = 0xc000, .hop_limit = 64};
	const struct bth_fields bth = {.opcode = OPCODE_RC | OPCODE_SEND_ONLY,
				       .pkey = WIRE_PKEY_DEFAULT,
				       .dest_qpn = server.slots.all[n].qpn_first};
	struct packet_out out = {.frame = frame};
	static const uint8_t payload[PAYLOAD];
	struct path path;

	memcpy(attr.dst_mac, to_peer ? peer_mac : our_mac, sizeof(our_mac));
	memcpy(attr.src_mac, our_mac, sizeof(our_mac));
	memcpy(attr.sgid, host, GID_LEN);
	memcpy(attr.dgid, to_peer ? peer : host, GID_LEN);
	assert_int_equal(path_init(&path, &attr), 0);
	packet_begin(&out, &path, &bth);
	packet_payload(&out, FRAG_OWN, payload, sizeof(payload));
	return (uint16_t)packet_seal(&out);
}

/* Let a frame have come from the network. */
static void come_from_peer(uint8_t *frame)
{
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(frame + sizeof(struct rte_ether_hdr));

	memcpy(&ip->src_addr, peer + GID_IPV4_OFFSET, sizeof(ip->src_addr));
}

/* A process puts packets with flags into the ring to the owner. */
static void send_flagged(uint16_t from, bool to_peer, uint16_t to, int count, uint8_t flags)
{
	while (count-- > 0) {
		struct rte_mbuf *mbuf = rte_pktmbuf_alloc(server.uplink.link.port.pool);
		struct share_packet packet;
		uint64_t word;

		assert_non_null(mbuf);
		packet = (struct share_packet){
			.buffer = arena_buffer(&server, mbuf),
			.flags = flags,
			.offset = mbuf->data_off,
			.len = build(rte_pktmbuf_mtod(mbuf, uint8_t *), to_peer, to)};
		if (flags & SHARE_FLAG_STRAY)
			come_from_peer(rte_pktmbuf_mtod(mbuf, uint8_t *));
		assert_true(ownership_give(&server.arena.ownership, packet.buffer, from));
		word = share_pack(&packet);
		assert_int_equal(share_ring_put(&tx[from], &word, 1), 1);
	}
}

static void send_by(uint16_t from, bool to_peer, uint16_t to, int count)
{
	send_flagged(from, to_peer, to, count, 0);
}

/* Take all that a process was given. The owner takes the buffers back at the process's end. */
static int receive_by(uint16_t n)
{
	uint64_t word;
	int count = 0;

	while (share_ring_take(&rx[n], &word, 1) == 1)
		count++;
	return count;
}

static void poll_until_free(uint16_t n)
{
	const uint64_t begun_ns = event_now_ns();

	while (server.slots.all[n].state != SLOT_FREE) {
		assert_true(event_now_ns() - begun_ns < DRAIN_NS_MAX);
		server_poll_run(&server);
	}
}

/* slot_hang_up takes no packets itself. The next polls take them, as from other slots. */
TEST(slot_hang_up__has_polls_take_what_was_sent)
{
	send_by(0, false, 1, MANY);
	slot_hang_up(&server, 0);
	assert_int_equal(server.slots.all[0].state, SLOT_DRAINING);
	assert_int_equal(receive_by(1), 0);
	assert_true(server_poll_waits(&server));
	server_poll_run(&server);
	assert_int_equal(server.slots.all[0].state, SLOT_DRAINING);
	assert_int_equal(receive_by(1), SERVER_BURST);
	server_poll_run(&server);
	assert_int_equal(receive_by(1), MANY - SERVER_BURST);
	assert_int_equal(server.slots.all[0].state, SLOT_CLOSING);
	assert_false(server_poll_waits(&server));
	slot_end(&server, 0);
	assert_int_equal(server.slots.all[0].state, SLOT_FREE);
	assert_int_equal(server.totals.ended, 1);
}

TEST(slot_end__has_polls_take_what_was_sent)
{
	send_by(0, false, 1, MANY);
	slot_end(&server, 0);
	assert_int_equal(server.slots.all[0].state, SLOT_DRAINING);
	poll_until_free(0);
	assert_int_equal(receive_by(1), MANY);
}

/* Packets on their way to the slot are dropped. */
TEST(slot_hang_up__gives_it_nothing)
{
	send_by(0, true, 0, MANY);
	slot_hang_up(&server, 0);
	assert_int_equal(server.slots.all[0].state, SLOT_DRAINING);
	send_by(1, false, 0, 1);
	server_poll_run(&server);
	assert_int_equal(receive_by(0), 0);
	assert_int_equal(server.slots.all[0].rx_dropped, 1);
}

/* The port takes nothing, so neither does the owner: it does not wait without end. */
TEST(slot_end__waits_for_the_port_for_a_while)
{
	server.uplink.pending_count = 0;
	server.uplink.link.port.started = false;
	send_by(0, true, 0, MANY);
	slot_end(&server, 0);
	poll_until_free(0);
	assert_int_equal(server.uplink.pending_count, SERVER_BURST);
}

/* A rule that it breaks then ends it at once. */
TEST(slot_advance__of_one_that_breaks_a_rule)
{
	const struct share_packet packet = {.buffer = 0, .len = 64};
	const uint64_t word = share_pack(&packet);

	send_by(0, false, 1, 1);
	assert_int_equal(share_ring_put(&tx[0], &word, 1), 1);
	send_by(0, false, 1, 1);
	slot_hang_up(&server, 0);
	server_poll_run(&server);
	assert_int_equal(receive_by(1), 1);
	assert_int_equal(server.slots.all[0].state, SLOT_CLOSING);
	assert_int_equal(server.totals.refused, 1);
}

/* Exchange the messages of a memif connection, of which the process has these descriptors. */
static void connect_memif(uint16_t slot, const int *fds, struct memif_client *client)
{
	static const struct memif_client_config config = {
		.log2_size = 6, .buffer_bytes = 512, .socket_to_client = true};
	const int socket_fd = fds[SHARE_MEMIF_FD_SOCKET];
	struct memif_message message, answer;
	int fd;

	memif_client_init(client, &config);
	own_mark(fds[SHARE_MEMIF_FD_DOORBELL]);
	memif_end_take_doorbell(&client->end, fds[SHARE_MEMIF_FD_DOORBELL]);
	while (recv(socket_fd, &message, sizeof(message), MSG_DONTWAIT) == sizeof(message)) {
		const int rc = memif_client_take(client, &message, &answer, &fd);

		assert_true(rc >= 0);
		if (rc == 1)
			assert_int_equal(
				memif_socket_send_with(socket_fd, &answer, sizeof(answer), fd), 0);
		control_event(&server, EVENT_MEMIF, slot);
	}
	assert_int_equal(client->end.state, MEMIF_STATE_CONNECTED);
}

static void send_over(struct memif_client *client, int count)
{
	uint8_t frame[512];

	while (count-- > 0) {
		const size_t len = build(frame, false, 1);

		assert_int_equal(memif_end_send(&client->end, frame, len), 0);
	}
	memif_end_push(&client->end);
}

/* Fill the ring to the owner with packets to the peer. */
static void flood_peer(struct memif_client *client)
{
	uint8_t frame[512];
	const size_t len = build(frame, true, 1);

	while (memif_end_send(&client->end, frame, len) == 0)
		;
	memif_end_push(&client->end);
}

/* Attach an isolated process of a user. Returns its end of the socket and of the memif socket. */
static uint16_t attach_isolated_of(uid_t uid, int *own, int *socket_fd, struct memif_client *client)
{
	struct share_message welcome, plug = {.type = SHARE_MEMIF, .version = SHARE_VERSION};
	int fds[SHARE_FDS];

	for (uint16_t i = 0; i < server.slots.live_count; i++)
		server.slots.all[server.slots.live[i]].pid = 1;
	*own = attach_rig(&server, uid, &welcome);
	assert_int_equal(message_send(*own, &plug, NULL, 0), 0);
	control_event(&server, EVENT_SOCKET, welcome.welcome.slot);
	assert_int_equal(message_receive(*own, &plug, fds), 0);
	assert_int_equal(plug.result, 0);
	*socket_fd = fds[SHARE_MEMIF_FD_SOCKET];
	connect_memif(welcome.welcome.slot, fds, client);
	return welcome.welcome.slot;
}

static uint16_t attach_isolated(int *own, int *socket_fd, struct memif_client *client)
{
	return attach_isolated_of(USER, own, socket_fd, client);
}

/* Close the process's end of the memif socket. The owner's copy of it is closed by another thread,
 * perhaps later. */
static void close_memif(uint16_t slot, int socket_fd)
{
	struct pollfd hears = {.fd = isolated_socket(&server.slots.all[slot]), .events = POLLIN};

	close(socket_fd);
	assert_int_equal(poll(&hears, 1, 10000), 1);
}

/* Packets of other slots wait for the next poll. */
TEST(slot_hang_up__of_an_isolated_one_takes_from_no_other)
{
	struct memif_client client;
	int own, socket_fd;
	const uint16_t slot = attach_isolated(&own, &socket_fd, &client);

	send_over(&client, MANY);
	send_by(0, false, 1, 1);
	close(own);
	control_event(&server, EVENT_SOCKET, slot);
	assert_int_equal(server.slots.all[slot].state, SLOT_DRAINING);
	assert_int_equal(share_ring_count(&server.slots.all[0].rings[SHARE_RING_TX]), 1);
	poll_until_free(slot);
	assert_int_equal(receive_by(1), MANY + 1);
	assert_int_equal(server.totals.refused, 0);
	assert_int_equal(server.slots.isolated_count, 0);
	memif_client_fini(&client);
	close(socket_fd);
}

/* Packets that it left are checked before its connection is dropped. */
TEST(isolated_hear__looks_for_broken_rules_in_what_came_over_a_connection_that_ends)
{
	struct memif_client client;
	int own, socket_fd;
	const uint16_t slot = attach_isolated(&own, &socket_fd, &client);

	client.end.tx.memory->descriptors[0].length = UINT32_MAX;
	client.end.tx.memory->head = 1;
	close_memif(slot, socket_fd);
	control_event(&server, EVENT_MEMIF, slot);
	server_poll_run(&server);
	assert_int_equal(server.totals.refused, 1);
	assert_int_equal(server.slots.all[slot].state, SLOT_FREE);
	memif_client_fini(&client);
	close(own);
}

/* The process stays, and may bring another memif connection. */
TEST(isolated_hear__takes_what_came_over_a_connection_that_ends)
{
	struct memif_client client;
	int own, socket_fd;
	const uint16_t slot = attach_isolated(&own, &socket_fd, &client);

	send_over(&client, MANY);
	close_memif(slot, socket_fd);
	control_event(&server, EVENT_MEMIF, slot);
	assert_int_equal(isolated_socket(&server.slots.all[slot]), -1);
	assert_int_equal(receive_by(1), 0);
	server_poll_run(&server);
	server_poll_run(&server);
	assert_int_equal(receive_by(1), MANY);
	assert_int_equal(server.slots.all[slot].state, SLOT_LIVE);
	assert_false(isolated_waits(&server.slots.all[slot]));
	slot_end(&server, slot);
	assert_int_equal(server.slots.all[slot].state, SLOT_FREE);
	memif_client_fini(&client);
	close(own);
}

/* Tell the user's tenant, whose packets need turns. */
static struct tenant *tenant_of(uint16_t slot)
{
	assert_true(server.tenants.are_many);
	return &server.tenants.all[server.slots.all[slot].tenant];
}

/* Assert that a tenant with this credit has paid for packets. */
static void assert_paid(const struct tenant *tenant, int64_t credit, int packets)
{
	assert_int_equal(tenant->credit, credit - (int64_t)packets * TENANTS_PACKET_BYTES * 1024);
}

/* A process pays for the packets of its old connection when it asks for a new one. */
TEST(isolated_plug__charges_what_came_over_the_last_connection)
{
	struct share_message plug = {.type = SHARE_MEMIF, .version = SHARE_VERSION};
	struct memif_client client;
	int own, socket_fd, fds[SHARE_FDS];
	const uint16_t slot = attach_isolated(&own, &socket_fd, &client);
	const struct tenant *tenant = tenant_of(slot);
	int64_t credit;

	send_over(&client, MANY);
	close_memif(slot, socket_fd);
	control_event(&server, EVENT_MEMIF, slot);
	credit = tenant->credit;
	assert_int_equal(message_send(own, &plug, NULL, 0), 0);
	control_event(&server, EVENT_SOCKET, slot);
	assert_int_equal(message_receive(own, &plug, fds), 0);
	assert_int_equal(receive_by(1), MANY);
	assert_paid(tenant, credit, MANY);
	close(fds[SHARE_MEMIF_FD_SOCKET]);
	close(fds[SHARE_MEMIF_FD_DOORBELL]);
	slot_end(&server, slot);
	memif_client_fini(&client);
	close(own);
}

/* So it does when it attaches anew before its old slot is drained. */
TEST(slot_begin__charges_what_an_earlier_slot_has_left)
{
	struct share_message welcome;
	struct memif_client client;
	int own, socket_fd;
	const uint16_t slot = attach_isolated(&own, &socket_fd, &client);
	const struct tenant *tenant = tenant_of(slot);
	int64_t credit;
	int again;

	send_over(&client, MANY);
	slot_hang_up(&server, slot);
	assert_int_equal(server.slots.all[slot].state, SLOT_DRAINING);
	credit = tenant->credit;
	again = attach_rig(&server, USER, &welcome);
	assert_int_equal(receive_by(1), MANY);
	assert_paid(tenant, credit, MANY);
	slot_close(&server, welcome.welcome.slot);
	memif_client_fini(&client);
	close(again);
	close(own);
	close(socket_fd);
}

static bool is_rung(const struct memif_client *client)
{
	struct pollfd wake = {.fd = client->end.wake_fd, .events = POLLIN};

	return poll(&wake, 1, 0) == 1;
}

/* At the end of the poll, and only if it sleeps. */
TEST(isolated_wake__rings_a_process_that_gets_a_packet)
{
	struct memif_client client;
	int own, socket_fd;
	const uint16_t slot = attach_isolated(&own, &socket_fd, &client);

	assert_true(memif_doorbell_clear(client.end.wake_fd));
	for (int on = 0; on < 2; on++) {
		memif_end_listen(&client.end, on);
		server_poll_run(&server);
		assert_false(is_rung(&client));
		send_by(0, false, slot, 2);
		server_poll_run(&server);
		assert_true(memif_end_waits(&client.end));
		assert_int_equal(is_rung(&client), on);
		assert_false(server.slots.all[slot].touched);
	}
	/* One that has gone is no error. */
	close(client.end.wake_fd);
	client.end.wake_fd = -1;
	send_by(0, false, slot, 1);
	server_poll_run(&server);
	assert_int_equal(server.totals.refused, 0);
	slot_end(&server, slot);
	memif_client_fini(&client);
	close(own);
	close(socket_fd);
}

/* Return true if the next packet that a process was given is marked as one of a program with these
 * numbers. */
static bool is_marked(uint16_t n, uint32_t qpn_first)
{
	uint8_t marked[RTE_ETHER_ADDR_LEN];
	struct share_packet packet;
	const uint8_t *frame;
	uint64_t word = 0;

	assert_int_equal(share_ring_take(&rx[n], &word, 1), 1);
	packet = share_unpack(word);
	frame = (const uint8_t *)server.arena.memory + packet.buffer * server.arena.stride +
		packet.offset;
	wire_mark_sender(marked, qpn_first);
	return memcmp(frame + RTE_ETHER_ADDR_LEN, marked, sizeof(marked)) == 0;
}

/* A packet of a connection does not contain its sender's number. */
TEST(forward_take__tells_the_sender_of_an_isolated_processs_packet)
{
	struct memif_client client;
	int own, socket_fd;
	const uint16_t slot = attach_isolated(&own, &socket_fd, &client);

	send_over(&client, 1);
	server_poll_run(&server);
	assert_true(is_marked(1, server.slots.all[slot].qpn_first));
	send_by(0, false, 1, 1);
	server_poll_run(&server);
	assert_false(is_marked(1, server.slots.all[0].qpn_first));
	slot_end(&server, slot);
	memif_client_fini(&client);
	close(own);
	close(socket_fd);
}

/* Poll until the owner has taken all packets of a slot. */
static void poll_until_taken(uint16_t slot)
{
	const uint64_t begun_ns = event_now_ns();

	while (server_poll_slot_waits(&server.slots.all[slot])) {
		assert_true(event_now_ns() - begun_ns < DRAIN_NS_MAX);
		server_poll_run(&server);
	}
}

/* The sender uses up no retry for packets that were dropped because the other process had no CPU.
 */
TEST(forward_take__tells_a_process_how_many_packets_others_did_not_take)
{
	struct memif_client client;
	int own, socket_fd;
	const uint16_t slot = attach_isolated(&own, &socket_fd, &client);
	uint32_t given, taken, dropped = 1;

	send_by(0, false, 1, PORT_RIG_BUFFERS / 2);
	send_over(&client, PORT_RIG_BUFFERS / 2);
	poll_until_taken(0);
	poll_until_taken(slot);
	assert_int_equal(server.slots.all[0].page->dropped, 0);
	assert_true(memif_end_tell_taken(&client.end, &given, &taken, &dropped));
	assert_int_equal(dropped, 0);
	/* The process has as many packets as it may have. */
	send_by(0, false, 1, 5);
	poll_until_taken(0);
	assert_int_equal(server.slots.all[0].page->dropped, 5);
	send_over(&client, 7);
	poll_until_taken(slot);
	assert_true(memif_end_tell_taken(&client.end, &given, &taken, &dropped));
	assert_int_equal(given, taken);
	assert_int_equal(dropped, 7);
	assert_int_equal(server.slots.all[1].rx_dropped, 12);
	assert_int_equal(server.slots.all[0].page->dropped, 5);
	assert_int_equal(receive_by(1), PORT_RIG_BUFFERS);
	slot_end(&server, slot);
	memif_client_fini(&client);
	close(own);
	close(socket_fd);
}

/* The same for packets to a process that has not come back to this owner yet. */
TEST(forward_take__tells_of_packets_to_a_process_that_is_awaited)
{
	struct resume_awaited awaited = {.entry.qpn_first = 77 << BLOCK_SHIFT};
	const uint32_t qpn_first = server.slots.all[1].qpn_first;

	server.slots.all[1].qpn_first = 77 << BLOCK_SHIFT; /* where packets to it go */
	send_by(0, false, 1, 3);
	poll_until_taken(0);
	assert_int_equal(server.totals.unknown_qpn, 3);
	assert_int_equal(server.slots.all[0].page->dropped, 0);
	server.resume.awaited = &awaited;
	server.resume.awaited_count = 1;
	send_by(0, false, 1, 4);
	poll_until_taken(0);
	assert_int_equal(server.slots.all[0].page->dropped, 4);
	server.slots.all[1].qpn_first = qpn_first;
	server.resume.awaited_count = 0;
	server.resume.awaited = NULL;
}

static void let_time_pass(uint64_t ns)
{
	for (uint64_t i = 0; i < ns / CALL_NS; i++)
		(void)event_now_ns();
}

static void look_once(void)
{
	let_time_pass(UNREAD_LOOK_NS);
	server_poll_run(&server);
}

/* Look twice: who took nothing meanwhile is late. */
static void look_twice(void)
{
	look_once();
	look_once();
}

/* Return true if a process has been told that the process in a slot has not read its packets. */
static bool hears_unread(const struct memif_client *client, uint16_t receiver)
{
	const uint64_t unread =
		client ? memif_end_unread(&client->end) : server.slots.all[0].page->unread;

	return (unread & wire_block_bit(server.slots.all[receiver].qpn_first)) != 0;
}

/* A process that is stopped has room, and reads nothing. Those whose packets lie there use up no
 * retry; the others are told nothing. */
TEST(unread_look__tells_who_has_sent_to_a_process_that_reads_nothing)
{
	struct memif_client client;
	int own, socket_fd;
	const uint16_t slot = attach_isolated(&own, &socket_fd, &client);
	uint64_t word;

	look_twice();
	assert_true(server.unread_looks.wake_ns == UINT64_MAX);
	send_by(0, false, 1, 1);
	poll_until_taken(0);
	look_twice();
	assert_true(hears_unread(NULL, 1));
	assert_false(hears_unread(&client, 1));
	send_over(&client, 1);
	poll_until_taken(slot);
	look_twice();
	assert_true(hears_unread(&client, 1));
	assert_int_equal(server.slots.all[1].page->unread, 0);
	/* It takes one of its packets: it runs. */
	assert_int_equal(share_ring_take(&rx[1], &word, 1), 1);
	look_once();
	assert_false(hears_unread(NULL, 1));
	assert_false(hears_unread(&client, 1));
	assert_in_range(server.unread_looks.wake_ns, server.now_ns, server.now_ns + UNREAD_LOOK_NS);
	/* It stops again, and has taken the first one's packet. */
	look_once();
	assert_false(hears_unread(NULL, 1));
	assert_true(hears_unread(&client, 1));
	assert_in_range(server.unread_looks.wake_ns, server.now_ns + UNREAD_LOOK_NS,
			UINT64_MAX - 1);
	/* It takes the rest. */
	assert_int_equal(receive_by(1), 1);
	look_once();
	assert_false(hears_unread(&client, 1));
	assert_true(server.unread_looks.wake_ns == UINT64_MAX);
	/* Nothing is left of those who have sent. */
	send_by(0, false, 1, 1);
	poll_until_taken(0);
	look_twice();
	assert_true(hears_unread(NULL, 1));
	assert_false(hears_unread(&client, 1));
	slot_end(&server, slot);
	memif_client_fini(&client);
	close(own);
	close(socket_fd);
}

TEST(unread_look__an_isolated_process_that_reads_nothing)
{
	struct memif_client client;
	int own, socket_fd;
	const uint16_t slot = attach_isolated(&own, &socket_fd, &client);

	send_by(0, false, slot, 2);
	poll_until_taken(0);
	look_twice();
	assert_true(hears_unread(NULL, slot));
	/* It has ended: nobody waits for it, and the next one in its slot knows nothing of this. */
	slot_close(&server, slot);
	look_once();
	assert_false(hears_unread(NULL, slot));
	assert_true(server.unread_looks.wake_ns == UINT64_MAX);
	memif_client_fini(&client);
	close(own);
	close(socket_fd);
}

/* What it has sent to one that runs may be lost, and is sent again in time. */
TEST(unread_look__tells_of_the_late_one_only)
{
	struct memif_client client;
	int own, socket_fd;
	const uint16_t slot = attach_isolated(&own, &socket_fd, &client);

	send_by(0, false, 1, 1);
	send_by(0, false, slot, 1);
	poll_until_taken(0);
	look_once();
	assert_int_equal(receive_by(1), 1);
	look_once();
	assert_true(hears_unread(NULL, slot));
	assert_false(hears_unread(NULL, 1));
	slot_end(&server, slot);
	memif_client_fini(&client);
	close(own);
	close(socket_fd);
}

/* The owner would sleep, and see nothing, because no packet follows. */
TEST(unread_look__is_due_soon_after_the_last_packet)
{
	look_once();
	assert_true(server.unread_looks.wake_ns == UINT64_MAX);
	send_by(0, false, 1, 1);
	poll_until_taken(0);
	assert_true(server.unread_looks.wake_ns == server.unread_looks.due_ns);
	look_once();
	assert_true(server.unread_looks.wake_ns == server.unread_looks.due_ns);
	assert_int_equal(receive_by(1), 1);
}

/* A process never empties its ring, and then stops. It has taken the first sender's packets. */
TEST(unread_look__forgets_senders_whose_packets_were_taken)
{
	struct memif_client client;
	int own, socket_fd;
	const uint16_t slot = attach_isolated(&own, &socket_fd, &client);
	uint64_t words[2];

	send_by(0, false, 1, 2);
	poll_until_taken(0);
	look_once();
	for (int i = 0; i < 3; i++) {
		send_over(&client, 2);
		poll_until_taken(slot);
		assert_int_equal(share_ring_take(&rx[1], words, 2), 2);
		look_once();
	}
	look_twice();
	assert_true(hears_unread(&client, 1));
	assert_false(hears_unread(NULL, 1));
	assert_int_equal(receive_by(1), 2);
	slot_end(&server, slot);
	memif_client_fini(&client);
	close(own);
	close(socket_fd);
}

/* The next process in a slot has not sent the packets of the last one. */
TEST(unread_look__a_sender_that_has_ended)
{
	send_by(0, false, 1, 1);
	poll_until_taken(0);
	unread_forget(&server, 0);
	look_twice();
	assert_false(hears_unread(NULL, 1));
}

/* A frame from the port, to a queue pair. */
static struct rte_mbuf *frame_to(uint32_t qpn)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(server.uplink.link.port.pool);
	uint8_t *frame;

	assert_non_null(mbuf);
	frame = rte_pktmbuf_mtod(mbuf, uint8_t *);
	mbuf->data_len = build(frame, false, 0);
	mbuf->pkt_len = mbuf->data_len;
	come_from_peer(frame);
	wire_put24(frame + sizeof(struct rte_ether_hdr) + sizeof(struct rte_ipv4_hdr) +
			   sizeof(struct rte_udp_hdr) + offsetof(struct bth, dest_qpn),
		   qpn);
	return mbuf;
}

#define ABSENT_QPN (77u << BLOCK_SHIFT) /* of a process that is not back */

/* Two processes of the last owner are back, and a third one is not. */
static void gather(void)
{
	static struct resume_awaited awaited = {.entry.qpn_first = ABSENT_QPN};

	server.resume.gathers = true;
	server.resume.awaited = &awaited;
	server.resume.awaited_count = 1;
}

static void end_gathering(void)
{
	server.resume.gathers = false;
	server.resume.awaited_count = 0;
	server.slots.all[0].returns = false;
}

/* Let frames have come from the port. */
static void arrive(const uint32_t *qpns, uint16_t count)
{
	for (uint16_t i = 0; i < count; i++)
		server.uplink.held[i] = frame_to(qpns[i]);
	server.uplink.held_count = count;
}

TEST(server_poll_run__moves_packets_of_those_who_are_back)
{
	gather();
	send_by(0, false, 1, 3);
	assert_int_equal(server_poll_run(&server), 3);
	assert_int_equal(receive_by(1), 3);
	arrive((uint32_t[]){server.slots.all[1].qpn_first}, 1);
	assert_int_equal(server_poll_run(&server), 1);
	assert_int_equal(receive_by(1), 1);
	end_gathering();
}

/* Also what is behind a packet for a process that is not back, for a group, or for the connection
 * manager. */
TEST(server_poll_run__lets_packets_wait_while_the_owner_gathers)
{
	const uint32_t here = server.slots.all[1].qpn_first;
	const uint32_t waits[] = {ABSENT_QPN, WIRE_QPN_MULTICAST, GSI_QPN,
				  server.slots.all[0].qpn_first};

	for (size_t i = 0; i < RTE_DIM(waits); i++) {
		gather();
		server.slots.all[0].returns = i == 3;
		arrive((uint32_t[]){here, waits[i], here}, 3);
		assert_int_equal(server_poll_run(&server), 1);
		assert_int_equal(server_poll_run(&server), 0);
		assert_int_equal(receive_by(1), 1);
		assert_false(server_poll_waits(&server));
		end_gathering();
		assert_true(server_poll_waits(&server));
		assert_int_equal(server_poll_run(&server), 2);
		assert_int_equal(server.uplink.held_count, 0);
		assert_int_equal(receive_by(1), 1);
		receive_by(0);
	}
}

/* What a process sends to one that is not back waits in its ring, and the owner sleeps meanwhile.
 */
TEST(server_poll_run__lets_a_process_wait_for_another_one)
{
	const uint32_t qpn_first = server.slots.all[1].qpn_first;

	gather();
	server.slots.all[1].qpn_first = ABSENT_QPN; /* where the packet goes */
	send_by(0, false, 1, 1);
	server.slots.all[1].qpn_first = qpn_first;
	send_by(0, false, 1, 1);
	assert_int_equal(server_poll_run(&server), 0);
	assert_false(server_poll_waits(&server));
	assert_int_equal(receive_by(1), 0);
	end_gathering();
	poll_until_taken(0);
	assert_int_equal(server.totals.unknown_qpn, 1);
	assert_int_equal(receive_by(1), 1);
}

TEST(forward_input__counts_what_is_for_nobody)
{
	forward_input(&server, frame_to(2));
	assert_int_equal(server.totals.unknown_qpn, 1);
	forward_input(&server, frame_to(WIRE_QPN_MULTICAST));
	assert_int_equal(server.totals.unknown_group, 1);
}

/* To a process, to a group, and to the connection manager. */
TEST(forward_input__drops_what_another_host_sends_with_our_address)
{
	const uint32_t qpns[] = {server.slots.all[0].qpn_first, WIRE_QPN_MULTICAST, GSI_QPN};
	const uint64_t mads = server.totals.mads_dropped;
	uint64_t word;

	for (size_t i = 0; i < RTE_DIM(qpns); i++) {
		struct rte_mbuf *mbuf = frame_to(qpns[i]);

		/* as build() has left it: from our address */
		build(rte_pktmbuf_mtod(mbuf, uint8_t *), false, 0);
		wire_put24(rte_pktmbuf_mtod_offset(mbuf, uint8_t *,
						   sizeof(struct rte_ether_hdr) +
							   sizeof(struct rte_ipv4_hdr) +
							   sizeof(struct rte_udp_hdr) +
							   offsetof(struct bth, dest_qpn)),
			   qpns[i]);
		forward_input(&server, mbuf);
		assert_int_equal(server.totals.own_source, i + 1);
	}
	assert_int_equal(share_ring_take(&rx[0], &word, 1), 0);
	assert_int_equal(server.totals.unknown_group, 0);
	assert_int_equal(server.totals.mads_dropped, mads);
}

/* Its sender pays for the copies. */
/* Send a packet to a group of the sender and two others. Return what it costs beside itself. */
static int64_t cost_of_copies(void)
{
	struct server_group groups[] = {{.slot = 0}, {.slot = 1}, {.slot = 1}};
	struct rte_mbuf *mbuf = frame_to(WIRE_QPN_MULTICAST);
	struct tenants_take take = {.credit = 1};

	for (size_t i = 0; i < RTE_DIM(groups); i++) {
		memcpy(groups[i].gid, host, GID_LEN);
		LIST_INSERT_HEAD(&server.groups, &groups[i], link);
	}
	rte_pktmbuf_mtod(mbuf, uint8_t *)[0] |= RTE_ETHER_GROUP_ADDR;
	assert_true(forward_send_on(&server, 0, mbuf, &take));
	assert_int_equal(take.bytes, 0);
	assert_int_equal(receive_by(0), 0);
	assert_int_equal(receive_by(1), 2);
	LIST_INIT(&server.groups);
	return take.cost;
}

TEST(forward_send_on__counts_copies_to_a_group)
{
	assert_int_equal(cost_of_copies(), 2 * TENANTS_PACKET_BYTES);
	/* Other tenants' programs do not make the sender's packets dear. */
	server.slots.all[1].tenant = server.slots.all[0].tenant + 1;
	assert_int_equal(cost_of_copies(), TENANTS_PACKET_BYTES);
	server.slots.all[1].tenant = server.slots.all[0].tenant;
}

/* The first process asks for something of a group. Returns the owner's answer. */
static int ask_of_group(enum share_message_type type)
{
	struct share_message message = {
		.type = type, .version = SHARE_VERSION, .number = 1, .gid = {0xff, 0x0e, [15] = 1}};

	assert_int_equal(message_send(sockets[0], &message, NULL, 0), 0);
	control_event(&server, EVENT_SOCKET, 0);
	assert_int_equal(message_receive(sockets[0], &message, NULL), 0);
	return message.result;
}

/* Programs may hold all buffers. Otherwise each join after such a leave would be one more of the
 * port's. */
TEST(control_event__leaves_a_group_without_a_buffer)
{
	static struct rte_mbuf *taken[BUFFERS_MAX];
	struct rte_mempool *pool = server.uplink.link.port.pool;
	const unsigned int free_count = rte_mempool_avail_count(pool);

	assert_in_range(free_count, 1, BUFFERS_MAX);
	assert_int_equal(ask_of_group(SHARE_JOIN), 0);
	assert_int_equal(server.uplink.link.groups.memberships, 1);
	assert_int_equal(rte_pktmbuf_alloc_bulk(pool, taken, free_count), 0);
	assert_int_equal(ask_of_group(SHARE_LEAVE), 0);
	rte_pktmbuf_free_bulk(taken, free_count);
	assert_int_equal(server.uplink.link.groups.memberships, 0);
	assert_int_equal(server.totals.no_buffer, 1);
	assert_int_equal(server.uplink.pending_count, 0);
	/* With a buffer, it says so. */
	assert_int_equal(ask_of_group(SHARE_JOIN), 0);
	assert_int_equal(ask_of_group(SHARE_LEAVE), 0);
	assert_int_equal(server.uplink.pending_count, 1);
}

/* Nobody reads the answers, of which a few hundred fill the socket. */
TEST(control_event__does_not_answer_who_only_tells_that_it_leaves)
{
	struct share_message message = {
		.type = SHARE_LEAVE, .version = SHARE_VERSION, .gid = {0xff, 0x0e, [15] = 1}};

	for (int i = 0; i < 1000; i++) {
		assert_int_equal(message_send(sockets[0], &message, NULL, 0), 0);
		control_event(&server, EVENT_SOCKET, 0);
	}
	assert_int_equal(server.slots.all[0].state, SLOT_LIVE);
	assert_int_equal(message_receive(sockets[0], &message, NULL), -EAGAIN);
}

/* The tag has no room in front of a frame that begins with its buffer. */
TEST(forward_input__counts_what_it_cannot_take_in)
{
	struct rte_mbuf *mbuf = frame_to(2);

	mbuf->ol_flags |= RTE_MBUF_F_RX_VLAN_STRIPPED;
	mbuf->data_off = 0;
	forward_input(&server, mbuf);
	assert_int_equal(server.totals.rx_dropped, 1);
	assert_int_equal(server.totals.unknown_qpn, 0);
}

/* An answer of the owner's own. */
TEST(forward_input__counts_answers_without_a_buffer)
{
	struct rte_mbuf *others[BUFFERS_MAX],
		*mbuf = rte_pktmbuf_alloc(server.uplink.link.port.pool);
	uint32_t count = 0;

	memset(rte_pktmbuf_append(mbuf, 64), 0, 64);
	while (count < BUFFERS_MAX && (others[count] = rte_pktmbuf_alloc(mbuf->pool)) != NULL)
		count++;
	assert_in_range(count, 1, BUFFERS_MAX - 1);
	forward_input(&server, mbuf);
	assert_int_equal(server.totals.no_buffer, 1);
	rte_pktmbuf_free_bulk(others, count);
}

TEST(forward_send_own__counts_what_the_port_has_no_room_for)
{
	for (int i = 0; i < SERVER_BURST + 1; i++)
		forward_send_own(&server, rte_pktmbuf_alloc(server.uplink.link.port.pool), 64);
	assert_int_equal(server.uplink.pending_count, SERVER_BURST);
	assert_int_equal(server.totals.own_dropped, 1);
}

static uint16_t take_some(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	uint16_t *room = arg;

	n = RTE_MIN(n, *room);
	*room -= n;
	rte_pktmbuf_free_bulk(mbufs, n);
	return n;
}

static uint16_t receive_nothing(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	(void)arg;
	(void)mbufs;
	(void)n;
	return 0;
}

/* The port takes two packets in a poll. A user with two processes gets as many as one with one. */
TEST(server_poll_run__divides_a_slow_port_by_user)
{
	static const uid_t uids[] = {USER, USER, USER + 1};
	static const struct port_ops ops = {.rx_burst = receive_nothing, .tx_burst = take_some};
	struct memif_client clients[RTE_DIM(uids)];
	uint16_t slots[RTE_DIM(uids)];
	int own[RTE_DIM(uids)], fds[RTE_DIM(uids)];
	uint64_t sent[RTE_DIM(uids)];
	uint16_t room;

	for (size_t i = 0; i < RTE_DIM(uids); i++)
		slots[i] = attach_isolated_of(uids[i], &own[i], &fds[i], &clients[i]);
	server.uplink.link.port.ops = &ops;
	server.uplink.link.port.ops_arg = &room;
	server.uplink.link.port.started = true;
	for (int i = 0; i < 2000; i++) {
		room = 2;
		for (size_t n = 0; n < RTE_DIM(uids); n++)
			flood_peer(&clients[n]);
		server_poll_run(&server);
	}
	server.uplink.link.port.started = false;
	server.uplink.link.port.ops = NULL;
	server.uplink.link.port.ops_arg = NULL;
	for (size_t i = 0; i < RTE_DIM(uids); i++)
		sent[i] = server.slots.all[slots[i]].tx_packets;
	assert_true(sent[2] > 1000);
	assert_in_range(sent[0] + sent[1], sent[2] - 200, sent[2] + 200);
	assert_in_range(sent[0], sent[1] - 100, sent[1] + 100);
	for (size_t i = 0; i < RTE_DIM(uids); i++) {
		slot_close(&server, slots[i]);
		memif_client_fini(&clients[i]);
		close(own[i]);
		close(fds[i]);
	}
}

static uint16_t receive_one(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	unsigned int *calls = arg;

	(void)n;
	(*calls)++;
	mbufs[0] = frame_to(server.slots.all[1].qpn_first);
	return 1;
}

/* Two rounds take packets, and the third finds none. */
TEST(server_poll_run__receives_from_the_port_before_each_round)
{
	static const struct port_ops ops = {.rx_burst = receive_one};
	struct memif_client client;
	unsigned int calls = 0;
	int own, socket_fd;
	const uint16_t slot = attach_isolated(&own, &socket_fd, &client);

	assert_true(server.tenants.are_many);
	server.uplink.link.port.ops = &ops;
	server.uplink.link.port.ops_arg = &calls;
	server.uplink.link.port.started = true;
	server_poll_run(&server);
	assert_int_equal(calls, 1);
	send_over(&client, MANY);
	server_poll_run(&server);
	server.uplink.link.port.started = false;
	server.uplink.link.port.ops = NULL;
	server.uplink.link.port.ops_arg = NULL;
	assert_int_equal(calls, 1 + 3);
	assert_int_equal(server.totals.rx_packets, calls);
	assert_int_equal(receive_by(1), MANY + calls);
	slot_end(&server, slot);
	memif_client_fini(&client);
	close(own);
	close(socket_fd);
}

/* A tenant earns its rate as time passes. Meanwhile the owner need not poll for its packets. */
TEST(server_poll_run__keeps_a_users_rate)
{
	struct memif_client client;
	int own, socket_fd;
	const uint16_t slot = attach_isolated(&own, &socket_fd, &client);
	struct tenant *tenant = &server.tenants.all[server.slots.all[slot].tenant];
	uint64_t sent;

	tenant->limits.rate = TENANTS_RATE_MIN;
	send_over(&client, 60);
	for (int i = 0; i < 100 && server_poll_waits(&server); i++)
		server_poll_run(&server);
	sent = server.slots.all[slot].tx_packets;
	assert_in_range(sent, 20, 40);
	assert_true(server_poll_slot_waits(&server.slots.all[slot]));
	assert_false(server_poll_waits(&server));
	assert_true(server.tenants.due_ns > server.now_ns);
	tenant->paid_ns = server.now_ns;
	assert_true(server_poll_waits(&server));
	server_poll_run(&server);
	assert_true(server.slots.all[slot].tx_packets > sent);
	slot_close(&server, slot);
	memif_client_fini(&client);
	close(own);
	close(socket_fd);
}

static uint16_t drop_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	(void)arg;
	server.uplink.link.port.tx_unconnected.packets += n - 1u;
	rte_pktmbuf_free_bulk(mbufs, n);
	return n;
}

TEST(forward_flush__counts_what_the_port_drops)
{
	static const struct port_ops ops = {.tx_burst = drop_burst};
	struct port *port = &server.uplink.link.port;

	for (int i = 0; i < 3; i++)
		forward_send_own(&server, rte_pktmbuf_alloc(port->pool), 64);
	port->ops = &ops;
	port->started = true;
	forward_flush(&server);
	port->started = false;
	port->ops = NULL;
	assert_int_equal(server.totals.tx_packets, 1);
	assert_int_equal(server.totals.tx_dropped, 2);
	/* A port with a bad network in front drops while it is polled, too. */
	port->tx_unconnected.packets++;
	forward_flush(&server);
	assert_int_equal(server.totals.tx_packets, 0);
	assert_int_equal(server.totals.tx_dropped, 3);
}

/* It has come from the network: its ICRC must be verified. It is no packet that this process sent.
 */
TEST(forward_take__takes_a_stray_as_a_packet_from_the_port)
{
	uint64_t word = 0;

	send_flagged(0, false, 1, 1, SHARE_FLAG_STRAY);
	server_poll_run(&server);
	assert_int_equal(share_ring_take(&rx[1], &word, 1), 1);
	assert_int_equal(share_unpack(word).flags, 0);
	assert_int_equal(server.totals.handed_over, 0);
	assert_int_equal(server.uplink.pending_count, 0);
	/* A packet that was handed over says so. */
	send_by(0, false, 1, 1);
	server_poll_run(&server);
	assert_int_equal(share_ring_take(&rx[1], &word, 1), 1);
	assert_int_equal(share_unpack(word).flags, SHARE_FLAG_LOCAL);
	assert_int_equal(server.totals.handed_over, 1);
}

TEST(forward_take__drops_a_stray_for_nobody)
{
	send_flagged(0, false, 1, 1, SHARE_FLAG_STRAY);
	slot_close(&server, 1);
	server_poll_run(&server);
	assert_int_equal(server.slots.all[1].rx_dropped, 1);
}
