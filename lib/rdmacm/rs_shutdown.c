/* SPDX-License-Identifier: BSD-3-Clause */
/* Close one or both directions of a stream. */
#include "rs.h"

#define LINGER_MS 10000 /* longest wait for data in flight without SO_LINGER */

static bool can_tell(const struct rsocket *s)
{
	return s->out.control > 0 || s->state != RS_CONNECTED;
}

static bool is_sent(const struct rsocket *s)
{
	return s->state != RS_CONNECTED || rs_out_is_idle(&s->out);
}

/* Return true unless the peer's RTU, or its first message, is awaited. */
static bool is_accepted(const struct rsocket *s)
{
	return s->state != RS_ACCEPTED;
}

static int linger_ms(const struct rsocket *s)
{
	const struct linger *linger = &s->options.linger;

	if (!linger->l_onoff)
		return LINGER_MS;
	return linger->l_linger < INT_MAX / 1000 ? linger->l_linger * 1000 : -1;
}

/* Choose the control message for the peer. Return false if none is needed. */
static bool control_for(unsigned int before, unsigned int after, enum rs_control *control)
{
	if (rs_is_over(before) || !(after & RS_SHUT_WRITE))
		return false;
	*control = after & RS_SHUT_READ ? RS_CONTROL_DISCONNECT : RS_CONTROL_SHUTDOWN;
	return after & RS_SHUT_READ || !(before & RS_SHUT_WRITE);
}

/* Close directions of a connection. A direction is closed and the peer told of it in one step, with
 * the lock held: nothing may be sent between the two, and the connection may not end there. */
static int shut(struct rsocket *s, int how)
{
	const unsigned int bits =
		(how != SHUT_WR ? RS_SHUT_READ : 0) | (how != SHUT_RD ? RS_SHUT_WRITE : 0);
	enum rs_control control;
	unsigned int before;
	int rc = 0;

	if (control_for(s->shut, s->shut | bits, &control))
		rc = rs_wait_out(s, can_tell, linger_ms(s));
	before = s->shut;
	s->shut |= bits;
	rs_wait_changed(s);
	if (rc == 0 && control_for(before, s->shut, &control))
		(void)rs_message_control(s, control);
	if (!(s->shut & RS_SHUT_READ && s->shut & RS_SHUT_WRITE))
		return rc;
	/* Wait until all requests have completed: then all data has arrived. */
	if (rc == 0)
		rc = rs_wait_out(s, is_sent, linger_ms(s));
	rs_connect_end(s, 0);
	return rc;
}

int rs_shutdown_stream(struct rsocket *s, int how)
{
	int rc = 0;

	/* The program may not have taken the events of its connection yet. An accepted connection
	 * may send only after the peer's RTU. */
	if (rs_is_opening(s))
		rc = rs_wait_out(s, is_accepted, linger_ms(s));
	if (s->state != RS_CONNECTED)
		return -ENOTCONN;
	if (rc == 0)
		rc = shut(s, how);
	return rc == -EAGAIN ? 0 : rc;
}

int rshutdown(int socket, int how)
{
	struct rsocket *s = rs_table_lock(socket);
	int rc;

	if (!s)
		return id_result(-EBADF);
	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		rc = -EINVAL;
	else if (s->datagrams)
		rc = -EOPNOTSUPP;
	else if (s->state == RS_LISTENING) {
		rs_listen_end(s);
		rs_wait_changed(s);
		rc = 0;
	} else
		rc = rs_shutdown_stream(s, how);
	rs_table_unlock(s);
	return id_result(rc);
}
