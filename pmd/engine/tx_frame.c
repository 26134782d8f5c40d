/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends single frames that are not RoCE packets, before the packets that wait for the port. */
#include <string.h>

#include <rte_ether.h>

#include "engine/tx.h"
#include "telemetry/counters.h"

#define DUMMY_LEN 60
/* IEEE 802's EtherType for local experiments. The frame goes to our own address, so no switch
 * forwards it. */
#define DUMMY_TYPE 0x88b5

struct rte_mbuf *tx_alloc(struct tx *tx)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(tx->port->pool);

	if (!mbuf)
		counters_add(tx->counters, COUNTER_tx_other_dropped, 1);
	return mbuf;
}

/* Return false if the port did not take the frame, which is then dropped. */
static bool tx_try_send(struct tx *tx, struct rte_mbuf *mbuf, uint32_t len)
{
	mbuf->data_len = (uint16_t)len;
	mbuf->pkt_len = len;
	port_set_local_qpn(mbuf, 0);
	if (tx->connected && port_tx_burst(tx->port, &mbuf, 1) == 1)
		return true;
	rte_pktmbuf_free(mbuf);
	return false;
}

void tx_send(struct tx *tx, struct rte_mbuf *mbuf, uint32_t len)
{
	/* Such frames never delay RoCE packets. If one is dropped, the host that sent the request
	 * repeats it. */
	if (!tx_try_send(tx, mbuf, len))
		counters_add(tx->counters, COUNTER_tx_other_dropped, 1);
}

void tx_send_dummy(struct tx *tx)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(tx->port->pool);
	struct rte_ether_hdr *eth;

	if (!mbuf)
		return;
	eth = rte_pktmbuf_mtod(mbuf, struct rte_ether_hdr *);
	memset(eth, 0, DUMMY_LEN);
	memcpy(&eth->dst_addr, tx->port->mac, sizeof(eth->dst_addr));
	memcpy(&eth->src_addr, tx->port->mac, sizeof(eth->src_addr));
	eth->ether_type = rte_cpu_to_be_16(DUMMY_TYPE);
	tx_try_send(tx, mbuf, DUMMY_LEN);
}
