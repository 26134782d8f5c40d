/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts a bad network in front of a port: a table of operations that calls the port's own table. */
#include "port/impair.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "base/log.h"
#include "base/monotonic.h"
#include "impair/impair_path.h"
#include "port/port.h"

static_assert(IMPAIR_VERIFIED == PORT_VERIFIED, "of all kinds of ports");

#define IMPAIR_BURST 64
#define RETRY_NS     10000 /* after the port below had no room */

/* Both directions get numbers of their own. */
enum { STREAM_RX, STREAM_TX };

struct impair_port {
	struct port *port;
	const struct port_ops *below;
	void *below_arg;
	struct port_ops ops; /* ours, with NULL where the port below has NULL */
	struct impair_config config;
	struct impair_counts counts;
	struct impair_path rx, tx;
	/* packets that have passed `tx`, but the port below has no room for them */
	struct rte_mbuf *out[IMPAIR_BURST];
	uint16_t out_count;
	bool timed; /* packets may be held back */
	/* for packets that are held back, if the port's pool is another process's and cannot be
	 * made larger; or NULL */
	struct rte_mempool *store;
};

static uint64_t impair_now_ns(const struct impair_port *impair)
{
	return impair->timed ? monotonic_ns() : 0;
}

/* Move a packet into a buffer of another pool. Returns NULL, and leaves the packet, if the pool has
 * none. */
static struct rte_mbuf *impair_move(struct rte_mbuf *mbuf, struct rte_mempool *pool)
{
	struct rte_mbuf *copy = rte_pktmbuf_copy(mbuf, pool, 0, UINT32_MAX);

	if (copy)
		rte_pktmbuf_free(mbuf);
	return copy;
}

/* Keep a packet in our own buffers if the port's are few. A packet without such a buffer stays
 * where it is. */
static struct rte_mbuf *impair_keep(const struct impair_port *impair, struct rte_mbuf *mbuf)
{
	struct rte_mbuf *moved = impair->store ? impair_move(mbuf, impair->store) : NULL;

	return moved ? moved : mbuf;
}

/* Return the pool of duplicates. */
static struct rte_mempool *impair_pool(const struct impair_port *impair)
{
	return impair->store ? impair->store : impair->port->pool;
}

/* Put packets that leave back into buffers of the port, as far as it has some. Returns how many
 * packets can be sent. */
static uint16_t impair_return(struct impair_port *impair)
{
	if (!impair->store)
		return impair->out_count;
	for (uint16_t i = 0; i < impair->out_count; i++) {
		struct rte_mbuf *mbuf = impair->out[i];

		if (mbuf->pool == impair->store)
			mbuf = impair_move(mbuf, impair->port->pool);
		if (!mbuf)
			return i;
		impair->out[i] = mbuf;
	}
	return impair->out_count;
}

/* Send the packets that have passed the bad network. */
static void impair_send_due(struct impair_port *impair, uint64_t now_ns)
{
	uint16_t ready, sent;

	do {
		impair->out_count =
			(uint16_t)(impair->out_count +
				   impair_path_get(&impair->tx, impair->out + impair->out_count,
						   IMPAIR_BURST - impair->out_count, now_ns));
		if (impair->out_count == 0)
			return;
		ready = impair_return(impair);
		if (ready == 0)
			return;
		sent = impair->below->tx_burst(impair->below_arg, impair->out, ready);
		impair->out_count = (uint16_t)(impair->out_count - sent);
		memmove(impair->out, impair->out + sent,
			impair->out_count * sizeof(impair->out[0]));
	} while (impair->out_count == 0);
}

static uint16_t impair_tx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	struct impair_port *impair = arg;
	const struct port *port = impair->port;
	const uint64_t now_ns = impair_now_ns(impair);

	impair_send_due(impair, now_ns);
	/* The port below is full. Its user waits, as it would without us. */
	if (impair->out_count > 0)
		return 0;
	n = RTE_MIN(n, (uint16_t)IMPAIR_BURST);
	for (uint16_t i = 0; i < n; i++) {
		const bool spares_icrc = port->spares_icrc && port_local_qpn(mbufs[i]) != 0;

		impair_path_put(&impair->tx, impair_keep(impair, mbufs[i]), impair_pool(impair),
				!spares_icrc, now_ns);
	}
	impair_send_due(impair, now_ns);
	return n;
}

/* Receive from the port below what its user has room for: the rest waits in the port, as it would
 * without us. Returns how many packets were taken. */
static uint16_t impair_take(struct impair_port *impair, uint16_t n, uint64_t now_ns)
{
	struct rte_mbuf *mbufs[IMPAIR_BURST];
	uint16_t taken;

	n = RTE_MIN(n, (uint16_t)IMPAIR_BURST);
	taken = impair->below->rx_burst(impair->below_arg, mbufs, n);
	for (uint16_t i = 0; i < taken; i++) {
		struct rte_mbuf *mbuf = impair_keep(impair, mbufs[i]);

		impair_path_put(&impair->rx, mbuf, impair_pool(impair),
				mbuf->port != PORT_HANDED_OVER, now_ns);
	}
	/* What is returned does not show that the port below had as many packets. */
	impair->port->rx_cut |= taken == n;
	return taken;
}

/* Send and receive. Packets that are to be sent later leave here, because no one may send any more
 * for a while. */
static uint16_t impair_rx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	struct impair_port *impair = arg;
	const uint64_t now_ns = impair_now_ns(impair);
	struct port *port = impair->port;
	uint16_t got, taken = 0;

	if (impair->timed || impair->out_count > 0)
		impair_send_due(impair, now_ns);
	port->rx_cut = false;
	got = impair_path_get(&impair->rx, mbufs, n, now_ns);
	if (got < n) {
		taken = impair_take(impair, (uint16_t)(n - got), now_ns);
		got = (uint16_t)(got + impair_path_get(&impair->rx, mbufs + got,
						       (uint16_t)(n - got), now_ns));
	}
	port->rx_cut |= impair_path_due_ns(&impair->rx) <= now_ns;
	port->rx_kept = taken > got ? (uint16_t)(taken - got) : 0;
	return got;
}

static uint64_t impair_due_ns(void *arg)
{
	const struct impair_port *impair = arg;
	uint64_t due_ns, now_ns;

	if (impair->out_count > 0)
		return RETRY_NS;
	due_ns = RTE_MIN(impair_path_due_ns(&impair->rx), impair_path_due_ns(&impair->tx));
	if (due_ns == IMPAIR_NEVER)
		return UINT64_MAX;
	now_ns = impair_now_ns(impair);
	return due_ns > now_ns ? due_ns - now_ns : 0;
}

/* A network delivers what is in flight, even if the sender has gone: send all that is held. */
static void impair_send_all(struct impair_port *impair)
{
	impair_send_due(impair, UINT64_MAX);
	rte_pktmbuf_free_bulk(impair->out, impair->out_count);
	impair->out_count = 0;
}

static void impair_close(void *arg)
{
	struct impair_port *impair = arg;

	impair_send_all(impair);
	impair->below->close(impair->below_arg);
}

static void impair_destroy(void *arg)
{
	struct impair_port *impair = arg;

	impair_path_fini(&impair->rx);
	impair_path_fini(&impair->tx);
	rte_pktmbuf_free_bulk(impair->out, impair->out_count);
	if (impair->below->destroy)
		impair->below->destroy(impair->below_arg);
	free(impair);
}

/* The other operations are those of the port below. They do not touch our packets, so a thread may
 * call `arm` at any time. */

#define FORWARD(type, name, arg_type)                          \
	static type impair_##name(arg_type arg)                \
	{                                                      \
		const struct impair_port *impair = arg;        \
                                                               \
		return impair->below->name(impair->below_arg); \
	}
FORWARD(int, open, void *)
FORWARD(bool, arm, void *)
FORWARD(void, disarm, void *)
FORWARD(bool, connected, void *)
FORWARD(bool, lost, void *)
FORWARD(void, lose, void *)
FORWARD(bool, returned, void *)
FORWARD(void, conn_run, void *)
FORWARD(int, conn_fd, const void *)
FORWARD(int, conn_ms, const void *)
FORWARD(void, send_held, void *)
#undef FORWARD

/* The buffers of packets that are held back may be those of the last owner. They are lost, as
 * others at such a moment. */
static int impair_renew(void *arg)
{
	struct impair_port *impair = arg;
	struct rte_mbuf *mbufs[IMPAIR_BURST];
	uint16_t n;

	rte_pktmbuf_free_bulk(impair->out, impair->out_count);
	impair->out_count = 0;
	while ((n = impair_path_get(&impair->rx, mbufs, IMPAIR_BURST, UINT64_MAX)) > 0 ||
	       (n = impair_path_get(&impair->tx, mbufs, IMPAIR_BURST, UINT64_MAX)) > 0)
		rte_pktmbuf_free_bulk(mbufs, n);
	return impair->below->renew(impair->below_arg);
}

static bool impair_link_up(void *arg, bool connected)
{
	const struct impair_port *impair = arg;

	return impair->below->link_up(impair->below_arg, connected);
}

static bool impair_waits(void *arg, uint32_t qpn)
{
	const struct impair_port *impair = arg;

	return impair->below->waits(impair->below_arg, qpn);
}

static struct port_ops impair_table(const struct port_ops *below)
{
	return (struct port_ops){
		.open = below->open ? impair_open : NULL,
		.rx_burst = impair_rx_burst,
		.tx_burst = impair_tx_burst,
		.due_ns = impair_due_ns,
		.waits = below->waits ? impair_waits : NULL,
		.send_held = below->send_held ? impair_send_held : NULL,
		.arm = impair_arm,
		.disarm = below->disarm ? impair_disarm : NULL,
		.link_up = below->link_up ? impair_link_up : NULL,
		.connected = impair_connected,
		.lost = below->lost ? impair_lost : NULL,
		.conn_run = below->conn_run ? impair_conn_run : NULL,
		.conn_fd = below->conn_fd ? impair_conn_fd : NULL,
		.conn_ms = below->conn_ms ? impair_conn_ms : NULL,
		.lose = below->lose ? impair_lose : NULL,
		.returned = below->returned ? impair_returned : NULL,
		.renew = below->renew ? impair_renew : NULL,
		.close = impair_close,
		.destroy = impair_destroy,
	};
}

/* A direction that is not impaired has a path without damage. */
static int impair_make_paths(struct impair_port *impair)
{
	static const struct impair_config none = {.limit = 2 * IMPAIR_BURST};
	const struct impair_config *config = &impair->config;
	int rc;

	rc = impair_path_init(&impair->rx, config->rx ? config : &none, STREAM_RX, &impair->counts);
	if (rc == 0)
		rc = impair_path_init(&impair->tx, config->tx ? config : &none, STREAM_TX,
				      &impair->counts);
	return rc;
}

static int impair_make(struct impair_port *impair, struct port *port, const char *args)
{
	char error[256];
	int rc;

	rc = impair_config_read(args, &impair->config, error, sizeof(error));
	if (rc != 0) {
		log_error("%s", error);
		return rc;
	}
	impair->timed = impair_config_holds(&impair->config);
	rc = impair_make_paths(impair);
	if (rc != 0)
		return rc;
	impair->port = port;
	impair->below = port->ops;
	impair->below_arg = port->ops_arg;
	impair->ops = impair_table(port->ops);
	return 0;
}

/* Provide buffers for the packets that are held back: in the port's pool if it is made later, else
 * in one of our own. */
static int impair_make_room(struct impair_port *impair)
{
	struct port *port = impair->port;
	struct rte_mempool *const pool = port->pool;
	int rc;

	port->mbufs += 2 * impair->config.limit;
	if (!pool || !port->make_pool)
		return 0;
	/* The user of the port has some of them for a moment. */
	port->mbufs += 4 * IMPAIR_BURST;
	rc = port->make_pool(port);
	impair->store = port->pool;
	port->pool = pool;
	return rc;
}

int impair_prepare(struct port *port, const char *args)
{
	struct impair_port *impair;
	int rc;

	if (args[0] == '\0')
		return 0;
	impair = calloc(1, sizeof(*impair));
	if (!impair)
		return -ENOMEM;
	rc = impair_make(impair, port, args);
	if (rc != 0) {
		free(impair->rx.queue);
		free(impair->tx.queue);
		free(impair);
		return rc;
	}
	port->ops = &impair->ops;
	port->ops_arg = impair;
	port->impaired = &impair->counts;
	return impair->timed ? impair_make_room(impair) : 0;
}
