/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tries what a device may refuse: each name of lib/like/include/like/like.def, and prints "NAME
 * ERRNO", 0 for what the device has. With arguments NAME VALUE ... it tries these limits, and
 * prints the errno values of VALUE and of one more.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "zoo_world.h"

/* What newer headers have. */
#define FLUSH_GLOBAL (1 << 8)

bool wrong;

void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "like: %s: %s\n", what, strerror(errno));
	exit(1);
}

static struct ibv_cq *cq;
static struct ibv_srq *srq;

static void say(const char *name, int error)
{
	printf("%s %d\n", name, error);
}

/* Print whether a call has failed, which has returned this. */
#define SAY_POINTER(name, call) say(name, (errno = 0, (call) ? 0 : errno))

static struct ibv_qp_init_attr init_of(enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr){
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = type,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};
}

static int create(struct ibv_qp_init_attr init)
{
	struct ibv_qp *qp = ibv_create_qp(world.pd, &init);

	if (!qp)
		return errno;
	ibv_destroy_qp(qp);
	return 0;
}

static int create_ex(uint64_t send_ops)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = world.pd,
		.send_ops_flags = send_ops,
	};

	errno = 0;
	return ibv_create_qp_ex(world.context, &init) ? 0 : errno;
}

/* Post a write and one other request: the write is posted in any case. */
static int post_second(enum ibv_wr_opcode opcode)
{
	struct ibv_send_wr second = request(opcode), *bad = NULL;
	struct ibv_send_wr first = request(IBV_WR_RDMA_WRITE);
	int rc;

	first.next = &second;
	second.sg_list->length = 8;
	second.wr.atomic.remote_addr = (uintptr_t)memory[1];
	second.wr.atomic.rkey = world.to->rkey;
	if (opcode == IBV_WR_ATOMIC_WRITE || opcode == IBV_WR_LOCAL_INV || opcode == IBV_WR_BIND_MW)
		second.num_sge = opcode == IBV_WR_ATOMIC_WRITE;
	if (opcode == IBV_WR_LOCAL_INV)
		second.invalidate_rkey = world.to->rkey;
	rc = ibv_post_send(world.a, &first, &bad);
	must(rc == 0 || bad == &second, "the first request was not posted");
	return rc;
}

static void end_both(void)
{
	ibv_destroy_qp(world.a);
	ibv_destroy_qp(world.b);
	ibv_destroy_cq(world.cq);
	world.a = world.b = NULL;
	world.cq = NULL;
	world.attr_a.dest_qp_num = 0;
}

static void try_opcode(const char *name, enum ibv_wr_opcode opcode)
{
	connect_both();
	say(name, post_second(opcode));
	end_both();
}

/* Try what is asked of a queue pair that sends. */
static void try_sending(void)
{
	struct ibv_sge two[] = {{(uintptr_t)memory, 8, world.from->lkey},
				{(uintptr_t)memory + 8, 8, world.from->lkey}};
	struct ibv_qp_rate_limit_attr limit = {.rate_limit = 1000000};
	struct ibv_qp_attr attr = {.rate_limit = 1000000};
	struct ibv_mw_bind bind = {
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {.mr = world.to,
			      .addr = (uintptr_t)memory[1],
			      .length = 64,
			      .mw_access_flags = IBV_ACCESS_REMOTE_READ | FLUSH_GLOBAL}};
	struct ibv_send_wr read, *bad;
	struct ibv_mw *mw;

	world.init.cap.max_send_sge = 2;
	connect_both();
	world.init.cap.max_send_sge = 1;
	read = request(IBV_WR_RDMA_READ);
	read.sg_list = two;
	read.num_sge = 2;
	say("a READ of two", ibv_post_send(world.a, &read, &bad));
	say("a rate limit", ibv_modify_qp_rate_limit(world.a, &limit));
	say("a rate", ibv_modify_qp(world.a, &attr, IBV_QP_RATE_LIMIT));
	mw = ibv_alloc_mw(world.pd, IBV_MW_TYPE_1);
	if (mw)
		say("flush of a window", ibv_bind_mw(world.a, mw, &bind));
	end_both();
}

/* What a query tells must be what the creation has granted. */
static void try_queries(void)
{
	struct ibv_qp_init_attr init = init_of(IBV_QPT_RC), told;
	struct ibv_srq_init_attr srq_init = {.attr = {.max_sge = 1}};
	struct ibv_srq_attr srq_told;
	struct ibv_device_attr device;
	struct ibv_qp_attr attr;
	struct ibv_srq *largest;
	struct ibv_qp *qp;

	must(ibv_query_device(world.context, &device) == 0, "ibv_query_device");
	init.cap.max_send_wr = init.cap.max_recv_wr = (uint32_t)device.max_qp_wr;
	init.cap.max_inline_data = 90;
	qp = ibv_create_qp(world.pd, &init);
	must(qp && ibv_query_qp(qp, &attr, IBV_QP_CAP, &told) == 0, "ibv_query_qp");
	say("ibv_query_qp", memcmp(&attr.cap, &init.cap, sizeof(attr.cap)) != 0 ||
				    memcmp(&told.cap, &init.cap, sizeof(attr.cap)) != 0);
	attr = world.attr_a;
	attr.qp_access_flags = FLUSH_GLOBAL;
	say("flush of a queue pair", move(qp, &attr, IBV_QPS_INIT, RC_INIT_MASK));
	ibv_destroy_qp(qp);
	srq_init.attr.max_wr = (uint32_t)device.max_srq_wr;
	largest = ibv_create_srq(world.pd, &srq_init);
	if (!largest)
		return;
	must(ibv_query_srq(largest, &srq_told) == 0, "ibv_query_srq");
	say("ibv_query_srq",
	    srq_told.max_wr != srq_init.attr.max_wr || srq_told.max_sge != srq_init.attr.max_sge);
}

/* Newer headers declare it. */
static int create_comp_cntr(void)
{
	void *(*create_cntr)(struct ibv_context *, uint32_t attr[3]) = NULL;
	void *symbol = dlsym(RTLD_DEFAULT, "ibv_create_comp_cntr");
	uint32_t attr[3] = {0};

	must(symbol, "ibv_create_comp_cntr");
	memcpy(&create_cntr, &symbol, sizeof(symbol));
	errno = 0;
	return create_cntr(world.context, attr) ? 0 : errno;
}

static int query_comp_cntr_caps(void)
{
	int (*query)(struct ibv_context *, void *caps, size_t bytes) = NULL;
	void *symbol = dlsym(RTLD_DEFAULT, "_ibv_query_comp_cntr_caps");
	uint64_t caps[2];

	must(symbol, "_ibv_query_comp_cntr_caps");
	memcpy(&query, &symbol, sizeof(symbol));
	return query(world.context, caps, sizeof(caps));
}

static void try_lacks(void)
{
	struct ibv_srq_init_attr srq_init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq_attr size = {.max_wr = 8};
	struct ibv_ah_attr ah = world.attr_a.ah_attr;
	union ibv_gid group = {.raw = {0xff, 0x0e, [15] = 7}};
	struct ibv_qp_init_attr ud = init_of(IBV_QPT_UD);
	struct ibv_qp_attr attr = {.port_num = 1, .qkey = QKEY};
	struct ibv_mr *mr = ibv_reg_mr(world.pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_qp *qp;

	say("uc", create(init_of(IBV_QPT_UC)));
	say("ud", create(init_of(IBV_QPT_UD)));
	say("xrc", create(init_of(IBV_QPT_XRC_SEND)));
	SAY_POINTER("srq", srq = ibv_create_srq(world.pd, &srq_init));
	if (srq)
		say("srq_resize", ibv_modify_srq(srq, &size, IBV_SRQ_MAX_WR));
	try_opcode("atomics", IBV_WR_ATOMIC_FETCH_AND_ADD);
	try_opcode("local_inv", IBV_WR_LOCAL_INV);
	try_opcode("atomic_write", IBV_WR_ATOMIC_WRITE);
	SAY_POINTER("flush",
		    ibv_reg_mr(world.pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE | FLUSH_GLOBAL));
	SAY_POINTER("odp", ibv_reg_mr(world.pd, memory, BYTES, IBV_ACCESS_ON_DEMAND));
	errno = 0;
	say("rereg",
	    ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0) == 0 ? 0 : errno);
	errno = 0;
	say("rereg for flush", ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
					    IBV_ACCESS_LOCAL_WRITE | FLUSH_GLOBAL) == 0
				       ? 0
				       : errno);
	say("comp_cntr", create_comp_cntr());
	say("query of comp_cntr", query_comp_cntr_caps());
	say("resize_cq", ibv_resize_cq(cq, 32));
	SAY_POINTER("ah", ibv_create_ah(world.pd, &ah));
	qp = ibv_create_qp(world.pd, &ud);
	if (!qp)
		return;
	must(move(qp, &attr, IBV_QPS_INIT, INIT_UD) == 0, "INIT");
	say("mcast", ibv_attach_mcast(qp, &group, 0));
}

static void try_calls(void)
{
	struct ibv_alloc_dm_attr dm = {.length = 4096};
	struct ibv_cq_init_attr_ex cq_ex = {.cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS};
	struct ibv_cq_init_attr_ex stamped = {.cqe = 16,
					      .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};
	struct ibv_modify_cq_attr moderate = {.attr_mask = IBV_CQ_ATTR_MODERATE,
					      .moderate = {8, 8}};
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
	struct ibv_td_init_attr td = {0};
	struct ibv_parent_domain_init_attr parent = {.pd = world.pd};
	struct ibv_xrcd_init_attr xrcd = {.comp_mask =
						  IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
					  .fd = -1,
					  .oflags = O_CREAT};
	struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = 64, .lkey = world.from->lkey};
	int rc;

	SAY_POINTER("alloc_mw", ibv_alloc_mw(world.pd, IBV_MW_TYPE_1));
	SAY_POINTER("alloc_dm", ibv_alloc_dm(world.context, &dm));
	SAY_POINTER("alloc_null_mr", ibv_alloc_null_mr(world.pd));
	SAY_POINTER("alloc_td", ibv_alloc_td(world.context, &td));
	SAY_POINTER("alloc_parent_domain", ibv_alloc_parent_domain(world.context, &parent));
	SAY_POINTER("create_cq_ex", ibv_create_cq_ex(world.context, &cq_ex));
	SAY_POINTER("time stamps", ibv_create_cq_ex(world.context, &stamped));
	say("modify_cq", ibv_modify_cq(cq, &moderate));
	say("query_rt_values", ibv_query_rt_values_ex(world.context, &values));
	SAY_POINTER("open_xrcd", ibv_open_xrcd(world.context, &xrcd));
	rc = create_ex(IBV_QP_EX_WITH_RDMA_WRITE);
	say("create_qp_ex", rc);
	if (rc == 0)
		say("ex_send_inv", create_ex(IBV_QP_EX_WITH_SEND_WITH_INV));
	/* Without on-demand paging there is nothing to prefetch: ENOENT. */
	rc = ibv_advise_mr(world.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1);
	say("advise_mr", rc == ENOENT ? 0 : rc);
}

static int try_value(const char *name, uint32_t value)
{
	struct ibv_qp_init_attr init = init_of(strstr(name, "_ud") ? IBV_QPT_UD : IBV_QPT_RC);
	struct ibv_srq_init_attr srq_init = {.attr = {.max_wr = 4, .max_sge = value}};

	errno = 0;
	if (strncmp(name, "max_inline_data", 15) == 0)
		init.cap.max_inline_data = value;
	else if (strcmp(name, "max_send_sge") == 0)
		init.cap.max_send_sge = value;
	else if (strcmp(name, "max_recv_sge") == 0)
		init.cap.max_recv_sge = value;
	else if (strcmp(name, "max_qp_wr") == 0)
		init.cap.max_send_wr = value;
	else if (strcmp(name, "max_cqe") == 0)
		return ibv_create_cq(world.context, (int)value, NULL, NULL, 0) ? 0 : errno;
	else if (strcmp(name, "max_srq_sge") == 0)
		return ibv_create_srq(world.pd, &srq_init) ? 0 : errno;
	else
		must(false, "the limit is not known");
	return create(init);
}

static int try_rd_atomic(uint32_t value)
{
	int rc;

	world.attr_a.max_rd_atomic = (uint8_t)value;
	make();
	rc = move(world.a, &world.attr_a, IBV_QPS_INIT, RC_INIT_MASK);
	if (rc == 0)
		rc = move(world.a, &world.attr_a, IBV_QPS_RTR, RC_RTR_MASK);
	if (rc == 0)
		rc = move(world.a, &world.attr_a, IBV_QPS_RTS, RC_RTS_MASK);
	end_both();
	return rc;
}

int main(int argc, char **argv)
{
	zoo_set_up();
	world.init.cap.max_send_sge = world.init.cap.max_recv_sge = 1;
	cq = ibv_create_cq(world.context, 16, NULL, NULL, 0);
	must(cq, "ibv_create_cq");
	for (int i = 1; i + 1 < argc; i += 2) {
		const uint32_t value = (uint32_t)strtoul(argv[i + 1], NULL, 0);
		const bool is_rd = strcmp(argv[i], "max_qp_init_rd_atom") == 0;

		printf("%s %d %d\n", argv[i],
		       is_rd ? try_rd_atomic(value) : try_value(argv[i], value),
		       is_rd ? try_rd_atomic(value + 1) : try_value(argv[i], value + 1));
	}
	if (argc > 1)
		return 0;
	try_lacks();
	try_sending();
	try_queries();
	try_calls();
	return 0;
}
