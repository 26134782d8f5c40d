/* SPDX-License-Identifier: BSD-3-Clause */
/* Bind and connect streams, handle the events of the connection manager, and close one or both
 * directions. */
#include <stdlib.h>
#include <string.h>

#include "rs.h"
#include "rs_datagram.h"

#define RESOLVE_MS 3000 /* as long as Linux tries to resolve a neighbour */
#define RETRIES	   7

void rs_connect_end(struct rsocket *s, int error)
{
	if (s->state == RS_ENDED)
		return;
	s->state = RS_ENDED;
	s->error = error;
	rs_wait_changed(s);
}

void rs_connect_done(struct rsocket *s)
{
	s->state = RS_CONNECTED;
	(void)rs_keepalive_set(s);
	rs_wait_changed(s);
}

/* Create the queues and send the REQ. Both addresses and the device are known. */
static int ask_peer(struct rsocket *s)
{
	struct rs_hello_wire hello;
	struct rdma_conn_param param = {
		.private_data = &hello,
		.private_data_len = sizeof(hello),
		.flow_control = 1,
		.retry_count = RETRIES,
		.rnr_retry_count = RETRIES,
	};
	const int rc = rs_link_create(s);

	if (rc != 0)
		return rc;
	s->state = RS_CONNECTING;
	rs_link_say_hello(s, &hello);
	return rdma_connect(s->id, &param) == 0 ? 0 : -errno;
}

static int rs_resolve_route(struct rsocket *s)
{
	s->state = RS_ROUTE;
	if (!s->route)
		return rdma_resolve_route(s->id, RESOLVE_MS) == 0 ? 0 : -errno;
	if (rdma_set_option(s->id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, s->route, s->route_len) !=
	    0)
		return -errno;
	return ask_peer(s);
}

static int finish(struct rsocket *s, const struct rdma_cm_event *event)
{
	if (s->state == RS_CONNECTING) {
		const int rc = rs_link_take_hello(s, event->param.conn.private_data,
						  event->param.conn.private_data_len);

		if (rc != 0)
			return rc;
	} else if (s->state != RS_ACCEPTED) {
		return 0;
	}
	rs_connect_done(s);
	return 0;
}

/* Convert an event to a socket error. A peer that closes while its acceptance or ours is under way
 * rejects what it had agreed to: TCP's peer resets. */
static int error_of(const struct rsocket *s, const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_REJECTED:
		return s->state == RS_CONNECTING ? ECONNREFUSED : ECONNRESET;
	case RDMA_CM_EVENT_UNREACHABLE:
		return ETIMEDOUT;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return ENETDOWN;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		/* The peer has accepted, and has closed before our RTU. */
		return event->status == -EINVAL ? ECONNRESET : abs(event->status);
	default:
		return event->status == -ETIMEDOUT ? EHOSTUNREACH : abs(event->status);
	}
}

/* End the connection after a DREQ. The peer's last messages came before its DREQ, so take them
 * first. */
static void take_disconnect(struct rsocket *s)
{
	if (s->link.qp)
		rs_message_poll(s);
	rs_connect_end(s, s->shut & RS_SHUT_PEER ? 0 : ECONNRESET);
}

static void take_event(struct rsocket *s, const struct rdma_cm_event *event)
{
	int rc = 0;

	if (s->state == RS_ENDED)
		return;
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		rc = rs_resolve_route(s);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		/* Ignore the event if the program has set a route: the REQ is already sent. */
		rc = s->state == RS_ROUTE ? ask_peer(s) : 0;
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		rc = finish(s, event);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		take_disconnect(s);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		rc = -error_of(s, event);
		break;
	default:
		break;
	}
	if (rc != 0)
		rs_connect_end(s, -rc);
}

void rs_connect_take_events(struct rsocket *s)
{
	struct rdma_cm_event *event;

	while (rdma_get_cm_event(s->channel, &event) == 0) {
		take_event(s, event);
		rdma_ack_cm_event(event);
	}
}

static bool is_decided(const struct rsocket *s)
{
	return !rs_is_opening(s);
}

int rs_connect_wait(struct rsocket *s, bool nonblock, int timeout_ms)
{
	return rs_wait_for(s, is_decided, nonblock, timeout_ms);
}

/* Return the result of connecting. */
static int outcome(struct rsocket *s)
{
	const int error = s->error;

	if (s->state == RS_CONNECTED)
		return 0;
	s->error = 0;
	return error ? -error : -ENOTCONN;
}

static int check_address(const struct rsocket *s, const struct sockaddr *addr, socklen_t len)
{
	if (!addr)
		return -EFAULT;
	if (len < sizeof(addr->sa_family) || address_len(addr) == 0 || addr->sa_family != s->domain)
		return -EAFNOSUPPORT;
	return len < address_len(addr) ? -EINVAL : 0;
}

static int start(struct rsocket *s, const struct sockaddr *addr)
{
	struct sockaddr_storage dst = {0};
	int rc;

	memcpy(&dst, addr, address_len(addr));
	s->state = RS_ADDRESS;
	if (rdma_resolve_addr(s->id, NULL, (struct sockaddr *)&dst, RESOLVE_MS) == 0)
		return 0;
	rc = -errno;
	rs_connect_end(s, 0);
	return rc;
}

static int connect_stream(struct rsocket *s, const struct sockaddr *addr)
{
	int rc;

	if (rs_is_opening(s))
		return -EALREADY;
	if (s->state == RS_CONNECTED || s->state == RS_LISTENING)
		return -EISCONN;
	if (s->state == RS_ENDED)
		return outcome(s);
	rc = start(s, addr);
	if (rc == 0)
		rc = rs_connect_wait(s, rs_is_nonblock(s, 0), s->options.send_timeout_ms);
	if (rc == -EAGAIN)
		return -EINPROGRESS;
	return rc == 0 ? outcome(s) : rc;
}

static int bind_stream(struct rsocket *s, const struct sockaddr *addr)
{
	struct sockaddr_storage src = {0};

	if (s->state != RS_IDLE)
		return -EINVAL;
	memcpy(&src, addr, address_len(addr));
	if (rdma_bind_addr(s->id, (struct sockaddr *)&src) != 0)
		return -errno;
	s->state = RS_BOUND;
	return 0;
}

/* Do rbind or rconnect, of a datagram rsocket or of a stream. */
static int call_with_address(int socket, const struct sockaddr *addr, socklen_t addrlen,
			     int (*datagram)(struct rsocket *s, const struct sockaddr *addr,
					     socklen_t len),
			     int (*stream)(struct rsocket *s, const struct sockaddr *addr))
{
	struct rsocket *s = rs_table_lock(socket);
	int rc;

	if (!s)
		return id_result(-EBADF);
	rc = check_address(s, addr, addrlen);
	if (rc == 0)
		rc = s->datagrams ? datagram(s, addr, addrlen) : stream(s, addr);
	rs_table_unlock(s);
	return id_result(rc);
}

int rconnect(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	return call_with_address(socket, addr, addrlen, rs_datagram_connect, connect_stream);
}

int rbind(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	return call_with_address(socket, addr, addrlen, rs_datagram_bind, bind_stream);
}

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
