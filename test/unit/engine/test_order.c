/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of the order in which a queue pair and pmd/engine/tx.c send what is due at once. A program
 * waits for its completion in ibv_poll_cq and then for the peer's WRITE in memory; after the
 * completion it polls no more. So the acknowledgement that completes its work must be sent no later
 * than the WRITE. */
#include <stdlib.h>
#include <string.h>

#include "config/settings.h"
#include "eal/runtime.h"
#include "engine/tx.h"
#include "net/link.h"
#include "qp_rig.h"
#include "test.h"

TEST_FIXTURE(qp_rig_set_up, qp_rig_tear_down);

#define SKIPPED	   77 /* as Meson understands it */
#define BURSTS_MAX 8
#define PKTS_MAX   8
#define BTH_AT	   42 /* behind Ethernet, IPv4 and UDP */

static struct link nic;

/* The packets that were sent, burst by burst. */
static struct {
	uint8_t opcodes[BURSTS_MAX][PKTS_MAX];
	uint16_t pkts[BURSTS_MAX];
	unsigned int bursts;
} left;

static uint16_t note_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	(void)arg;
	assert_true(left.bursts < BURSTS_MAX && n <= PKTS_MAX);
	for (uint16_t i = 0; i < n; i++)
		left.opcodes[left.bursts][i] =
			*rte_pktmbuf_mtod_offset(mbufs[i], uint8_t *, BTH_AT);
	left.pkts[left.bursts++] = n;
	rte_pktmbuf_free_bulk(mbufs, n);
	return n;
}

/* EAL is for the pool of packets alone. */
static int group_set_up(TEST_STATE)
{
	static const struct port_ops ops = {.tx_burst = note_burst};
	struct runtime_config config = {.memory_bytes = 32 << 20};
	struct settings settings;

	settings_init(&settings);
	strcpy(settings.port, "net_ring0");
	if (link_prepare(&nic, &settings) != 0 || runtime_start(&config) != 0 ||
	    link_open(&nic, &settings) != 0)
		exit(SKIPPED);
	nic.port.ops = &ops;
	/* The driver's own is all zeros, as are the peer's here. */
	nic.port.mac[0] = 2;
	return 0;
}

TEST_GROUP(group_set_up, NULL);

/* Run one engine pass over the first end's queue pair. */
static void send_all(bool through_kernel)
{
	struct counters counters = {0};
	struct tx tx;

	memset(&left, 0, sizeof(left));
	nic.port.through_kernel = through_kernel;
	tx_init(&tx, &nic.port, &counters);
	tx.connected = true;
	tx_begin(&tx);
	qp_run(A->qp, rig.now_ns, &tx.sink, 9);
	tx_flush(&tx);
	tx_give_back(&tx);
}

TEST(tx__a_write_is_not_there_without_the_acknowledgement)
{
	rig_connect();
	for (uint64_t i = 0; i < 2; i++) {
		assert_int_equal(end_send(B, i, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
		end_run(B, 9);
		end_deliver(B);
		assert_int_equal(end_send(A, i, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
		send_all(i > 0);
		assert_int_equal(left.bursts, 1);
		assert_int_equal(left.pkts[0], 2);
		assert_int_equal(left.opcodes[0][0], OPCODE_WRITE_ONLY);
		assert_int_equal(left.opcodes[0][1], OPCODE_ACKNOWLEDGE);
	}
}
