/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets into the socket, runs of them in one piece. */
#include <errno.h>
#include <linux/if_packet.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_mbuf.h>

#include "base/log.h"
#include "base/tuning.h"
#include "internal.h"

static uint32_t add_iov(struct psock_batch *batch, uint32_t at, const void *from, size_t len)
{
	batch->iovs[at] = (struct iovec){.iov_base = (void *)(uintptr_t)from, .iov_len = len};
	return at + 1;
}

/* One message of the packets of a run; where its pieces end. */
static uint32_t put_run(struct psock_batch *batch, uint32_t iov, const struct run *run,
			struct rte_mbuf *const *mbufs)
{
	struct virtio_net_hdr *offload = &batch->offloads[batch->messages];
	uint8_t *header = batch->run_headers[batch->messages];
	struct msghdr *message = &batch->headers[batch->messages].msg_hdr;
	const uint32_t first = iov;
	uint32_t skip = 0;

	iov = add_iov(batch, iov, offload, sizeof(*offload));
	if (run->count > 1) {
		skip = run->headers.len;
		run_describe(run, header, offload);
		iov = add_iov(batch, iov, header, skip);
	} else {
		memset(offload, 0, sizeof(*offload));
	}
	for (uint32_t i = 0; i < run->count; i++)
		iov = add_iov(batch, iov, rte_pktmbuf_mtod_offset(mbufs[i], uint8_t *, skip),
			      mbufs[i]->data_len - skip);
	message->msg_iov = &batch->iovs[first];
	message->msg_iovlen = iov - first;
	batch->packets[batch->messages++] = (uint16_t)run->count;
	return iov;
}

static void make_batch(struct psock *psock, struct rte_mbuf *const *mbufs, uint32_t n)
{
	const bool runs = psock->sends_runs && tuning.runs;
	struct psock_batch *batch = &psock->batch;
	struct run run;
	uint32_t iov = 0;

	batch->messages = 0;
	for (uint32_t i = 0; i < n; i += run.count) {
		run_begin(&run, rte_pktmbuf_mtod(mbufs[i], uint8_t *), mbufs[i]->data_len);
		while (runs && i + run.count < n &&
		       run_add(&run, rte_pktmbuf_mtod(mbufs[i + run.count], uint8_t *),
			       mbufs[i + run.count]->data_len))
			;
		iov = put_run(batch, iov, &run, &mbufs[i]);
	}
}

/* Packets of so many messages. */
static uint32_t packets_in(const struct psock_batch *batch, uint32_t messages)
{
	uint32_t packets = 0;

	for (uint32_t i = 0; i < messages; i++)
		packets += batch->packets[i];
	return packets;
}

/* Ask for less, where that can be why the kernel did not take a run. Whether there was less to ask
 * for. */
static bool refuse_run(struct psock *psock, int err)
{
	const int off = 0;

	if (err == ENETDOWN || err == ENXIO || err == ENODEV)
		return false;
	/* Where a device does not part runs, the kernel does, on the way through its queues alone.
	 */
	if (psock->bypasses_qdiscs && err == ENOBUFS) {
		psock->bypasses_qdiscs = false;
		log_debug("the interface does not part runs of packets: the kernel does");
		return setsockopt(psock->fd, SOL_PACKET, PACKET_QDISC_BYPASS, &off, sizeof(off)) ==
		       0;
	}
	if (err == ENOBUFS)
		return false;
	log_debug("the kernel takes no runs of packets: %s", strerror(err));
	psock->sends_runs = false;
	return true;
}

static int send_batch(const struct psock *psock)
{
	const struct psock_batch *batch = &psock->batch;
	struct mmsghdr *headers = (struct mmsghdr *)(uintptr_t)batch->headers;
	int sent = sendmmsg(psock->fd, headers, batch->messages, MSG_DONTWAIT);

	/* That the interface went down is told once, even when it is up again. */
	if (unlikely(sent < 0 && errno == ENETDOWN))
		sent = sendmmsg(psock->fd, headers, batch->messages, MSG_DONTWAIT);
	return sent < 0 ? -errno : sent;
}

uint16_t psock_tx_burst(struct psock *psock, struct rte_mbuf **mbufs, uint16_t n)
{
	struct psock_batch *batch = &psock->batch;
	uint16_t done = 0;

	while (done < n) {
		uint32_t packets;
		int sent;

		make_batch(psock, mbufs + done, RTE_MIN((uint32_t)n - done, (uint32_t)SEND_BURST));
		sent = send_batch(psock);
		if (sent == -EAGAIN)
			break;
		if (unlikely(sent < 0 && batch->packets[0] > 1 && refuse_run(psock, -sent)))
			continue;
		/* What the interface does not take is lost, as on a wire. */
		packets = packets_in(batch, sent < 0 ? 1 : (uint32_t)sent);
		rte_pktmbuf_free_bulk(mbufs + done, packets);
		done = (uint16_t)(done + packets);
	}
	return done;
}
