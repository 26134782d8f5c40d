/* SPDX-License-Identifier: BSD-3-Clause */
/* An owner of a port that takes nothing, and two processes that share memory with it. */
#include "port_rig.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_mbuf.h>

#include "arbiter_mads.h"
#include "arena.h"
#include "eal/runtime.h"
#include "event.h"
#include "share/message.h"
#include "slot.h"
#include "test.h"
#include "wire/build.h"

#define MEMORY (32 << 20)

const uint8_t our_mac[6] = {2, 0, 0, 0, 0, 1}, peer_mac[6] = {2, 0, 0, 0, 0, 2};
struct server server;
struct share_ring rx[PORT_RIG_PROCESSES], tx[PORT_RIG_PROCESSES];
int sockets[PORT_RIG_PROCESSES];
uint32_t ids[PORT_RIG_PROCESSES];
struct share_message welcomes[PORT_RIG_PROCESSES];

static struct report_set reports;

int port_rig_start(uint32_t buffers)
{
	const struct runtime_config config = {.memory_bytes = MEMORY};
	struct address address = {.vlan = VLAN_NONE, .prefix_len = 24};
	struct port *port = &server.uplink.link.port;

	if (runtime_start(&config) != 0)
		return -1;
	server.slots.max = SERVE_SLOTS_DMA;
	server.arena.held_max = buffers;
	memcpy(port->mac, our_mac, sizeof(our_mac));
	port->mtu_bytes = 4200;
	port->mbuf_bytes = PACKET_FRAME_MAX;
	port->make_pool_arg = &server;
	memcpy(address.gid, host, GID_LEN);
	addresses_add(&server.uplink.link.addresses, &address);
	server.uplink.connected = true;
	return arena_make_pool(port);
}

int port_rig_group_setup(TEST_STATE)
{
	return port_rig_start(PORT_RIG_BUFFERS);
}

int port_rig_group_teardown(TEST_STATE)
{
	rte_mempool_free(server.uplink.link.port.pool);
	arena_destroy(&server);
	return 0;
}

void port_rig_find_ring(struct share_ring *ring, uint16_t n, enum share_ring_kind kind)
{
	share_ring_init(ring, (uint8_t *)server.slots.all[n].page + share_ring_offset(kind),
			share_ring_words(kind));
}

/* A process attaches that shares memory. */
static void attach(uint16_t n)
{
	struct share_message *message = &welcomes[n];
	int fds[SHARE_FDS], pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(event_watch(&server, pair[0], EVENT_HELLO, 0), 0);
	assert_int_equal(
		slot_begin(&server, pair[0], -1, 0, &(struct share_message){.engine.count = 1}), 0);
	assert_int_equal(message_receive(pair[1], message, fds), 0);
	assert_int_equal(message->welcome.slot, n);
	for (int i = 0; i < SHARE_FDS; i++)
		close(fds[i]);
	/* With its real pid, this process would be found to have a slot already. */
	server.slots.all[n].pid = 1 + n;
	sockets[n] = pair[1];
	ids[n] = message->welcome.id_value | 3;
	port_rig_find_ring(&rx[n], n, SHARE_RING_RX);
	port_rig_find_ring(&tx[n], n, SHARE_RING_TX);
}

int port_rig_setup(TEST_STATE)
{
	LIST_INIT(&server.groups);
	LIST_INIT(&server.directs.list);
	report_set_init(&reports);
	server.status.reports = &reports;
	server.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	blocks_init(&server.slots.blocks);
	assert_int_equal(arbiter_create(&server.gsi.arbiter), 0);
	memset(&server.totals, 0, sizeof(server.totals));
	memset(server.directs.handed, 0, sizeof(server.directs.handed));
	server.directs.spares_icrc = true;
	for (uint16_t n = 0; n < PORT_RIG_PROCESSES; n++)
		attach(n);
	return 0;
}

int port_rig_teardown(TEST_STATE)
{
	for (uint16_t n = 0; n < PORT_RIG_PROCESSES; n++) {
		slot_close(&server, n);
		slot_end(&server, n);
		close(sockets[n]);
	}
	arbiter_destroy(server.gsi.arbiter);
	rte_pktmbuf_free_bulk(server.uplink.pending, server.uplink.pending_count);
	server.uplink.pending_count = 0;
	close(server.epoll_fd);
	assert_int_equal(rte_mempool_in_use_count(server.uplink.link.port.pool), 0);
	return 0;
}
