/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that is compiled with the headers of rdma-core 65, and makes the calls that came after
 * release 44. What uroce copies from these headers is compared with them.
 */
#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>

#include "base/verbs_later.h"
#include "queue/comp_cntr.h"
#include "rdmacm/later.h"
#include "verbs/later.h"

#define SAME_SIZE(ours, theirs) \
	static_assert(sizeof(struct ours) == sizeof(struct theirs), "another size")
#define SAME(ours, theirs, member)                                                        \
	static_assert(offsetof(struct ours, member) == offsetof(struct theirs, member) && \
			      sizeof(((struct ours *)0)->member) ==                       \
				      sizeof(((struct theirs *)0)->member),               \
		      "another place")
#define EQUAL(ours, theirs) static_assert((int)(ours) == (int)(theirs), "another number")

SAME_SIZE(later_mr_init_attr, ibv_mr_init_attr);
SAME(later_mr_init_attr, ibv_mr_init_attr, access);
SAME(later_mr_init_attr, ibv_mr_init_attr, comp_mask);
SAME(later_mr_init_attr, ibv_mr_init_attr, iova);
SAME(later_mr_init_attr, ibv_mr_init_attr, addr);
SAME(later_mr_init_attr, ibv_mr_init_attr, fd);
SAME(later_mr_init_attr, ibv_mr_init_attr, fd_offset);
SAME(later_mr_init_attr, ibv_mr_init_attr, dmah);
SAME(later_mr_init_attr, ibv_mr_init_attr, buf);
EQUAL(LATER_REG_MR_IOVA, IBV_REG_MR_MASK_IOVA);
EQUAL(LATER_REG_MR_ADDR, IBV_REG_MR_MASK_ADDR);
EQUAL(LATER_REG_MR_FD, IBV_REG_MR_MASK_FD);
EQUAL(LATER_REG_MR_FD_OFFSET, IBV_REG_MR_MASK_FD_OFFSET);
EQUAL(LATER_REG_MR_DMAH, IBV_REG_MR_MASK_DMAH);
EQUAL(LATER_REG_MR_BUF, IBV_REG_MR_MASK_BUF);

SAME_SIZE(later_comp_cntr_caps, ibv_comp_cntr_caps);
SAME(later_comp_cntr_caps, ibv_comp_cntr_caps, max_counters);
SAME(later_comp_cntr_caps, ibv_comp_cntr_caps, supported_qp_attach_ops);
SAME_SIZE(later_comp_cntr, ibv_comp_cntr);
SAME(later_comp_cntr, ibv_comp_cntr, handle);
SAME_SIZE(later_comp_cntr_init_attr, ibv_comp_cntr_init_attr);
SAME(later_comp_cntr_init_attr, ibv_comp_cntr_init_attr, type);
SAME(later_comp_cntr_init_attr, ibv_comp_cntr_init_attr, flags);
SAME_SIZE(later_qp_attach_comp_cntr_attr, ibv_qp_attach_comp_cntr_attr);
SAME(later_qp_attach_comp_cntr_attr, ibv_qp_attach_comp_cntr_attr, op_mask);
EQUAL(LATER_COMP_CNTR_WRS, IBV_COMP_CNTR_TYPE_WRS);
EQUAL(LATER_COMP_CNTR_BYTES, IBV_COMP_CNTR_TYPE_BYTES);
EQUAL(1 << COMP_CNTR_SEND, IBV_QP_ATTACH_COMP_CNTR_OP_SEND);
EQUAL(1 << COMP_CNTR_RECV, IBV_QP_ATTACH_COMP_CNTR_OP_RECV);
EQUAL(1 << COMP_CNTR_RDMA_READ, IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_READ);
EQUAL(1 << COMP_CNTR_REMOTE_RDMA_READ, IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_READ);
EQUAL(1 << COMP_CNTR_RDMA_WRITE, IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_WRITE);
EQUAL(1 << COMP_CNTR_REMOTE_RDMA_WRITE, IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_WRITE);

static_assert(offsetof(struct ibv_qp_ex, wr_flush) == LATER_QP_EX_OFF, "another place");
static_assert(sizeof(struct ibv_qp_ex) == LATER_QP_EX_OFF + sizeof(struct later_qp_ex),
	      "it has further fields");
EQUAL(LATER_ACCESS_FLUSH_GLOBAL, IBV_ACCESS_FLUSH_GLOBAL);
EQUAL(LATER_ACCESS_FLUSH_PERSISTENT, IBV_ACCESS_FLUSH_PERSISTENT);
EQUAL(LATER_WR_FLUSH, IBV_WR_FLUSH);
EQUAL(LATER_WC_FLUSH, IBV_WC_FLUSH);
EQUAL(LATER_QP_EX_WITH_FLUSH, IBV_QP_EX_WITH_FLUSH);
static_assert(LATER_DEVICE_FLUSH_GLOBAL == IB_UVERBS_DEVICE_FLUSH_GLOBAL, "another number");
static_assert(LATER_DEVICE_ATOMIC_WRITE == IB_UVERBS_DEVICE_ATOMIC_WRITE, "another number");

EQUAL(LATER_EVENT_ADDRINFO_RESOLVED, RDMA_CM_EVENT_ADDRINFO_RESOLVED);
EQUAL(LATER_EVENT_ADDRINFO_ERROR, RDMA_CM_EVENT_ADDRINFO_ERROR);
EQUAL(LATER_EVENT_USER, RDMA_CM_EVENT_USER);
EQUAL(LATER_EVENT_INTERNAL, RDMA_CM_EVENT_INTERNAL);
EQUAL(LATER_RAI_SA, RAI_SA);
EQUAL(LATER_RAI_DNS, RAI_DNS);

#define MUST(what)                                                                 \
	do {                                                                       \
		if (!(what)) {                                                     \
			printf("line %d: %s: errno %d\n", __LINE__, #what, errno); \
			exit(1);                                                   \
		}                                                                  \
	} while (0)

#define BYTES 8192
#define GID   1 /* IPv4 */

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp[2]; /* connected with each other */
static struct ibv_comp_cntr *sent, *written;

static struct ibv_qp *create(struct ibv_comp_cntr *cntr, uint32_t ops)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		.pd = pd,
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_FLUSH,
	};
	struct ibv_qp_attach_comp_cntr_attr attach = {.op_mask = ops};
	struct ibv_qp *new = ibv_create_qp_ex(context, &attr);

	MUST(new &&ibv_qp_attach_comp_cntr(new, cntr, &attach) == 0);
	MUST(ibv_qp_attach_comp_cntr(new, cntr, &attach) == EBUSY);
	return new;
}

static void connect_to(struct ibv_qp *from, uint32_t dest_qpn)
{
	struct ibv_qp_attr attr = {
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_FLUSH_GLOBAL,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest_qpn,
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.sgid_index = GID, .hop_limit = 64}},
	};

	MUST(ibv_query_gid(context, 1, GID, &attr.ah_attr.grh.dgid) == 0);
	attr.qp_state = IBV_QPS_INIT;
	MUST(ibv_modify_qp(from, &attr,
			   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ==
	     0);
	attr.qp_state = IBV_QPS_RTR;
	MUST(ibv_modify_qp(from, &attr,
			   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				   IBV_QP_MIN_RNR_TIMER) == 0);
	attr.qp_state = IBV_QPS_RTS;
	MUST(ibv_modify_qp(from, &attr,
			   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				   IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

static struct ibv_comp_cntr *create_cntr(enum ibv_comp_cntr_type type)
{
	struct ibv_comp_cntr_init_attr attr = {.type = type};
	struct ibv_comp_cntr *cntr = ibv_create_comp_cntr(context, &attr);

	MUST(cntr);
	return cntr;
}

static uint64_t count(struct ibv_comp_cntr *cntr)
{
	uint64_t value;

	MUST(ibv_read_comp_cntr(cntr, &value) == 0);
	return value;
}

static void open_all(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	MUST(list && list[0] && (context = ibv_open_device(list[0])));
	ibv_free_device_list(list);
	MUST((pd = ibv_alloc_pd(context)) && (cq = ibv_create_cq(context, 16, NULL, NULL, 0)));
	sent = create_cntr(IBV_COMP_CNTR_TYPE_WRS);
	written = create_cntr(IBV_COMP_CNTR_TYPE_BYTES);
	qp[0] = create(sent, IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_WRITE);
	qp[1] = create(written, IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_WRITE);
	connect_to(qp[0], qp[1]->qp_num);
	connect_to(qp[1], qp[0]->qp_num);
}

/* Allocate a buffer, register it in both ways, WRITE from its first half into the second one,
 * FLUSH, and read the counters. */
static void write_and_flush(void)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp[0]);
	struct ibv_buf *buf;
	char *base = ibv_alloc_buf(pd, BYTES, &buf);
	struct ibv_mr_init_attr attr = {
		.length = BYTES,
		.access =
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_FLUSH_GLOBAL,
		.comp_mask = IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_BUF | IBV_REG_MR_MASK_IOVA,
		.iova = BYTES,
		.addr = base,
		.buf = buf,
	};
	struct ibv_mr *target = ibv_reg_mr_ex(pd, &attr), *source;
	struct ibv_wc wc;
	uint64_t errors;
	int got;

	MUST(base && target);
	MUST((source = ibv_reg_buf_mr(pd, buf, base, BYTES / 2, 0)));
	MUST(ibv_export_buf_dmabuf_fd(buf) == -1 && errno == ENODATA);
	memset(base, 7, BYTES / 2);
	ibv_wr_start(ex);
	ex->wr_id = 1;
	ibv_wr_rdma_write(ex, target->rkey, BYTES + BYTES / 2);
	ibv_wr_set_sge(ex, source->lkey, (uintptr_t)base, BYTES / 2);
	ex->wr_id = 2;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_flush(ex, target->rkey, BYTES + BYTES / 2, BYTES / 2, IBV_FLUSH_GLOBAL,
		     IBV_FLUSH_RANGE);
	MUST(ibv_wr_complete(ex) == 0);
	while ((got = ibv_poll_cq(cq, 1, &wc)) == 0)
		;
	MUST(got == 1 && wc.status == IBV_WC_SUCCESS && wc.wr_id == 2 && wc.opcode == IBV_WC_FLUSH);
	MUST(memcmp(base, base + BYTES / 2, BYTES / 2) == 0);
	MUST(count(sent) == 1 && count(written) == BYTES / 2);
	MUST(ibv_set_comp_cntr(sent, 5) == 0 && ibv_inc_comp_cntr(sent, 2) == 0);
	MUST(ibv_set_err_comp_cntr(sent, 3) == 0 && ibv_inc_err_comp_cntr(sent, 1) == 0);
	MUST(count(sent) == 7 && ibv_read_err_comp_cntr(sent, &errors) == 0 && errors == 4);
	/* One byte too far: uroce-run --explain says by which function the region was created. */
	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, target->rkey, BYTES + BYTES / 2 + 1);
	ibv_wr_set_sge(ex, source->lkey, (uintptr_t)base, BYTES / 2);
	MUST(ibv_wr_complete(ex) == 0);
	while ((got = ibv_poll_cq(cq, 1, &wc)) == 0)
		;
	MUST(got == 1 && wc.status == IBV_WC_REM_ACCESS_ERR);
	MUST(ibv_dereg_mr(source) == 0 && ibv_dereg_mr(target) == 0);
	ibv_free_buf(buf);
}

static void query(void)
{
	struct ibv_comp_cntr_caps caps;
	struct ibv_port_attr port;
	uint64_t speed = 0;

	MUST(ibv_query_port(context, 1, &port) == 0);
	MUST(ibv_query_port_speed(context, 1, &speed) == 0 && speed > 0);
	MUST(ibv_query_port_speed(context, 2, &speed) == EINVAL);
	MUST(ibv_query_comp_cntr_caps(context, &caps) == 0 && caps.max_counters > 0);
	MUST(ibv_query_qp_data_in_order(qp[0], IBV_WR_RDMA_WRITE,
					IBV_QUERY_QP_DATA_IN_ORDER_RETURN_CAPS) == 0);
	MUST(strcmp(ibv_wr_opcode_str(IBV_WR_FLUSH), "unknown") != 0);
}

/* Return the next event, which the caller acknowledges. */
static struct rdma_cm_event *event_of(struct rdma_event_channel *channel,
				      enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	MUST(rdma_get_cm_event(channel, &event) == 0 && event->event == type);
	return event;
}

static void resolve(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_addrinfo hints = {.ai_flags = RAI_SA}, *info;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	MUST(channel && rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
	MUST(rdma_resolve_addrinfo(id, "127.0.0.1", "7174", NULL) == 0);
	rdma_ack_cm_event(event_of(channel, RDMA_CM_EVENT_ADDRINFO_RESOLVED));
	MUST(rdma_query_addrinfo(id, &info) == 0 && info->ai_dst_addr->sa_family == AF_INET);
	rdma_freeaddrinfo(info);
	MUST(rdma_resolve_addrinfo(id, NULL, "7174", &hints) == -1 && errno == EOPNOTSUPP);
	MUST(rdma_write_cm_event(id, RDMA_CM_EVENT_USER, 5, 6) == 0);
	event = event_of(channel, RDMA_CM_EVENT_USER);
	MUST(event->status == 5 && event->param.arg == 6);
	rdma_ack_cm_event(event);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
}

/* What has no meaning here is refused. */
static void unsupported(void)
{
	struct ibv_dmah_init_attr dmah = {.comp_mask = 0};
	struct ibv_alloc_dm_attr dm_attr = {.length = 64};
	struct ibv_dm *dm = ibv_alloc_dm(context, &dm_attr);

	MUST(!ibv_alloc_dmah(context, &dmah) && errno == EOPNOTSUPP);
	MUST(ibv_dealloc_dmah(NULL) == EOPNOTSUPP);
	MUST(dm && ibv_dm_export_dmabuf_fd(dm) == -1 && errno == EOPNOTSUPP);
	MUST(ibv_free_dm(dm) == 0);
	MUST(repoll_create(1) == -1 && errno == EOPNOTSUPP);
	MUST(repoll_ctl(0, EPOLL_CTL_ADD, 0, NULL) == -1 && errno == EOPNOTSUPP);
	MUST(repoll_wait(0, NULL, 0, 0) == -1 && errno == EOPNOTSUPP);
}

int main(void)
{
	open_all();
	write_and_flush();
	query();
	resolve();
	unsupported();
	MUST(ibv_destroy_comp_cntr(sent) == EBUSY);
	MUST(ibv_destroy_qp(qp[0]) == 0 && ibv_destroy_qp(qp[1]) == 0);
	MUST(ibv_destroy_comp_cntr(sent) == 0 && ibv_destroy_comp_cntr(written) == 0);
	MUST(ibv_destroy_cq(cq) == 0 && ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0);
	puts("all calls do what they should");
	return 0;
}
