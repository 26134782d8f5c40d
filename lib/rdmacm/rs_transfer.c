/* SPDX-License-Identifier: BSD-3-Clause */
/* Send and receive: the public calls, WRITEs into the peer's windows, copies out of a stream's
 * ring, and the program's I/O vectors. */
#include <limits.h>
#include <string.h>

#include "rs.h"
#include "rs_datagram.h"

ssize_t rs_vector_len(const struct iovec *iov, size_t count)
{
	size_t len = 0;

	if (count > IOV_MAX)
		return -EMSGSIZE;
	if (count > 0 && !iov)
		return -EFAULT;
	for (size_t i = 0; i < count; i++) {
		if (iov[i].iov_len > (size_t)SSIZE_MAX - len)
			return -EINVAL;
		len += iov[i].iov_len;
	}
	return (ssize_t)len;
}

void rs_vector_gather(struct rs_cursor *from, void *data, size_t len)
{
	uint8_t *to = data;

	while (len > 0) {
		const size_t left = from->iov->iov_len - from->offset;
		const size_t piece = RTE_MIN(left, len);

		memcpy(to, (const uint8_t *)from->iov->iov_base + from->offset, piece);
		to += piece;
		len -= piece;
		from->offset += piece;
		if (from->offset == from->iov->iov_len) {
			from->iov++;
			from->offset = 0;
		}
	}
}

size_t rs_vector_scatter(const struct iovec *iov, size_t count, const void *data, size_t len)
{
	const uint8_t *from = data;
	size_t done = 0;

	for (size_t i = 0; i < count && done < len; i++) {
		const size_t piece = RTE_MIN(iov[i].iov_len, len - done);

		memcpy(iov[i].iov_base, from + done, piece);
		done += piece;
	}
	return done;
}

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

bool rs_recv_is_ready(const struct rsocket *s)
{
	return s->state != RS_CONNECTED || s->shut & (RS_SHUT_READ | RS_SHUT_PEER) ||
	       s->in.ready > 0;
}

/* Return the result of a receive when no data is ready and none will come: 0, or the error that
 * ended the connection. MSG_PEEK leaves the error pending. */
static int end_of_stream(struct rsocket *s, int flags)
{
	const int error = s->error;

	if (s->state < RS_CONNECTED)
		return -ENOTCONN;
	if (!(flags & MSG_PEEK))
		s->error = 0;
	return -error;
}

/* Return the place for the next bytes, or NULL if MSG_TRUNC is set: then nothing is copied, as in
 * tcp(7). */
static void *place_of(const struct iovec *iov, size_t offset, int flags)
{
	return flags & MSG_TRUNC ? NULL : (uint8_t *)iov->iov_base + offset;
}

static size_t peek(const struct rsocket *s, const struct iovec *iov, size_t count, int flags)
{
	size_t done = 0;

	for (size_t i = 0; i < count && done < s->in.ready; i++)
		done += rs_in_peek(&s->in, done, place_of(&iov[i], 0, flags), iov[i].iov_len);
	return done;
}

/* Move ready bytes into the vector, from its byte `skip` on. */
static size_t take(struct rsocket *s, const struct iovec *iov, size_t count, size_t skip, int flags)
{
	size_t done = 0;

	for (size_t i = 0; i < count; i++) {
		const size_t from = RTE_MIN(skip, iov[i].iov_len);

		skip -= from;
		done += rs_in_read(&s->in, place_of(&iov[i], from, flags), iov[i].iov_len - from);
	}
	rs_message_grant(s);
	return done;
}

static ssize_t recv_stream(struct rsocket *s, const struct iovec *iov, size_t count, size_t len,
			   int flags)
{
	const bool nonblock = rs_is_nonblock(s, flags);
	size_t done = 0;
	int rc = 0;

	if (rs_is_opening(s))
		rc = rs_connect_wait(s, nonblock, s->options.recv_timeout_ms);
	while (rc == 0 && done < len) {
		if (s->in.ready == 0)
			rc = rs_wait_for(s, rs_recv_is_ready, nonblock, s->options.recv_timeout_ms);
		if (rc != 0)
			break;
		if (s->in.ready == 0) {
			rc = done > 0 ? 0 : end_of_stream(s, flags);
			break;
		}
		if (flags & MSG_PEEK)
			return (ssize_t)peek(s, iov, count, flags);
		done += take(s, iov, count, done, flags);
		if (!(flags & MSG_WAITALL))
			break;
	}
	return done > 0 ? (ssize_t)done : rc;
}

static ssize_t recv_vector(int socket, struct msghdr *msg, int flags)
{
	struct rsocket *s = rs_table_get(socket);
	ssize_t rc;

	if (!s)
		return rs_result(-EBADF);
	rc = flags & RS_FLAGS_REFUSED ? -EOPNOTSUPP : rs_vector_len(msg->msg_iov, msg->msg_iovlen);
	if (rc >= 0) {
		pthread_mutex_lock(&s->lock);
		if (s->datagrams)
			rc = rs_datagram_recv(s, msg, flags);
		else
			rc = recv_stream(s, msg->msg_iov, msg->msg_iovlen, (size_t)rc, flags);
		pthread_mutex_unlock(&s->lock);
	}
	if (rc >= 0 && !s->datagrams && msg->msg_name)
		(void)rgetpeername(socket, msg->msg_name, &msg->msg_namelen);
	rs_table_put(s);
	return rs_result(rc);
}

ssize_t rrecvmsg(int socket, struct msghdr *msg, int flags)
{
	msg->msg_flags = 0;
	msg->msg_controllen = 0;
	return recv_vector(socket, msg, flags);
}

ssize_t rrecvfrom(int socket, void *buf, size_t len, int flags, struct sockaddr *src_addr,
		  socklen_t *addrlen)
{
	struct iovec iov = {.iov_base = buf, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t rc;

	if (src_addr && !addrlen)
		return rs_result(-EFAULT);
	if (src_addr) {
		msg.msg_name = src_addr;
		msg.msg_namelen = *addrlen;
	}
	rc = recv_vector(socket, &msg, flags);
	if (src_addr && rc >= 0)
		*addrlen = msg.msg_namelen;
	return rc;
}

ssize_t rrecv(int socket, void *buf, size_t len, int flags)
{
	return rrecvfrom(socket, buf, len, flags, NULL, NULL);
}

ssize_t rread(int socket, void *buf, size_t count)
{
	return rrecvfrom(socket, buf, count, 0, NULL, NULL);
}

ssize_t rreadv(int socket, const struct iovec *iov, int iovcnt)
{
	struct msghdr msg = {.msg_iov = (struct iovec *)(uintptr_t)iov};

	if (iovcnt < 0 || iovcnt > IOV_MAX)
		return rs_result(-EINVAL);
	msg.msg_iovlen = (size_t)iovcnt;
	return recv_vector(socket, &msg, 0);
}
