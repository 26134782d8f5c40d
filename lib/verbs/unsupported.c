/* SPDX-License-Identifier: BSD-3-Clause */
/* Unsupported verbs: every slot of a context returns EOPNOTSUPP. */
#include "verbs_internal.h"

/* The parameters are those of the slots, and are ignored. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define ANSWER_ERRNO(name, ...)                       \
	static int name(__VA_ARGS__)                  \
	{                                             \
		return face_errno(like_lacks_call()); \
	}
#define ANSWER_NULL(type, name, ...)                 \
	static type *name(__VA_ARGS__)               \
	{                                            \
		return face_null(like_lacks_call()); \
	}

ANSWER_ERRNO(advise_mr, struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
	     struct ibv_sge *sg_list, uint32_t num_sge)
ANSWER_NULL(struct ibv_mr, alloc_null_mr, struct ibv_pd *pd)
ANSWER_ERRNO(read_counters, struct ibv_counters *counters, uint64_t *value, uint32_t ncounters,
	     uint32_t flags)
ANSWER_ERRNO(attach_counters_point_flow, struct ibv_counters *counters,
	     struct ibv_counter_attach_attr *attr, struct ibv_flow *flow)
ANSWER_NULL(struct ibv_counters, create_counters, struct ibv_context *context,
	    struct ibv_counters_init_attr *attr)
ANSWER_ERRNO(destroy_counters, struct ibv_counters *counters)
ANSWER_NULL(struct ibv_mr, reg_dm_mr, struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset,
	    size_t length, unsigned int access)
ANSWER_NULL(struct ibv_dm, alloc_dm, struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
ANSWER_ERRNO(free_dm, struct ibv_dm *dm)
ANSWER_ERRNO(modify_flow_action_esp, struct ibv_flow_action *action,
	     struct ibv_flow_action_esp_attr *attr)
ANSWER_ERRNO(destroy_flow_action, struct ibv_flow_action *action)
ANSWER_NULL(struct ibv_flow_action, create_flow_action_esp, struct ibv_context *context,
	    struct ibv_flow_action_esp_attr *attr)
ANSWER_ERRNO(modify_qp_rate_limit, struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr)
ANSWER_NULL(struct ibv_pd, alloc_parent_domain, struct ibv_context *context,
	    struct ibv_parent_domain_init_attr *attr)
ANSWER_ERRNO(dealloc_td, struct ibv_td *td)
ANSWER_NULL(struct ibv_td, alloc_td, struct ibv_context *context, struct ibv_td_init_attr *attr)
ANSWER_ERRNO(modify_cq, struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
ANSWER_ERRNO(destroy_rwq_ind_table, struct ibv_rwq_ind_table *table)
ANSWER_NULL(struct ibv_rwq_ind_table, create_rwq_ind_table, struct ibv_context *context,
	    struct ibv_rwq_ind_table_init_attr *attr)
ANSWER_ERRNO(destroy_wq, struct ibv_wq *wq)
ANSWER_ERRNO(modify_wq, struct ibv_wq *wq, struct ibv_wq_attr *attr)
ANSWER_NULL(struct ibv_wq, create_wq, struct ibv_context *context, struct ibv_wq_init_attr *attr)
ANSWER_ERRNO(query_rt_values, struct ibv_context *context, struct ibv_values_ex *values)
ANSWER_NULL(struct ibv_cq_ex, create_cq_ex, struct ibv_context *context,
	    struct ibv_cq_init_attr_ex *attr)
ANSWER_ERRNO(query_device_ex, struct ibv_context *context,
	     const struct ibv_query_device_ex_input *input, struct ibv_device_attr_ex *attr,
	     size_t attr_size)
ANSWER_ERRNO(query_port, struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
	     size_t attr_size)
ANSWER_ERRNO(destroy_flow, struct ibv_flow *flow)
ANSWER_NULL(struct ibv_flow, create_flow, struct ibv_qp *qp, struct ibv_flow_attr *attr)
ANSWER_NULL(struct ibv_qp, open_qp, struct ibv_context *context, struct ibv_qp_open_attr *attr)
ANSWER_NULL(struct ibv_qp, create_qp_ex, struct ibv_context *context,
	    struct ibv_qp_init_attr_ex *attr)
ANSWER_ERRNO(get_srq_num, struct ibv_srq *srq, uint32_t *srq_num)
ANSWER_NULL(struct ibv_srq, create_srq_ex, struct ibv_context *context,
	    struct ibv_srq_init_attr_ex *attr)
ANSWER_NULL(struct ibv_xrcd, open_xrcd, struct ibv_context *context,
	    struct ibv_xrcd_init_attr *attr)
ANSWER_ERRNO(close_xrcd, struct ibv_xrcd *xrcd)

/* ibv_context_ops: functions that inline verbs of any version call. */
ANSWER_ERRNO(compat_query_device, struct ibv_context *context, struct ibv_device_attr *attr)
ANSWER_ERRNO(compat_query_port, struct ibv_context *context, uint8_t port_num,
	     struct _compat_ibv_port_attr *attr)
ANSWER_NULL(void, compat_slot, void)
ANSWER_NULL(struct ibv_mw, alloc_mw, struct ibv_pd *pd, enum ibv_mw_type type)
ANSWER_ERRNO(bind_mw, struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
ANSWER_ERRNO(dealloc_mw, struct ibv_mw *mw)
ANSWER_ERRNO(req_notify_cq, struct ibv_cq *cq, int solicited_only)

static int poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	return -EOPNOTSUPP;
}

/* A function for posting returns the request that was not posted: the first. */
#define ANSWER_POST(name, object, request)                                          \
	static int name(struct object *o, struct request *wr, struct request **bad) \
	{                                                                           \
		*bad = wr;                                                          \
		return face_errno(-EOPNOTSUPP);                                     \
	}

ANSWER_POST(post_srq_ops, ibv_srq, ibv_ops_wr)
ANSWER_POST(post_srq_recv, ibv_srq, ibv_recv_wr)
ANSWER_POST(post_send, ibv_qp, ibv_send_wr)
ANSWER_POST(post_recv, ibv_qp, ibv_recv_wr)

static void placeholder(void)
{
}

const struct verbs_context unsupported_verbs = {
	.query_port = query_port,
	.advise_mr = advise_mr,
	.alloc_null_mr = alloc_null_mr,
	.read_counters = read_counters,
	.attach_counters_point_flow = attach_counters_point_flow,
	.create_counters = create_counters,
	.destroy_counters = destroy_counters,
	.reg_dm_mr = reg_dm_mr,
	.alloc_dm = alloc_dm,
	.free_dm = free_dm,
	.modify_flow_action_esp = modify_flow_action_esp,
	.destroy_flow_action = destroy_flow_action,
	.create_flow_action_esp = create_flow_action_esp,
	.modify_qp_rate_limit = modify_qp_rate_limit,
	.alloc_parent_domain = alloc_parent_domain,
	.dealloc_td = dealloc_td,
	.alloc_td = alloc_td,
	.modify_cq = modify_cq,
	.post_srq_ops = post_srq_ops,
	.destroy_rwq_ind_table = destroy_rwq_ind_table,
	.create_rwq_ind_table = create_rwq_ind_table,
	.destroy_wq = destroy_wq,
	.modify_wq = modify_wq,
	.create_wq = create_wq,
	.query_rt_values = query_rt_values,
	.create_cq_ex = create_cq_ex,
	.query_device_ex = query_device_ex,
	.ibv_destroy_flow = destroy_flow,
	.ABI_placeholder2 = placeholder,
	.ibv_create_flow = create_flow,
	.ABI_placeholder1 = placeholder,
	.open_qp = open_qp,
	.create_qp_ex = create_qp_ex,
	.get_srq_num = get_srq_num,
	.create_srq_ex = create_srq_ex,
	.open_xrcd = open_xrcd,
	.close_xrcd = close_xrcd,
	.context.ops =
		{
			._compat_query_device = compat_query_device,
			._compat_query_port = compat_query_port,
			._compat_alloc_pd = compat_slot,
			._compat_dealloc_pd = compat_slot,
			._compat_reg_mr = compat_slot,
			._compat_rereg_mr = compat_slot,
			._compat_dereg_mr = compat_slot,
			.alloc_mw = alloc_mw,
			.bind_mw = bind_mw,
			.dealloc_mw = dealloc_mw,
			._compat_create_cq = compat_slot,
			.poll_cq = poll_cq,
			.req_notify_cq = req_notify_cq,
			._compat_cq_event = compat_slot,
			._compat_resize_cq = compat_slot,
			._compat_destroy_cq = compat_slot,
			._compat_create_srq = compat_slot,
			._compat_modify_srq = compat_slot,
			._compat_query_srq = compat_slot,
			._compat_destroy_srq = compat_slot,
			.post_srq_recv = post_srq_recv,
			._compat_create_qp = compat_slot,
			._compat_query_qp = compat_slot,
			._compat_modify_qp = compat_slot,
			._compat_destroy_qp = compat_slot,
			.post_send = post_send,
			.post_recv = post_recv,
			._compat_create_ah = compat_slot,
			._compat_destroy_ah = compat_slot,
			._compat_attach_mcast = compat_slot,
			._compat_detach_mcast = compat_slot,
			._compat_async_event = compat_slot,
		},
};
