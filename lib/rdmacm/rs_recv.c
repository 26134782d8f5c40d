/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive: the public calls, and copies out of a stream's ring. */
#include <limits.h>

#include "rs.h"
#include "rs_datagram.h"

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
