/* SPDX-License-Identifier: BSD-3-Clause */
/* Get options of an rsocket. */
#include <netinet/tcp.h>
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
