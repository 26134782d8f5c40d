/* SPDX-License-Identifier: BSD-3-Clause */
/* Close one or both directions of a stream. */
#include "rs.h"

#define LINGER_MS 10000 /* longest wait for data in flight without SO_LINGER */

static bool can_tell(const struct rsocket *s)
{
	return s->out.control > 0 || s->state != RS_CONNECTED;
}

static bool is_idle(const struct rsocket *s)
{
	return s->state != RS_CONNECTED ||
	       (s->out.control == RS_CONTROL_SLOTS &&
		s->out.slots + RS_CONTROL_SLOTS == s->link.send_requests);
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
	const unsigned int unread = after & (RS_SHUT_READ | RS_SHUT_PEER);

	if (after & RS_SHUT_WRITE && unread) {
		*control = RS_CONTROL_DISCONNECT;
		return true;
	}
	*control = RS_CONTROL_SHUTDOWN;
	return (after & RS_SHUT_WRITE) && !(before & RS_SHUT_WRITE);
}

int rs_shutdown_stream(struct rsocket *s, int how)
{
	const unsigned int before = s->shut;
	enum rs_control control;
	int rc;

	if (s->state != RS_CONNECTED)
		return -ENOTCONN;
	if (how != SHUT_WR)
		s->shut |= RS_SHUT_READ;
	if (how != SHUT_RD)
		s->shut |= RS_SHUT_WRITE;
	rs_wait_changed(s);
	if (!control_for(before, s->shut, &control))
		return 0;
	rc = rs_wait_out(s, can_tell, linger_ms(s));
	if (rc == 0)
		(void)rs_message_control(s, control);
	/* Wait until all requests have completed: then all data has arrived. */
	if (rc == 0 && control == RS_CONTROL_DISCONNECT)
		rc = rs_wait_out(s, is_idle, linger_ms(s));
	if (control == RS_CONTROL_DISCONNECT)
		rs_connect_end(s, 0);
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
