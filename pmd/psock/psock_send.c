/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends packets through the socket, each run as one piece. */
#include <errno.h>
#include <linux/if_packet.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_mbuf.h>

#include "base/log.h"
#include "base/own.h"
#include "base/tuning.h"
#include "psock_internal.h"

static uint32_t add_iov(struct psock_batch *batch, uint32_t at, const void *from, size_t len)
{
	batch->iovs[at] = (struct iovec){.iov_base = (void *)(uintptr_t)from, .iov_len = len};
	return at + 1;
}

/* Make one message of the packets of a run. Returns the index after its last iovec. */
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
		run_gather(&run, &mbufs[i], n - i, runs);
		iov = put_run(batch, iov, &run, &mbufs[i]);
	}
}

/* Return the number of packets in the first `messages` messages. */
static uint32_t packets_in(const struct psock_batch *batch, uint32_t messages)
{
	uint32_t packets = 0;

	for (uint32_t i = 0; i < messages; i++)
		packets += batch->packets[i];
	return packets;
}

static bool set_bypass(struct psock *psock, bool on)
{
	const int value = on;

	if (setsockopt(psock->fd, SOL_PACKET, PACKET_QDISC_BYPASS, &value, sizeof(value)) < 0)
		return false;
	psock->bypasses_qdiscs = on;
	return true;
}

/*
 * Return true if the send must be tried again through the kernel's queues. Only there the kernel
 * segments runs for a device that cannot, and keeps packets that the device has no room for. If
 * that does not help (no carrier, a full queue), later packets bypass the queues again.
 */
static bool try_queues(struct psock *psock, int sent, bool *tries)
{
	const bool was_tried = *tries;

	*tries = sent == -ENOBUFS && psock->bypasses_qdiscs && set_bypass(psock, false);
	if (was_tried && sent == -ENOBUFS)
		set_bypass(psock, true);
	else if (was_tried && sent > 0)
		log_debug("packets now pass through the kernel's queues, because the interface did "
			  "not take them");
	return *tries;
}

/* Return true if this error means that the kernel or the device supports no runs. From then on
 * packets are sent one by one. */
static bool refuse_runs(struct psock *psock, int err)
{
	if (err != EINVAL && err != EOPNOTSUPP && err != EIO)
		return false;
	log_debug("the kernel takes no runs of packets: %s", strerror(err));
	psock->sends_runs = false;
	return true;
}

void psock_refused(const struct psock *psock, uint64_t *packets, uint64_t *bytes)
{
	*packets = psock->refused_packets;
	*bytes = psock->refused_bytes;
}

/* Count the packets of one message, which the interface did not take. */
static void count_refused(struct psock *psock, struct rte_mbuf *const *mbufs, uint32_t packets,
			  int err)
{
	psock->refused_packets += packets;
	for (uint32_t i = 0; i < packets; i++)
		psock->refused_bytes += mbufs[i]->pkt_len;
	if (err != EMSGSIZE || psock->told_of_size)
		return;
	psock->told_of_size = true;
	log_warn("the interface's MTU is too small: packets are lost");
}

/* Gather the pieces of the first message in one buffer. Returns its length; 0 if it is too long. */
static size_t gather_short(struct psock_batch *batch)
{
	const struct msghdr *message = &batch->headers[0].msg_hdr;
	size_t len = 0;

	for (size_t i = 0; i < message->msg_iovlen; i++) {
		const struct iovec *iov = &message->msg_iov[i];

		if (iov->iov_len > sizeof(batch->whole) - len)
			return 0;
		memcpy(batch->whole + len, iov->iov_base, iov->iov_len);
		len += iov->iov_len;
	}
	return len;
}

/* Send the batch. Returns how many messages were sent, or -1. A single short message is sent from
 * one buffer, because its receiver probably waits for it. */
static int send_messages(struct psock *psock)
{
	struct psock_batch *batch = &psock->batch;
	const size_t len = batch->messages == 1 ? gather_short(batch) : 0;

	/* The program has closed the socket. Packets are lost until the engine notices that as
	 * well. */
	if (unlikely(!own_is(psock->fd))) {
		errno = EBADF;
		return -1;
	}
	if (len > 0)
		return send(psock->fd, batch->whole, len, MSG_DONTWAIT) < 0 ? -1 : 1;
	return sendmmsg(psock->fd, batch->headers, batch->messages, MSG_DONTWAIT);
}

static int send_batch(struct psock *psock)
{
	int sent = send_messages(psock);

	/* The kernel reports once that the interface went down, even if it is up again: try again.
	 */
	if (unlikely(sent < 0 && errno == ENETDOWN))
		sent = send_messages(psock);
	return sent < 0 ? -errno : sent;
}

uint16_t psock_tx_burst(struct psock *psock, struct rte_mbuf **mbufs, uint16_t n)
{
	struct psock_batch *batch = &psock->batch;
	bool tries = false;
	uint16_t done = 0;

	while (done < n) {
		uint32_t packets;
		int sent;

		make_batch(psock, mbufs + done, RTE_MIN((uint32_t)n - done, (uint32_t)SEND_BURST));
		sent = send_batch(psock);
		if (sent == -EAGAIN)
			break;
		if (unlikely((sent < 0 || tries) && try_queues(psock, sent, &tries)))
			continue;
		if (unlikely(sent < 0 && batch->packets[0] > 1 && refuse_runs(psock, -sent)))
			continue;
		packets = packets_in(batch, sent < 0 ? 1 : (uint32_t)sent);
		/* Drop packets that the interface refuses, as a network would lose them. */
		if (unlikely(sent < 0))
			count_refused(psock, mbufs + done, packets, -sent);
		rte_pktmbuf_free_bulk(mbufs + done, packets);
		done = (uint16_t)(done + packets);
	}
	return done;
}
