/* SPDX-License-Identifier: BSD-3-Clause */
/* Send: the public calls, and WRITEs into the peer's windows. */
#include <limits.h>

#include "rs.h"
#include "rs_datagram.h"

#define CHUNK 16384 /* bytes of one WRITE: the next chunk is copied while this one is sent */

bool rs_send_is_ready(const struct rsocket *s)
{
	return s->state != RS_CONNECTED || s->shut & RS_SHUT_WRITE || rs_out_may_send(&s->out);
}

int rs_send_check(const struct rsocket *s)
{
	if (s->state == RS_CONNECTED)
		return s->shut & RS_SHUT_WRITE ? -EPIPE : 0;
	if (s->state != RS_ENDED)
		return -ENOTCONN;
	return s->error ? -s->error : -EPIPE;
}

ssize_t rs_send_result(struct rsocket *s, size_t sent, ssize_t rc)
{
	if (sent > 0)
		return (ssize_t)sent;
	if (rc < 0 && s->state == RS_ENDED && rc == -s->error)
		s->error = 0;
	return RTE_MIN(rc, 0);
}

int rs_send_write(struct rsocket *s, struct rs_cursor *from, uint32_t len, bool is_inline,
		  struct ibv_send_wr *wr)
{
	uint8_t own[RS_INLINE_MAX];
	uint8_t *place = is_inline ? own : s->out.buffer + s->out.tail;
	struct ibv_sge sge = {
		.addr = (uintptr_t)place, .length = len, .lkey = s->link.buffer_mr->lkey};

	rs_vector_gather(from, place, len);
	wr->sg_list = &sge;
	wr->num_sge = 1;
	wr->send_flags = is_inline ? IBV_SEND_INLINE : 0;
	wr->wr_id = rs_message_wr_id(RS_OP_DATA, is_inline ? 0 : len);
	if (!is_inline)
		rs_out_take_buffer(&s->out, len);
	return rs_message_post(s, wr);
}

/* Send as much as fits into the window and the buffer. Return the bytes, or -errno. */
static ssize_t send_chunk(struct rsocket *s, struct rs_cursor *from, size_t left)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE_WITH_IMM};
	const uint32_t room = RTE_MIN(s->out.windows[0].length, (uint32_t)CHUNK);
	bool is_inline;
	const uint32_t len = rs_out_choose(&s->out, RTE_MIN(left, (size_t)room),
					   s->link.inline_bytes, &is_inline);
	struct rs_window at;
	int rc;

	rs_out_take_window(&s->out, len, &at);
	wr.wr.rdma.remote_addr = at.addr;
	wr.wr.rdma.rkey = at.key;
	wr.imm_data = rte_cpu_to_be_32(rs_imm(RS_OP_DATA, len));
	rc = rs_send_write(s, from, len, is_inline, &wr);
	return rc == 0 ? (ssize_t)len : rc;
}

/* Wait until a chunk can be sent. First send the changed mappings that the peer does not know. */
static int wait_for_room(struct rsocket *s, bool nonblock)
{
	int rc;

	do {
		rc = rs_wait_for(s, rs_send_is_ready, nonblock, s->options.send_timeout_ms);
		if (rc != 0)
			return rc;
		rc = rs_send_check(s);
		if (rc == 0)
			rc = rs_iomap_tell(s);
		if (rc != 0 && rc != -EAGAIN)
			return rc;
	} while (rc == -EAGAIN || !rs_out_may_send(&s->out));
	return 0;
}

static ssize_t send_stream(struct rsocket *s, const struct iovec *iov, size_t len, int flags)
{
	const bool nonblock = rs_is_nonblock(s, flags);
	struct rs_cursor from = {.iov = iov};
	size_t sent = 0;
	ssize_t rc = 0;

	if (rs_is_opening(s))
		rc = rs_connect_wait(s, nonblock, s->options.send_timeout_ms);
	if (rc == 0)
		rc = rs_send_check(s);
	while (rc >= 0 && sent < len) {
		rc = s->untold == 0 && rs_out_may_send(&s->out) ? rs_send_check(s)
								: wait_for_room(s, nonblock);
		if (rc == 0)
			rc = send_chunk(s, &from, len - sent);
		if (rc > 0)
			sent += (size_t)rc;
	}
	return rs_send_result(s, sent, rc);
}

static ssize_t send_vector(int socket, const struct iovec *iov, size_t count, int flags,
			   const struct sockaddr *to, socklen_t to_len)
{
	struct rsocket *s = rs_table_get(socket);
	ssize_t rc;

	if (!s)
		return rs_result(-EBADF);
	rc = flags & RS_FLAGS_REFUSED ? -EOPNOTSUPP : rs_vector_len(iov, count);
	if (rc >= 0) {
		pthread_mutex_lock(&s->lock);
		if (s->datagrams)
			rc = rs_datagram_send(s, iov, count, flags, to, to_len);
		else
			rc = send_stream(s, iov, (size_t)rc, flags); /* TCP ignores the address */
		pthread_mutex_unlock(&s->lock);
	}
	rs_table_put(s);
	return rs_result(rc);
}

ssize_t rsendto(int socket, const void *buf, size_t len, int flags,
		const struct sockaddr *dest_addr, socklen_t addrlen)
{
	const struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = len};

	return send_vector(socket, &iov, 1, flags, dest_addr, addrlen);
}

ssize_t rsend(int socket, const void *buf, size_t len, int flags)
{
	return rsendto(socket, buf, len, flags, NULL, 0);
}

ssize_t rsendmsg(int socket, const struct msghdr *msg, int flags)
{
	if (msg->msg_control && msg->msg_controllen > 0)
		return rs_result(-EOPNOTSUPP);
	return send_vector(socket, msg->msg_iov, msg->msg_iovlen, flags, msg->msg_name,
			   msg->msg_namelen);
}

ssize_t rwrite(int socket, const void *buf, size_t count)
{
	return rsendto(socket, buf, count, 0, NULL, 0);
}

ssize_t rwritev(int socket, const struct iovec *iov, int iovcnt)
{
	if (iovcnt < 0 || iovcnt > IOV_MAX)
		return rs_result(-EINVAL);
	return send_vector(socket, iov, (size_t)iovcnt, 0, NULL, 0);
}
