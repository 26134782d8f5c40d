/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/engine/tx.c: payload that stays in its place. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "psock/psock.h"
#include "engine_rig.h"
#include "wire/opcode.h"
#include "test.h"

TEST_GROUP(rig_group_set_up, NULL);

TEST_FIXTURE(rig_set_up, rig_tear_down);

/* Describe memory as a port with DMA describes a HUGETLB region. */
static void make_region(struct dma_region *region, const void *addr, size_t length)
{
	static struct rte_mempool *parts;

	if (!parts)
		parts = rte_pktmbuf_pool_create("parts", 64, 0, 0, 0, SOCKET_ID_ANY);
	assert_non_null(parts);
	memset(region, 0, sizeof(*region));
	region->addr = (uintptr_t)addr;
	region->length = length;
	region->iova = UINT64_C(1) << 40;
	rte_mbuf_ext_refcnt_set(&region->shared, 1);
	engine->dma.parts = parts;
	LIST_INSERT_HEAD(&engine->dma.regions, region, link);
}

static struct rte_mbuf *send_payload(const uint8_t *payload, uint32_t len)
{
	struct rte_mbuf *mbuf;

	qp.payload = payload;
	qp.payload_len = len;
	qp.to_send = 1;
	ops->kick(engine, &qp);
	assert_int_equal(port_rx_burst(&engine->link->port, &mbuf, 1), 1);
	return mbuf;
}

TEST(tx__huge_payload_stays_in_its_place)
{
	static uint8_t memory[8192];
	struct dma_region region;
	struct rte_mbuf *mbuf, *body;

	make_region(&region, memory, sizeof(memory));
	mbuf = send_payload(memory + 4096, 4096);
	assert_int_equal(mbuf->nb_segs, 3);
	assert_int_equal(mbuf->pkt_len, FAKE_FRAME_LEN + 4096 + 4);
	body = mbuf->next;
	assert_ptr_equal(rte_pktmbuf_mtod(body, uint8_t *), memory + 4096);
	assert_int_equal(rte_pktmbuf_iova(body), region.iova + 4096);
	assert_int_equal(body->data_len, 4096);
	assert_int_equal(body->next->data_len, 4);
	assert_int_equal(*rte_pktmbuf_mtod(body->next, uint8_t *), FAKE_TAIL);
	/* as the port will have it */
	assert_int_equal(rte_pktmbuf_iova(body->next) - rte_pktmbuf_iova(mbuf),
			 rte_pktmbuf_mtod(body->next, uint8_t *) -
				 rte_pktmbuf_mtod(mbuf, uint8_t *));
	assert_true(dma_is_busy(&region));
	rte_pktmbuf_free(mbuf);
	assert_false(dma_is_busy(&region));
	assert_int_equal(rig_count(COUNTER_tx_in_place_packets), 1);
	assert_int_equal(rig_count(COUNTER_tx_bytes), FAKE_FRAME_LEN + 4096 + 4);
}

TEST(tx__what_may_change_under_way_is_copied)
{
	static uint8_t memory[8192], other_memory[4096];
	struct dma_region region;
	const struct {
		const uint8_t *payload;
		uint32_t len;
		uint8_t opcode;
		bool again;
	} cases[] = {
		{memory, 512, OPCODE_RC | OPCODE_SEND_ONLY, false}, /* short */
		{memory + 4097, 4096, OPCODE_RC | OPCODE_SEND_ONLY,
		 false}, /* not all of it is in the region */
		{other_memory, 4096, OPCODE_RC | OPCODE_SEND_ONLY, false},
		{memory, 4096, OPCODE_RC | OPCODE_READ_RESPONSE_ONLY, false},
		{memory, 4096, OPCODE_UC | OPCODE_SEND_ONLY,
		 false}, /* completes before it is read */
		{memory, 4096, OPCODE_UD | OPCODE_SEND_ONLY, false},
		{memory, 4096, OPCODE_RC | OPCODE_SEND_ONLY,
		 true}, /* maybe it did not fit its ICRC */
	};

	make_region(&region, memory, sizeof(memory));
	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		struct rte_mbuf *mbuf;

		qp.opcode = cases[i].opcode;
		qp.again = cases[i].again;
		mbuf = send_payload(cases[i].payload, cases[i].len);
		assert_int_equal(mbuf->nb_segs, 1);
		rte_pktmbuf_free(mbuf);
	}
	/* to ourselves: what comes round would be looked for in one piece */
	qp.opcode = OPCODE_RC | OPCODE_SEND_ONLY;
	qp.again = false;
	memcpy(qp.dst_mac, engine->link->port.mac, sizeof(qp.dst_mac));
	qp.to_send = 1;
	qp.payload = memory;
	qp.payload_len = 4096;
	ops->kick(engine, &qp);
	assert_int_equal(rig_count(COUNTER_tx_in_place_packets), 0);
	assert_false(dma_is_busy(&region));
}

static const struct port_ops *ring;
static uint16_t sent_mark;

/* A driver may change the mark of a packet that it has taken, as the ring driver of DPDK 24.11
 * does. */
static uint16_t note_mark(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	assert_int_equal(n, 1);
	sent_mark = mbufs[0]->port;
	return ring->tx_burst(arg, mbufs, n);
}

/* The kernel cannot segment these packets as a run: their identifications do not count up, or they
 * carry a mark (psock/psock.h). */
TEST(tx__what_is_sent_again_leaves_alone)
{
	static const bool again[] = {false, true, true, false};
	static const uint16_t ids[] = {1, 4, 7, 8}; /* of who comes next */
	static uint8_t memory[64];
	struct port_ops noting;

	ring = engine->link->port.ops;
	noting = *ring;
	noting.tx_burst = note_mark;
	engine->link->port.ops = &noting;
	for (size_t i = 0; i < RTE_DIM(again); i++) {
		qp.again = again[i];
		rte_pktmbuf_free(send_payload(memory, sizeof(memory)));
		assert_int_equal(sent_mark == PSOCK_ALONE, again[i]);
		assert_int_equal(engine->tx.next_ip_id, ids[i]);
	}
	engine->link->port.ops = ring;
}

/* The answer of the port below. */
static struct port_taken told;
static bool tells;

static bool taken_by_other_end(void *arg, uint32_t qpn, bool is_local, struct port_taken *taken)
{
	assert_ptr_equal(arg, engine->link->port.ops_arg);
	assert_int_equal(qpn, 9);
	assert_false(is_local);
	*taken = told;
	return tells;
}

static bool waits_for(void *arg, uint32_t qpn)
{
	assert_ptr_equal(arg, engine->link->port.ops_arg);
	return qpn == 9;
}

TEST(tx_ask__what_the_port_knows)
{
	struct packet_sink *sink = &engine->tx.sink;
	const struct port_ops *const before = engine->link->port.ops;
	struct port_ops with = *before;
	struct path path = {.len = 0};
	struct sink_taken taken = {0};

	memcpy(path.hdr, peer_mac, sizeof(peer_mac));
	with.taken = NULL;
	engine->link->port.ops = &with;
	assert_int_equal(sink->ask(sink, &path, 9, &taken), SINK_KNOWS_NOTHING);
	with.taken = taken_by_other_end;
	told = (struct port_taken){.given = 7, .taken = 5, .dropped = 3, .unread = true};
	tells = false;
	assert_int_equal(sink->ask(sink, &path, 9, &taken), SINK_KNOWS_NOTHING);
	tells = true;
	assert_int_equal(sink->ask(sink, &path, 9, &taken), SINK_KNOWS_TAKEN);
	assert_int_equal(taken.given, 7);
	assert_int_equal(taken.taken, 5);
	assert_int_equal(taken.dropped, 3);
	assert_true(taken.unread);
	/* Packets wait for room in the port. */
	engine->tx.count++;
	assert_int_equal(sink->ask(sink, &path, 9, &taken), SINK_KNOWS_FULL);
	engine->tx.count--;
	/* The port holds packets to this queue pair, if it is on this host. */
	with.waits = waits_for;
	engine->link->port.tx_held = 1;
	assert_int_equal(sink->ask(sink, &path, 9, &taken), SINK_KNOWS_TAKEN);
	engine->link->port.own_qpn_first = 1;
	engine->link->port.own_qpn_count = 1;
	memcpy(path.hdr, engine->link->port.mac, sizeof(peer_mac));
	assert_int_equal(sink->ask(sink, &path, 9, &taken), SINK_KNOWS_FULL);
	memcpy(path.hdr, peer_mac, sizeof(peer_mac));
	engine->link->port.own_qpn_count = 0;
	engine->link->port.tx_held = 0;
	/* Without a connection packets reach nobody. */
	engine->tx.connected = false;
	assert_int_equal(sink->ask(sink, &path, 9, &taken), SINK_KNOWS_NOTHING);
	engine->tx.connected = true;
	/* A packet to ourselves does not pass through the port. */
	memcpy(path.hdr, engine->link->port.mac, sizeof(peer_mac));
	assert_int_equal(sink->ask(sink, &path, 9, &taken), SINK_KNOWS_TAKEN);
	assert_int_equal(taken.given, taken.taken);
	engine->link->port.ops = before;
}

TEST(tx__unreadable_payload_in_place_is_a_fault)
{
	static uint8_t memory[4096];
	struct dma_region region;

	make_region(&region, memory, sizeof(memory));
	qp.payload = memory;
	qp.payload_len = sizeof(memory);
	qp.dst_mac[0] = FAKE_UNREADABLE;
	qp.to_send = 1;
	ops->kick(engine, &qp);
	assert_int_equal(qp.faults, 1);
	assert_false(dma_is_busy(&region));
	assert_int_equal(rte_mempool_in_use_count(engine->dma.parts), 0);
}
