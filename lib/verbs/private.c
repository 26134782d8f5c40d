/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Symbols of rdma-core's library that its drivers use. Some programs link the drivers libmlx5 and
 * libefa, which cannot be loaded without these symbols. No driver is ever asked to open a device
 * here, so each of these functions only returns an error.
 *
 * They are declared without parameters, because no header declares them; a caller's arguments are
 * ignored.
 */
#include "private.h"
#include "verbs_internal.h"

bool verbs_allow_disassociate_destroy;

#define ANSWER_ERRNO(name)         \
	int name(void);            \
	int name(void)             \
	{                          \
		return EOPNOTSUPP; \
	}
#define ANSWER_NULL(name)                      \
	void *name(void);                      \
	void *name(void)                       \
	{                                      \
		return face_null(-EOPNOTSUPP); \
	}
#define ANSWER_NOTHING(name) \
	void name(void);     \
	void name(void)      \
	{                    \
	}

/* Drivers' constructors call these when they are loaded. */
ANSWER_NOTHING(verbs_register_driver_34)

/* Functions by which a driver gets a context. */
ANSWER_NULL(verbs_open_device)
ANSWER_NULL(_verbs_init_and_alloc_context)
ANSWER_NOTHING(verbs_uninit_context)
ANSWER_NOTHING(verbs_set_ops)
ANSWER_NOTHING(verbs_init_cq)
ANSWER_NOTHING(__verbs_log)

/* Functions by which a driver calls the kernel. */
ANSWER_ERRNO(execute_ioctl)
ANSWER_ERRNO(ibv_cmd_advise_mr)
ANSWER_ERRNO(ibv_cmd_alloc_dm)
ANSWER_ERRNO(ibv_cmd_alloc_mw)
ANSWER_ERRNO(ibv_cmd_alloc_pd)
ANSWER_ERRNO(ibv_cmd_attach_mcast)
ANSWER_ERRNO(ibv_cmd_close_xrcd)
ANSWER_ERRNO(ibv_cmd_create_ah)
ANSWER_ERRNO(ibv_cmd_create_counters)
ANSWER_ERRNO(ibv_cmd_create_cq)
ANSWER_ERRNO(ibv_cmd_create_cq_ex)
ANSWER_ERRNO(ibv_cmd_create_flow)
ANSWER_ERRNO(ibv_cmd_create_flow_action_esp)
ANSWER_ERRNO(ibv_cmd_create_qp)
ANSWER_ERRNO(ibv_cmd_create_qp_ex)
ANSWER_ERRNO(ibv_cmd_create_qp_ex2)
ANSWER_ERRNO(ibv_cmd_create_rwq_ind_table)
ANSWER_ERRNO(ibv_cmd_create_srq)
ANSWER_ERRNO(ibv_cmd_create_srq_ex)
ANSWER_ERRNO(ibv_cmd_create_wq)
ANSWER_ERRNO(ibv_cmd_dealloc_mw)
ANSWER_ERRNO(ibv_cmd_dealloc_pd)
ANSWER_ERRNO(ibv_cmd_dereg_mr)
ANSWER_ERRNO(ibv_cmd_destroy_ah)
ANSWER_ERRNO(ibv_cmd_destroy_counters)
ANSWER_ERRNO(ibv_cmd_destroy_cq)
ANSWER_ERRNO(ibv_cmd_destroy_flow)
ANSWER_ERRNO(ibv_cmd_destroy_flow_action)
ANSWER_ERRNO(ibv_cmd_destroy_qp)
ANSWER_ERRNO(ibv_cmd_destroy_rwq_ind_table)
ANSWER_ERRNO(ibv_cmd_destroy_srq)
ANSWER_ERRNO(ibv_cmd_destroy_wq)
ANSWER_ERRNO(ibv_cmd_detach_mcast)
ANSWER_ERRNO(ibv_cmd_free_dm)
ANSWER_ERRNO(ibv_cmd_get_context)
ANSWER_ERRNO(ibv_cmd_modify_cq)
ANSWER_ERRNO(ibv_cmd_modify_flow_action_esp)
ANSWER_ERRNO(ibv_cmd_modify_qp)
ANSWER_ERRNO(ibv_cmd_modify_qp_ex)
ANSWER_ERRNO(ibv_cmd_modify_srq)
ANSWER_ERRNO(ibv_cmd_modify_wq)
ANSWER_ERRNO(ibv_cmd_open_qp)
ANSWER_ERRNO(ibv_cmd_open_xrcd)
ANSWER_ERRNO(ibv_cmd_post_recv)
ANSWER_ERRNO(ibv_cmd_post_send)
ANSWER_ERRNO(ibv_cmd_post_srq_recv)
ANSWER_ERRNO(ibv_cmd_query_context)
ANSWER_ERRNO(ibv_cmd_query_device_any)
ANSWER_ERRNO(ibv_cmd_query_mr)
ANSWER_ERRNO(ibv_cmd_query_port)
ANSWER_ERRNO(ibv_cmd_query_qp)
ANSWER_ERRNO(ibv_cmd_query_srq)
ANSWER_ERRNO(ibv_cmd_read_counters)
ANSWER_ERRNO(ibv_cmd_reg_dm_mr)
ANSWER_ERRNO(ibv_cmd_reg_dmabuf_mr)
ANSWER_ERRNO(ibv_cmd_reg_mr)
ANSWER_ERRNO(ibv_cmd_req_notify_cq)
ANSWER_ERRNO(ibv_cmd_rereg_mr)
ANSWER_ERRNO(ibv_cmd_resize_cq)

int ibv_cmd_poll_cq(void);
unsigned int __ioctl_final_num_attrs(void);

/* Return a negative value: others are a number of completions. */
int ibv_cmd_poll_cq(void)
{
	return -EOPNOTSUPP;
}

/* Return the number of attributes of an ioctl command, which execute_ioctl would use. */
unsigned int __ioctl_final_num_attrs(void)
{
	return 0;
}
