/* SPDX-License-Identifier: BSD-3-Clause */
/* Drop received packets on request, in a wrapper around the port's rx_burst. */
#include "loss.h"

#include <errno.h>
#include <stdbool.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

#include "port/port.h"
#include "wire/headers.h"

#define MILLION 1000000

/* The engine's owner reads, and whoever holds the engine writes. */
static struct {
	const struct port_ops *port; /* the port's own table */
	struct port_ops lossy;	     /* the same table with a lossy rx_burst */
	uint64_t per_million;
	uint64_t random;
} loss;

/* Only RoCE packets get lost: neighbour resolution must still work. */
static bool is_roce(const struct rte_mbuf *mbuf)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(mbuf, const struct rte_ether_hdr *);
	const bool ipv4 = eth->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4);
	const size_t ip_len = ipv4 ? sizeof(struct rte_ipv4_hdr) : sizeof(struct rte_ipv6_hdr);
	const struct rte_udp_hdr *udp =
		rte_pktmbuf_mtod_offset(mbuf, const struct rte_udp_hdr *, sizeof(*eth) + ip_len);

	if (rte_pktmbuf_data_len(mbuf) < sizeof(*eth) + ip_len + sizeof(*udp))
		return false;
	return (ipv4 || eth->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6)) &&
	       udp->dst_port == rte_cpu_to_be_16(WIRE_UDP_PORT);
}

static bool is_unlucky(void)
{
	/* xorshift64* */
	loss.random ^= loss.random >> 12;
	loss.random ^= loss.random << 25;
	loss.random ^= loss.random >> 27;
	return (loss.random * UINT64_C(0x2545f4914f6cdd1d) >> 32) % MILLION < loss.per_million;
}

static uint16_t lose(struct rte_mbuf **mbufs, uint16_t count)
{
	uint16_t kept = 0;

	if (loss.per_million == 0)
		return count;
	for (uint16_t i = 0; i < count; i++) {
		if (is_roce(mbufs[i]) && is_unlucky())
			rte_pktmbuf_free(mbufs[i]);
		else
			mbufs[kept++] = mbufs[i];
	}
	return kept;
}

static uint16_t lossy_rx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	return lose(mbufs, loss.port->rx_burst(arg, mbufs, n));
}

/*
 * Install the lossy table. It stays installed: its removal would have to wait until no burst call
 * is running. A port without an `open` function belongs to another process or to the application,
 * and is refused.
 */
static int loss_begin(struct port *port)
{
	if (loss.port)
		return 0;
	if (!port->ops->open)
		return -ENOTSUP;
	loss.port = port->ops;
	loss.lossy = *port->ops;
	loss.lossy.rx_burst = lossy_rx_burst;
	port->ops = &loss.lossy;
	return 0;
}

int loss_set(struct port *port, uint64_t per_million, uint64_t seed)
{
	const int rc = per_million > 0 ? loss_begin(port) : 0;

	if (rc != 0)
		return rc;
	loss.random = seed | UINT64_C(1) << 63;
	loss.per_million = per_million;
	return 0;
}
