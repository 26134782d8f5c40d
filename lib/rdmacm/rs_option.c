/* SPDX-License-Identifier: BSD-3-Clause */
/* Options and flags of an rsocket, and their defaults, which the administrator can configure: one
 * number per file, as in rsocket(7). */
#include <fcntl.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include <infiniband/sa.h>

#include "rs.h"
#include "rs_datagram.h"

#define MTU_SHIFT 7 /* of enum ibv_mtu, to bytes */

static int give(void *value, socklen_t *len, const void *from, size_t size)
{
	*len = (socklen_t)RTE_MIN((size_t)*len, size);
	memcpy(value, from, *len);
	return 0;
}

static int give_int(void *value, socklen_t *len, int number)
{
	return give(value, len, &number, sizeof(number));
}

static int give_timeout(void *value, socklen_t *len, int timeout_ms)
{
	const int ms = RTE_MAX(timeout_ms, 0);
	const struct timeval time = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

	return give(value, len, &time, sizeof(time));
}

static int take_error(struct rsocket *s)
{
	const int error = s->error;

	s->error = 0;
	return error;
}

static int get_socket(struct rsocket *s, int name, void *value, socklen_t *len)
{
	switch (name) {
	case SO_ERROR:
		return give_int(value, len, take_error(s));
	case SO_TYPE:
		return give_int(value, len, s->type);
	case SO_DOMAIN:
		return give_int(value, len, s->domain);
	case SO_PROTOCOL:
		return give_int(value, len, s->datagrams ? IPPROTO_UDP : IPPROTO_TCP);
	case SO_ACCEPTCONN:
		return give_int(value, len, s->state == RS_LISTENING);
	case SO_RCVBUF:
		return give_int(value, len, (int)s->options.recv_bytes);
	case SO_SNDBUF:
		return give_int(value, len, (int)s->options.send_bytes);
	case SO_RCVTIMEO:
		return give_timeout(value, len, s->options.recv_timeout_ms);
	case SO_SNDTIMEO:
		return give_timeout(value, len, s->options.send_timeout_ms);
	case SO_LINGER:
		return give(value, len, &s->options.linger, sizeof(s->options.linger));
	default:
		return -ENOPROTOOPT;
	}
}

static int mtu_of(const struct rsocket *s)
{
	const struct rdma_route *route = s->id ? &s->id->route : NULL;

	return route && route->num_paths > 0 ? 1 << (MTU_SHIFT + route->path_rec->mtu) : 1024;
}

static int give_info(const struct rsocket *s, void *value, socklen_t *len)
{
	const uint32_t mtu = (uint32_t)mtu_of(s);
	const struct tcp_info info = {
		.tcpi_state = s->state == RS_CONNECTED	 ? TCP_ESTABLISHED
			      : s->state == RS_LISTENING ? TCP_LISTEN
							 : TCP_CLOSE,
		.tcpi_snd_mss = mtu,
		.tcpi_rcv_mss = mtu,
		.tcpi_pmtu = mtu,
		.tcpi_snd_cwnd = s->options.send_requests,
		.tcpi_unacked = s->out.used / mtu,
	};

	return give(value, len, &info, sizeof(info));
}

static int get_tcp(struct rsocket *s, int name, void *value, socklen_t *len)
{
	static const char congestion[] = "rdma";

	switch (name) {
	case TCP_MAXSEG:
		return give_int(value, len, mtu_of(s));
	case TCP_INFO:
		return give_info(s, value, len);
	case TCP_CONGESTION:
		return give(value, len, congestion, sizeof(congestion));
	default:
		return -ENOPROTOOPT;
	}
}

/* Convert a path record to the format of the interface between programs and librdmacm. */
static void fill_path(const struct ibv_sa_path_rec *rec, struct ibv_path_data *data)
{
	const uint8_t exactly = 2 << 6;

	*data = (struct ibv_path_data){
		.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL,
		.path = {.dgid = rec->dgid,
			 .sgid = rec->sgid,
			 .flowlabel_hoplimit = rte_cpu_to_be_32(
				 rte_be_to_cpu_32(rec->flow_label) << 8 | rec->hop_limit),
			 .tclass = rec->traffic_class,
			 .reversible_numpath = (uint8_t)(rec->reversible << 7 | 1),
			 .pkey = rec->pkey,
			 .qosclass_sl = rte_cpu_to_be_16(rec->sl),
			 .mtu = exactly | rec->mtu,
			 .rate = exactly | rec->rate,
			 .packetlifetime = exactly | rec->packet_life_time},
	};
}

static int get_route(const struct rsocket *s, void *value, socklen_t *len)
{
	const struct rdma_route *route = &s->id->route;
	struct ibv_path_data data;

	if (s->route)
		return *len < s->route_len ? -EINVAL : give(value, len, s->route, s->route_len);
	if (*len < sizeof(data))
		return -EINVAL;
	if (route->num_paths == 0) {
		*len = 0;
		return 0;
	}
	fill_path(route->path_rec, &data);
	return give(value, len, &data, sizeof(data));
}

static int get_rdma(const struct rsocket *s, int name, void *value, socklen_t *len)
{
	switch (name) {
	case RDMA_SQSIZE:
		return give_int(value, len, s->options.send_requests);
	case RDMA_RQSIZE:
		return give_int(value, len, s->options.recv_requests);
	case RDMA_INLINE:
		return give_int(value, len, s->options.inline_bytes);
	case RDMA_IOMAPSIZE:
		return give_int(value, len, s->options.iomaps);
	case RDMA_ROUTE:
		return s->id ? get_route(s, value, len) : -ENOPROTOOPT;
	default:
		return -ENOPROTOOPT;
	}
}

static int get_option(struct rsocket *s, int level, int name, void *value, socklen_t *len)
{
	const int *option = rs_option_find(s, level, name);

	if (!value || !len)
		return -EFAULT;
	if (option)
		return give_int(value, len, *option);
	switch (level) {
	case SOL_SOCKET:
		return get_socket(s, name, value, len);
	case IPPROTO_TCP:
		return get_tcp(s, name, value, len);
	case SOL_RDMA:
		return get_rdma(s, name, value, len);
	default:
		return -ENOPROTOOPT;
	}
}

int rgetsockopt(int socket, int level, int optname, void *optval, socklen_t *optlen)
{
	struct rsocket *s = rs_table_lock(socket);
	int rc;

	if (!s)
		return id_result(-EBADF);
	rs_wait_progress(s);
	if (s->datagrams && rs_datagram_has_option(level, optname))
		rc = rs_datagram_get_option(s, level, optname, optval, optlen);
	else
		rc = get_option(s, level, optname, optval, optlen);
	rs_table_unlock(s);
	return id_result(rc);
}

#define FOLDER "/etc/rdma/rsocket/"

struct value {
	const char *file;
	unsigned int value; /* the default if the file does not exist */
	unsigned int min;
	unsigned int max;
};

enum {
	VALUE_SEND_BYTES,
	VALUE_RECV_BYTES,
	VALUE_SEND_REQUESTS,
	VALUE_RECV_REQUESTS,
	VALUE_INLINE,
	VALUE_IOMAPS,
	VALUE_SPIN,
	VALUES,
};

static struct value values[VALUES] = {
	[VALUE_SEND_BYTES] = {FOLDER "wmem_default", 1 << 17, 2 * RS_OUT_LOW, RS_BUFFER_MAX},
	[VALUE_RECV_BYTES] = {FOLDER "mem_default", 1 << 17, 2, RS_BUFFER_MAX},
	[VALUE_SEND_REQUESTS] = {FOLDER "sqsize_default", 384, RS_QUEUE_MIN, RS_QUEUE_MAX},
	[VALUE_RECV_REQUESTS] = {FOLDER "rqsize_default", 384, RS_QUEUE_MIN, RS_QUEUE_MAX},
	[VALUE_INLINE] = {FOLDER "inline_default", 64, 0, RS_QUEUE_MAX},
	[VALUE_IOMAPS] = {FOLDER "iomap_size", 0, 0, RS_QUEUE_MAX},
	[VALUE_SPIN] = {FOLDER "polling_time", 10, 0, INT_MAX},
};

static void read_value(struct value *value)
{
	FILE *file = fopen(value->file, "re");
	unsigned int number;

	if (!file)
		return;
	if (fscanf(file, "%u", &number) == 1)
		value->value = RTE_MAX(value->min, RTE_MIN(number, value->max));
	fclose(file);
}

static void read_all(void)
{
	for (size_t i = 0; i < VALUES; i++)
		read_value(&values[i]);
}

void rs_config_get(struct rs_options *options)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_all);
	*options = (struct rs_options){
		.send_bytes = values[VALUE_SEND_BYTES].value,
		.recv_bytes = values[VALUE_RECV_BYTES].value,
		.send_requests = (uint16_t)values[VALUE_SEND_REQUESTS].value,
		.recv_requests = (uint16_t)values[VALUE_RECV_REQUESTS].value,
		.inline_bytes = (uint16_t)values[VALUE_INLINE].value,
		.iomaps = rs_wire_unscale(rs_wire_scale((uint16_t)values[VALUE_IOMAPS].value)),
		.spin_us = values[VALUE_SPIN].value,
		.send_timeout_ms = -1,
		.recv_timeout_ms = -1,
	};
}

#define ROUTE_MAX 4096 /* bytes */

/*
 * Options of TCP whose values are kept, and that have no effect here. Data is always sent at once,
 * and the transport of the queue pair decides when a peer is lost. A program that sets them works
 * as well without them.
 */
static const struct {
	int level;
	int name;
	int initial; /* as in Linux */
	int min;
	int max;
} kept[RS_KEPT] = {
	{SOL_SOCKET, SO_OOBINLINE, 0, INT_MIN, INT_MAX},
	{SOL_SOCKET, SO_BROADCAST, 0, INT_MIN, INT_MAX},
	{SOL_SOCKET, SO_PRIORITY, 0, 0, INT_MAX},
	{SOL_SOCKET, SO_REUSEPORT, 0, INT_MIN, INT_MAX},
	{IPPROTO_TCP, TCP_NODELAY, 0, INT_MIN, INT_MAX},
	{IPPROTO_TCP, TCP_CORK, 0, INT_MIN, INT_MAX},
	{IPPROTO_TCP, TCP_QUICKACK, 1, INT_MIN, INT_MAX},
	{IPPROTO_TCP, TCP_DEFER_ACCEPT, 0, INT_MIN, INT_MAX},
	{IPPROTO_TCP, TCP_USER_TIMEOUT, 0, 0, INT_MAX},
	{IPPROTO_TCP, TCP_KEEPCNT, 9, 1, 127},
	{IPPROTO_TCP, TCP_KEEPINTVL, 75, 1, 32767},
};

void rs_option_init(struct rs_options *options)
{
	for (size_t i = 0; i < RS_KEPT; i++)
		options->kept[i] = kept[i].initial;
}

/* Return the index of an option that is kept, or less than 0. */
static int find_kept(int level, int name)
{
	for (int i = 0; i < RS_KEPT; i++) {
		if (kept[i].level == level && kept[i].name == name)
			return i;
	}
	return -1;
}

int *rs_option_find(struct rsocket *s, int level, int name)
{
	struct rs_options *options = &s->options;
	const int index = find_kept(level, name);

	if (index >= 0)
		return &options->kept[index];
	if (level == SOL_SOCKET && name == SO_REUSEADDR)
		return &options->reuse_address;
	if (level == SOL_SOCKET && name == SO_KEEPALIVE)
		return &options->keepalive;
	if (level == IPPROTO_TCP && name == TCP_KEEPIDLE)
		return &options->keepalive_s;
	if (level == IPPROTO_IPV6 && name == IPV6_V6ONLY)
		return &options->ipv6_only;
	if ((level == IPPROTO_IP && name == IP_TOS) ||
	    (level == IPPROTO_IPV6 && name == IPV6_TCLASS))
		return &options->tos;
	return NULL;
}

static int set_id_option(struct rsocket *s, int name, int value)
{
	uint8_t tos = (uint8_t)value;

	if (name == RDMA_OPTION_ID_TOS)
		return rdma_set_option(s->id, RDMA_OPTION_ID, name, &tos, sizeof(tos)) == 0
			       ? 0
			       : -errno;
	return rdma_set_option(s->id, RDMA_OPTION_ID, name, &value, sizeof(value)) == 0 ? 0
											: -errno;
}

/* Pass an option to the id or the keepalive timer, if storing its value is not enough. */
static int apply(struct rsocket *s, const int *option, int value)
{
	struct rs_options *options = &s->options;

	if (option == &options->reuse_address)
		/* The option has no effect once the port is bound. */
		return s->state == RS_IDLE ? set_id_option(s, RDMA_OPTION_ID_REUSEADDR, value) : 0;
	if (option == &options->ipv6_only)
		return set_id_option(s, RDMA_OPTION_ID_AFONLY, value);
	if (option == &options->tos)
		return set_id_option(s, RDMA_OPTION_ID_TOS, value);
	if (option == &options->keepalive || option == &options->keepalive_s)
		return rs_keepalive_set(s);
	return 0;
}

/* Return true if an option may have this value. */
static bool is_valid(int level, int name, int value)
{
	const int index = find_kept(level, name);

	if (level == IPPROTO_TCP && name == TCP_KEEPIDLE)
		return value > 0;
	return index < 0 || (value >= kept[index].min && value <= kept[index].max);
}

static int set_int(struct rsocket *s, int level, int name, int value)
{
	int *option = rs_option_find(s, level, name);
	const int before = option ? *option : 0;
	int rc;

	if (!option)
		return -ENOPROTOOPT;
	if (!is_valid(level, name, value))
		return -EINVAL;
	*option = value;
	rc = apply(s, option, value);
	if (rc != 0)
		*option = before;
	return rc;
}

/* Double the program's value, as Linux does. */
static void set_bytes(uint32_t *bytes, int value, uint32_t min)
{
	const uint32_t asked = value > 0 ? (uint32_t)value : 0;

	*bytes = RTE_MAX(min, 2 * RTE_MIN(asked, RS_BUFFER_MAX / 2));
}

static uint16_t queue_size(int value)
{
	return (uint16_t)RTE_MAX(RS_QUEUE_MIN, RTE_MIN(value, RS_QUEUE_MAX));
}

static int set_route(struct rsocket *s, const void *value, socklen_t len)
{
	void *route;

	if (len == 0 || len > ROUTE_MAX)
		return -EINVAL;
	route = malloc(len);
	if (!route)
		return -ENOMEM;
	memcpy(route, value, len);
	free(s->route);
	s->route = route;
	s->route_len = len;
	return 0;
}

static int set_rdma(struct rsocket *s, int name, int value)
{
	struct rs_options *options = &s->options;

	switch (name) {
	case RDMA_SQSIZE:
		options->send_requests = queue_size(value);
		return 0;
	case RDMA_RQSIZE:
		options->recv_requests = queue_size(value);
		return 0;
	case RDMA_INLINE:
		options->inline_bytes = (uint16_t)RTE_MAX(0, RTE_MIN(value, RS_QUEUE_MAX));
		return 0;
	case RDMA_IOMAPSIZE:
		value = RTE_MAX(0, RTE_MIN(value, RS_QUEUE_MAX));
		options->iomaps = rs_wire_unscale(rs_wire_scale((uint16_t)value));
		return 0;
	default:
		return -ENOPROTOOPT;
	}
}

/* A negative time means not to wait, and zero to wait for ever, as for Linux's sockets. */
static int set_timeout(int *timeout_ms, const void *value, socklen_t len)
{
	struct timeval time;

	if (len < sizeof(time))
		return -EINVAL;
	memcpy(&time, value, sizeof(time));
	if (time.tv_usec < 0 || time.tv_usec >= 1000000)
		return -EDOM;
	if (time.tv_sec < 0)
		*timeout_ms = 0;
	else if (time.tv_sec > INT_MAX / 1000 - 1 || (time.tv_sec == 0 && time.tv_usec == 0))
		*timeout_ms = -1;
	else
		*timeout_ms = (int)(time.tv_sec * 1000 + (time.tv_usec + 999) / 1000);
	return 0;
}

static int set_socket(struct rsocket *s, int name, const void *value, socklen_t len, int number)
{
	switch (name) {
	case SO_RCVBUF:
		if (!s->link.ring)
			set_bytes(&s->options.recv_bytes, number, 2 * RS_OUT_LOW);
		return 0;
	case SO_SNDBUF:
		if (!s->link.buffer)
			set_bytes(&s->options.send_bytes, number, 2 * RS_OUT_LOW);
		return 0;
	case SO_RCVTIMEO:
		return set_timeout(&s->options.recv_timeout_ms, value, len);
	case SO_SNDTIMEO:
		return set_timeout(&s->options.send_timeout_ms, value, len);
	case SO_LINGER:
		if (len < sizeof(s->options.linger))
			return -EINVAL;
		memcpy(&s->options.linger, value, sizeof(s->options.linger));
		return 0;
	default:
		return set_int(s, SOL_SOCKET, name, number);
	}
}

/* Return true for options of TCP that have no effect, because the queue pair's transport decides.
 */
static bool has_no_effect(int level, int name)
{
	return level == IPPROTO_TCP && (name == TCP_MAXSEG || name == TCP_CONGESTION);
}

/* Return true if the queues exist: their sizes cannot change any more. */
static bool has_queues(const struct rsocket *s)
{
	if (s->datagrams)
		return !LIST_EMPTY(&s->datagrams->pairs);
	return s->state > RS_LISTENING;
}

static int set_option(struct rsocket *s, int level, int name, const void *value, socklen_t len)
{
	int number = 0;

	if (!value)
		return -EFAULT;
	if (has_no_effect(level, name))
		return 0;
	if (level == SOL_RDMA && has_queues(s))
		return -EINVAL;
	if (level == SOL_RDMA && name == RDMA_ROUTE)
		return set_route(s, value, len);
	if (len < sizeof(number))
		return -EINVAL;
	memcpy(&number, value, sizeof(number));
	if (level == SOL_RDMA)
		return set_rdma(s, name, number);
	if (level == SOL_SOCKET)
		return set_socket(s, name, value, len, number);
	return set_int(s, level, name, number);
}

int rsetsockopt(int socket, int level, int optname, const void *optval, socklen_t optlen)
{
	struct rsocket *s = rs_table_lock(socket);
	int rc;

	if (!s)
		return id_result(-EBADF);
	if (s->datagrams && rs_datagram_has_option(level, optname))
		rc = rs_datagram_set_option(s, level, optname, optval, optlen);
	else
		rc = set_option(s, level, optname, optval, optlen);
	rs_table_unlock(s);
	return id_result(rc);
}

static int control(struct rsocket *s, int cmd, int arg)
{
	switch (cmd) {
	case F_GETFL:
		return O_RDWR | s->flags;
	case F_SETFL:
		s->flags = arg & O_NONBLOCK;
		return 0;
	case F_GETFD:
	case F_SETFD:
		arg = fcntl(s->fd, cmd, arg);
		return arg >= 0 ? arg : -errno;
	default:
		return -EINVAL;
	}
}

int rfcntl(int socket, int cmd, ...)
{
	struct rsocket *s = rs_table_lock(socket);
	int arg = 0;
	va_list args;
	int rc;

	if (!s)
		return id_result(-EBADF);
	va_start(args, cmd);
	if (cmd == F_SETFL || cmd == F_SETFD)
		arg = va_arg(args, int);
	va_end(args);
	rc = control(s, cmd, arg);
	rs_table_unlock(s);
	return (int)rs_result(rc);
}
