/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/attach/client_psock.c: a process attaches to an owner, which the test plays, and
 * gets a packet socket on one end of a cable. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_mbuf.h>

#include "attach/attach.h"
#include "client.h"
#include "open_fds.h"
#include "frames.h"
#include "net/link.h"
#include "netdev/divide.h"
#include "netns.h"
#include "offload.h"
#include "psock/psock.h"
#include "share/blocks.h"
#include "share/layout.h"
#include "share/message.h"
#include "share/steer.h"
#include "test.h"
#include "wire/qpn_block.h"

#define BUFFERS	     128
#define BUFFER_BYTES 4608
#define CACHE	     64
#define ATTACHES_MAX 32
#define BLOCK	     (5u << BLOCK_SHIFT)
#define OTHERS	     (6u << BLOCK_SHIFT)
#define BURST	     16
#define DEADLINE     10000 /* ms */

static char dir[] = "/tmp/uroce-psock-XXXXXX";
static char path[64];
static bool have_network;
static int listen_fd, owner_fd; /* owner_fd: the owner's end of the process's socket */
static int doorbell_fd = -1;	/* wakes the owner */
static int wake_fd = -1;	/* wakes the process */
static int sender = -1;		/* on the other end of the cable */
static struct share_page *page;
static struct share_ring tx, rx, cache; /* the owner's ends */
static struct link *link_of;
/* What a process has stays until its end, so each test's link is kept. */
static struct link *links[ATTACHES_MAX];
static unsigned int attaches;
static uint32_t declined;    /* messages that say so */
static uint32_t engines = 1; /* of the device, each of which may have a slot */
static int further_fd;	     /* the owner's end of the socket of the further engine */

static void find_ring(struct share_ring *ring, enum share_ring_kind kind)
{
	share_ring_init(ring, (uint8_t *)page + share_ring_offset(kind), share_ring_words(kind));
}

static int make_page(void)
{
	const int fd = memfd_create("test", MFD_CLOEXEC);
	const size_t bytes = share_ring_offset(SHARE_RINGS);
	uint64_t words[CACHE];

	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(page != MAP_FAILED);
	find_ring(&tx, SHARE_RING_TX);
	find_ring(&rx, SHARE_RING_RX);
	find_ring(&cache, SHARE_RING_FREE);
	for (uint32_t i = 0; i < CACHE; i++)
		words[i] = share_pack(&(struct share_packet){.buffer = i});
	assert_int_equal(share_ring_put(&cache, words, CACHE), CACHE);
	page->link_up = 1;
	return fd;
}

static int make_arena(void)
{
	const int fd = memfd_create("test", MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, (off_t)BUFFERS * BUFFER_BYTES), 0);
	return fd;
}

/* Let one engine of a process in. */
static int let_in(const int *fds)
{
	const int fd = accept(listen_fd, NULL, NULL);
	struct share_message message;

	while (message_receive(fd, &message, NULL) == -EAGAIN)
		;
	message = (struct share_message){
		.type = SHARE_WELCOME,
		.version = SHARE_VERSION,
		.welcome = {.buffers = BUFFERS,
			    .buffer_bytes = BUFFER_BYTES,
			    .buffer_stride = BUFFER_BYTES,
			    .quota = BUFFERS,
			    .mac = {2, 0, 0, 0, 0, 1},
			    .qpn_first = BLOCK,
			    .qpn_count = BLOCK_QPNS,
			    .engines = engines,
			    .mtu_bytes = 9000,
			    .ports = 1},
	};
	message_send(fd, &message, fds, SHARE_FDS - (fds[SHARE_FD_PSOCK] < 0));
	return fd;
}

/* The process attaches at once, or declines. Answer that. */
static void hear(void)
{
	struct pollfd pfd = {.fd = owner_fd, .events = POLLIN};
	struct share_message message;

	if (poll(&pfd, 1, declined == UINT32_MAX ? DEADLINE : 0) == 1 &&
	    message_receive(owner_fd, &message, NULL) == 0 && message.type == SHARE_DECLINE) {
		declined = 1;
		message.type = SHARE_REPLY;
		message.result = 0;
		message_send(owner_fd, &message, NULL, 0);
	}
}

static void *run_owner(void *arg)
{
	owner_fd = let_in(arg);
	hear();
	return NULL;
}

static void *run_owner_further(void *arg)
{
	further_fd = let_in(arg);
	hear();
	return NULL;
}

static int lend_share(uint32_t share)
{
	const struct divide_part part = {
		.first = BLOCK, .shift = BLOCK_SHIFT, .share = share, .count = engines};
	const int fd = psock_socket();

	assert_true(fd >= 0);
	assert_int_equal(divide_only(fd, &part), 0);
	assert_int_equal(psock_bind(fd, if_nametoindex("left")), 0);
	return fd;
}

static int lend(void)
{
	return lend_share(0);
}

static void make_fds(int fds[SHARE_FDS], int psock_fd)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};

	if (wake_fd >= 0)
		close(wake_fd);
	fds[SHARE_FD_ARENA] = make_arena();
	fds[SHARE_FD_PAGE] = make_page();
	fds[SHARE_FD_OWNER] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	fds[SHARE_FD_PROCESS] = epoll_create1(EPOLL_CLOEXEC);
	wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_int_equal(epoll_ctl(fds[SHARE_FD_PROCESS], EPOLL_CTL_ADD, wake_fd, &event), 0);
	fds[SHARE_FD_PSOCK] = psock_fd;
}

static void close_fds(const int fds[SHARE_FDS])
{
	for (int i = 0; i < SHARE_FDS; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
}

/* Open the queue of the second engine of an attached process, with this descriptor as a packet
 * socket; -1: the owner lends none. */
static void open_queue(struct port *queue, int psock_fd)
{
	const struct port *first = &link_of->port;
	int fds[SHARE_FDS];
	pthread_t owner;

	make_fds(fds, psock_fd);
	assert_int_equal(pthread_create(&owner, NULL, run_owner_further, fds), 0);
	queue->started = true;
	assert_int_equal(first->ops->open_queue(first->ops_arg, 1, engines, queue), 0);
	pthread_join(owner, NULL);
	close_fds(fds);
}

/* Attach with this descriptor as a packet socket. */
static void attach(int psock_fd)
{
	int fds[SHARE_FDS];
	const int report_fd = make_arena();
	struct share_facts facts = {.ports = 0};
	pthread_t owner;

	make_fds(fds, psock_fd);
	assert_true(attaches < ATTACHES_MAX);
	link_of = links[attaches++] = calloc(1, sizeof(*link_of));
	link_of->port.engines = engines;
	assert_int_equal(pthread_create(&owner, NULL, run_owner, fds), 0);
	assert_int_equal(share_attach(link_of, path, 0, report_fd, &facts), 0);
	pthread_join(owner, NULL);
	close(report_fd);
	if (doorbell_fd >= 0)
		close(doorbell_fd);
	doorbell_fd = dup(fds[SHARE_FD_OWNER]);
	close_fds(fds);
}

static int packet_socket(const char *ifname)
{
	const struct sockaddr_ll addr = {.sll_family = AF_PACKET,
					 .sll_protocol = htons(ETH_P_ALL),
					 .sll_ifindex = (int)if_nametoindex(ifname)};
	const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	return fd >= 0 && bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0 ? fd : -1;
}

static int group_set_up(TEST_STATE)
{
	have_network = netns_enter();
	return 0;
}

TEST_GROUP(group_set_up, NULL);

static int set_up(TEST_STATE)
{
	struct sockaddr_un address;

	if (!have_network)
		return 0;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/owner", dir);
	assert_int_equal(share_socket_path(path, 0, &address), 0);
	listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listen_fd, (struct sockaddr *)&address, sizeof(address)), 0);
	declined = 0;
	sender = packet_socket("right");
	return sender < 0 || listen(listen_fd, 1) != 0;
}

static int tear_down(TEST_STATE)
{
	if (!have_network)
		return 0;
	close(sender);
	close(owner_fd);
	close(listen_fd);
	unlink(path);
	rmdir(dir);
	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

static void put_frame(const struct frame *like)
{
	uint8_t frame[FRAME_MAX];
	const uint32_t len = frame_make(like, frame);

	assert_int_equal(send(sender, frame, len, 0), len);
}

/* Wait as the helper thread does. */
static void sleep_for_frames(void)
{
	struct pollfd pfd = {.fd = port_wake_fd(&link_of->port), .events = POLLIN};

	if (!port_arm(&link_of->port))
		assert_int_equal(poll(&pfd, 1, DEADLINE), 1);
}

static uint16_t receive(struct rte_mbuf **mbufs, uint16_t n)
{
	uint16_t received = 0;

	while (received == 0) {
		sleep_for_frames();
		received = port_rx_burst(&link_of->port, mbufs, n);
	}
	return received;
}

TEST(client_psock_take__receives_what_is_for_this_process)
{
	struct rte_mbuf *mbufs[BURST];
	struct steering steering;

	if (!have_network)
		skip();
	attach(lend());
	put_frame(&(struct frame){.qpn = OTHERS + 1, .len = 64});
	put_frame(&(struct frame){.qpn = 1, .len = 64});
	put_frame(&(struct frame){.qpn = BLOCK + 2, .len = 64});
	assert_int_equal(receive(mbufs, BURST), 1);
	assert_int_equal(
		steer_frame(rte_pktmbuf_mtod(mbufs[0], uint8_t *), mbufs[0]->data_len, &steering),
		STEER_QP);
	assert_int_equal(steering.qpn, BLOCK + 2);
	/* The ICRC is verified, as in any packet from the network. */
	assert_true(mbufs[0]->port != PORT_HANDED_OVER);
	rte_pktmbuf_free_bulk(mbufs, 1);
	assert_int_equal(port_rx_burst(&link_of->port, mbufs, BURST), 0);
}

/* No earlier event is left: the eventfd is read, and so is the error of an interface that went
 * down. */
TEST(client_psock_waits__sleeps_until_the_owner_or_the_network_sends)
{
	struct rte_mbuf *mbufs[BURST];
	const uint64_t one = 1,
		       word = share_pack(&(struct share_packet){.buffer = CACHE, .len = 64});
	struct pollfd pfd = {.events = POLLIN};
	if (!have_network)
		skip();
	attach(lend());
	pfd.fd = port_wake_fd(&link_of->port);
	assert_false(port_arm(&link_of->port));
	assert_int_equal(poll(&pfd, 1, 0), 0);
	assert_int_equal(share_ring_put(&rx, &word, 1), 1);
	assert_true(port_arm(&link_of->port));
	assert_int_equal(write(wake_fd, &one, sizeof(one)), sizeof(one));
	assert_int_equal(poll(&pfd, 1, DEADLINE), 1);
	assert_int_equal(port_rx_burst(&link_of->port, mbufs, BURST), 1);
	rte_pktmbuf_free_bulk(mbufs, 1);
	assert_false(port_arm(&link_of->port));
	assert_int_equal(poll(&pfd, 1, 0), 0);
	assert_true(netns_run("ip link set left down && ip link set left up"));
	assert_false(port_arm(&link_of->port));
	assert_int_equal(poll(&pfd, 1, 0), 0);
}

/* A child of fork may keep the file: closing the descriptor would leave it in the set. */
TEST(client_empty_psock__takes_the_owners_descriptor_out_of_the_set)
{
	const uint64_t one = 1;
	struct share_client *client;
	struct pollfd pfd = {.events = POLLIN};

	if (!have_network)
		skip();
	attach(lend());
	client = link_of->port.ops_arg;
	pfd.fd = client->wake_fd;
	assert_int_equal(write(wake_fd, &one, sizeof(one)), sizeof(one));
	assert_int_equal(poll(&pfd, 1, DEADLINE), 1);
	client_empty_psock(client);
	assert_int_equal(poll(&pfd, 1, 0), 0);
	assert_int_equal(client_renew_psock(client, true), 0);
	assert_int_equal(poll(&pfd, 1, DEADLINE), 1);
}

/* The program has closed our socket, and one of its own has the number. */
TEST(client_psock_waits__leaves_the_error_of_the_programs_socket)
{
	const struct share_client *client;
	struct pollfd theirs = {.events = POLLIN};

	if (!have_network)
		skip();
	attach(lend());
	client = link_of->port.ops_arg;
	theirs.fd = packet_socket("left");
	assert_true(netns_run("ip link set left down && ip link set left up"));
	assert_int_equal(dup2(theirs.fd, psock_fd(client->psock)), psock_fd(client->psock));
	port_arm(&link_of->port);
	assert_int_equal(poll(&theirs, 1, 0), 1);
	assert_true(theirs.revents & POLLERR);
	close(theirs.fd);
}

/* A packet of our own in a buffer of the pool. */
static struct rte_mbuf *mbuf_to(const uint8_t mac[6], const struct frame *like)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(link_of->port.pool);
	uint8_t frame[FRAME_MAX];
	const uint32_t len = frame_make(like, frame);

	assert_non_null(mbuf);
	memcpy(frame, mac, 6);
	port_set_local_qpn(mbuf, 0);
	memcpy(rte_pktmbuf_append(mbuf, (uint16_t)len), frame, len);
	return mbuf;
}

/* Receive at the other end of the cable. Returns the queue pair. */
static uint32_t receive_at_peer(void)
{
	struct pollfd pfd = {.fd = sender, .events = POLLIN};
	struct steering steering;
	uint8_t frame[FRAME_MAX];
	ssize_t len;

	/* The kernel sends frames of its own. */
	do {
		assert_int_equal(poll(&pfd, 1, DEADLINE), 1);
		len = recv(sender, frame, sizeof(frame), 0);
		assert_true(len > 0);
	} while (steer_frame(frame, (size_t)len, &steering) != STEER_QP);
	return steering.qpn;
}

/* Returns the flags of the next packet that the owner gets, and its queue pair. */
static uint8_t receive_at_owner(uint32_t *qpn)
{
	const struct share_client *client = link_of->port.ops_arg;
	struct share_packet packet;
	struct steering steering;
	uint64_t word = 0;

	assert_int_equal(share_ring_take(&tx, &word, 1), 1);
	packet = share_unpack(word);
	steer_frame(client->arena + (size_t)packet.buffer * BUFFER_BYTES + packet.offset,
		    packet.len, &steering);
	*qpn = steering.qpn;
	return packet.flags;
}

TEST(client_psock_sends__leaves_to_the_owner_what_it_must_see)
{
	static const uint8_t us[6] = {2, 0, 0, 0, 0, 1}, peer[6] = {2, 0, 0, 0, 0, 2},
			     group[6] = {1, 0, 0x5e, 0, 0, 1};
	struct rte_mbuf *mbufs[BURST];
	uint32_t qpn;

	if (!have_network)
		skip();
	attach(lend());
	mbufs[0] = mbuf_to(peer, &(struct frame){.qpn = 11, .len = 64});
	mbufs[1] = mbuf_to(us, &(struct frame){.qpn = OTHERS, .len = 64});
	mbufs[2] = mbuf_to(peer, &(struct frame){.qpn = 12, .len = 264});
	mbufs[3] = mbuf_to(peer, &(struct frame){.qpn = 1, .len = 264});
	mbufs[4] = mbuf_to(group, &(struct frame){.qpn = 13, .len = 64});
	mbufs[5] = mbuf_to(peer, &(struct frame){.qpn = 14, .len = 64});
	assert_int_equal(port_tx_burst(&link_of->port, mbufs, 6), 6);
	assert_int_equal(receive_at_peer(), 11);
	assert_int_equal(receive_at_peer(), 12);
	assert_int_equal(receive_at_peer(), 14);
	assert_int_equal(receive_at_owner(&qpn), 0);
	assert_int_equal(qpn, OTHERS);
	receive_at_owner(&qpn);
	assert_int_equal(qpn, 1);
	receive_at_owner(&qpn);
	assert_int_equal(qpn, 13);
	assert_int_equal(share_ring_count(&tx), 0);
}

/* The owner counts packets that pass through it. Nothing is known of those that leave by the packet
 * socket. */
TEST(client_taken__tells_what_the_owner_has_dropped)
{
	static const uint8_t us[6] = {2, 0, 0, 0, 0, 1};
	struct rte_mbuf *mbuf;
	struct port_taken counts = {0};
	const struct port *port;
	uint32_t qpn;

	if (!have_network)
		skip();
	attach(lend());
	port = &link_of->port;
	mbuf = mbuf_to(us, &(struct frame){.qpn = OTHERS, .len = 64});
	assert_int_equal(port_tx_burst(port, &mbuf, 1), 1);
	assert_true(port->ops->taken(port->ops_arg, OTHERS, true, &counts));
	assert_int_equal(counts.given - counts.taken, 1);
	assert_int_equal(counts.dropped, 0);
	receive_at_owner(&qpn);
	assert_false(counts.unread);
	page->dropped = 1;
	page->unread = ~wire_block_bit(OTHERS);
	memset(&counts, 0, sizeof(counts));
	assert_true(port->ops->taken(port->ops_arg, OTHERS, true, &counts));
	assert_int_equal(counts.given, counts.taken);
	assert_int_equal(counts.dropped, 1);
	assert_false(counts.unread);
	page->unread = wire_block_bit(OTHERS);
	memset(&counts, 0, sizeof(counts));
	assert_true(port->ops->taken(port->ops_arg, OTHERS, true, &counts));
	assert_true(counts.unread);
	assert_false(port->ops->taken(port->ops_arg, OTHERS, false, &counts));
}

/* The kernel joins packets, and the socket's filter sees the first one. */
TEST(client_psock_take__passes_strays_on)
{
	const struct frame first = {.qpn = BLOCK + 1, .len = 1024};
	const struct frame second = {.qpn = OTHERS + 1, .len = 1024, .id = 1};
	struct rte_mbuf *mbufs[BURST];
	uint8_t run[FRAME_RUN_MAX];
	const int on = 1;
	uint64_t count;
	uint32_t qpn, len;

	if (!have_network)
		skip();
	attach(lend());
	page->owner_sleeps = 1;
	len = frame_make_run(&first, &second, run);
	assert_int_equal(setsockopt(sender, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)), 0);
	if (send(sender, run, len, 0) < 0)
		skip(); /* this kernel takes no runs */
	assert_int_equal(receive(mbufs, BURST), 1);
	rte_pktmbuf_free_bulk(mbufs, 1);
	assert_int_equal(receive_at_owner(&qpn), SHARE_FLAG_STRAY);
	assert_int_equal(qpn, OTHERS + 1);
	/* The owner was woken, too. */
	assert_int_equal(read(doorbell_fd, &count, sizeof(count)), sizeof(count));
}

/* If no socket can be set up, the process tells the owner before it has a queue pair, and uses the
 * rings. */
TEST(client_open_psock__declines_what_it_cannot_use)
{
	const unsigned int before = fds_count();
	static const uint8_t peer[6] = {2, 0, 0, 0, 0, 2};
	struct rte_mbuf *mbuf;
	uint32_t qpn;

	if (!have_network)
		skip();
	declined = UINT32_MAX;
	attach(socket(AF_UNIX, SOCK_DGRAM, 0));
	assert_int_equal(declined, 1);
	mbuf = mbuf_to(peer, &(struct frame){.qpn = 11, .len = 64});
	assert_int_equal(port_tx_burst(&link_of->port, &mbuf, 1), 1);
	receive_at_owner(&qpn);
	assert_int_equal(qpn, 11);
	assert_false(port_arm(&link_of->port));
	/* The two eventfds and the two ends of the process's socket are left. */
	assert_int_equal(fds_count(), before + 4);
}

/* Each engine receives the packets to its queue pairs. */
TEST(client_use_psock__a_socket_for_each_engine)
{
	static struct port queue; /* it keeps what a process has until its end */
	struct rte_mbuf *mbufs[BURST];
	struct steering steering;
	struct pollfd pfd = {.events = POLLIN};

	if (!have_network)
		skip();
	engines = 2;
	attach(lend_share(0));
	open_queue(&queue, lend_share(1));
	engines = 1;
	put_frame(&(struct frame){.qpn = BLOCK + 2, .len = 64});
	put_frame(&(struct frame){.qpn = BLOCK + 3, .len = 64});
	put_frame(&(struct frame){.qpn = OTHERS + 3, .len = 64});
	assert_int_equal(receive(mbufs, BURST), 1);
	rte_pktmbuf_free_bulk(mbufs, 1);
	pfd.fd = port_wake_fd(&queue);
	assert_true(port_arm(&queue) || poll(&pfd, 1, DEADLINE) == 1);
	assert_int_equal(port_rx_burst(&queue, mbufs, BURST), 1);
	assert_ptr_equal(mbufs[0]->pool, queue.pool);
	assert_int_equal(
		steer_frame(rte_pktmbuf_mtod(mbufs[0], uint8_t *), mbufs[0]->data_len, &steering),
		STEER_QP);
	assert_int_equal(steering.qpn, BLOCK + 3);
	rte_pktmbuf_free_bulk(mbufs, 1);
	assert_int_equal(declined, 0);
	close(further_fd);
}

/* The first engine's socket leaves out the packets of the other one, which has none. */
TEST(client_decline_psocks__all_engines_or_none)
{
	static const uint8_t peer[6] = {2, 0, 0, 0, 0, 2};
	static struct port queue; /* it keeps what a process has until its end */
	const struct share_client *first;
	struct share_ring tx_of_first;
	struct rte_mbuf *mbuf;
	uint32_t qpn;

	if (!have_network)
		skip();
	engines = 2;
	attach(lend_share(0));
	tx_of_first = tx;
	first = link_of->port.ops_arg;
	assert_non_null(first->psock);
	declined = UINT32_MAX;
	open_queue(&queue, -1);
	engines = 1;
	assert_int_equal(declined, 1);
	assert_null(first->psock);
	assert_false(link_of->port.kernel_beyond);
	mbuf = rte_pktmbuf_alloc(queue.pool);
	assert_non_null(mbuf);
	mbuf->data_len = (uint16_t)frame_make(&(struct frame){.qpn = 12, .len = 64},
					      rte_pktmbuf_mtod(mbuf, uint8_t *));
	mbuf->pkt_len = mbuf->data_len;
	memcpy(rte_pktmbuf_mtod(mbuf, uint8_t *), peer, sizeof(peer));
	port_set_local_qpn(mbuf, 0);
	assert_int_equal(port_tx_burst(&queue, &mbuf, 1), 1);
	assert_int_equal(share_ring_count(&tx), 1);
	tx = tx_of_first;
	mbuf = mbuf_to(peer, &(struct frame){.qpn = 11, .len = 64});
	assert_int_equal(port_tx_burst(&link_of->port, &mbuf, 1), 1);
	receive_at_owner(&qpn);
	assert_int_equal(qpn, 11);
	/* The engine sleeps on its eventfd. */
	assert_false(port_arm(&link_of->port));
	close(further_fd);
}

/* Packets that still come would wake the helper thread for nothing. */
TEST(client_stop_psock__closes_the_socket_when_the_owner_has_gone)
{
	unsigned int before;

	if (!have_network)
		skip();
	attach(lend());
	assert_false(port_lost(&link_of->port));
	close(owner_fd);
	owner_fd = -1;
	before = fds_count();
	assert_true(port_lost(&link_of->port));
	port_lose(&link_of->port);
	assert_int_equal(fds_count(), before - 1);
	put_frame(&(struct frame){.qpn = BLOCK + 2, .len = 64});
	assert_false(port_arm(&link_of->port));
	/* A delayed helper thread. */
	port_close(&link_of->port);
	assert_false(port_arm(&link_of->port));
}
