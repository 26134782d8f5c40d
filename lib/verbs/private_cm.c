/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of the connection manager for librdmacm.so.1. */
#include "inject/inject.h"
#include "cm/private.h"
#include "base/log.h"
#include "verbs_internal.h"

static int agent_of(struct ibv_context *ibv, const struct agent_notify *notify,
		    struct agent **agent)
{
	if (context_is_orphan(ibv))
		return -ENODEV;
	return agent_get(face_context(ibv)->device, notify, agent);
}

static const struct cm_private table = {
	.agent_of = agent_of,
	.agent_enter = agent_enter,
	.agent_leave = agent_leave,
	.agent_wait = agent_wait,
	.agent_ports = agent_ports,
	.agent_find_gid = agent_find_gid,
	.agent_find_own = agent_find_own,
	.agent_choose_source = agent_choose_source,
	.agent_resolve = agent_resolve,
	.agent_forget = agent_forget,
	.cm_listen = cm_listen,
	.cm_unlisten = cm_unlisten,
	.cm_connect = cm_connect,
	.cm_resolve = cm_resolve,
	.cm_accept = cm_accept,
	.cm_establish = cm_establish,
	.cm_reject = cm_reject,
	.cm_disconnect = cm_disconnect,
	.cm_data_arrived = cm_data_arrived,
	.cm_reply = cm_reply,
	.cm_conn_destroy = cm_conn_destroy,
	.cm_conn_take = cm_conn_take,
	.cm_conn_set_user = cm_conn_set_user,
	.cm_conn_agreed = cm_conn_agreed,
	.cm_conn_state = cm_conn_state,
	.inject_into_rdma_call = inject_into_rdma_call,
	.reason_say = reason_say,
	.reason_take = reason_take,
	.reason_enter = reason_enter,
	.reason_leave = reason_leave,
	.reason_call = reason_call,
	.explain_call = face_explain_call,
	.log_print = log_print,
	.channel_init = channel_init,
	.channel_fini = channel_fini,
	.channel_raise = channel_raise,
	.channel_read = channel_read,
	.channel_forget = channel_forget,
	.channel_pending = channel_pending,
};

const struct cm_private *uroce_private_cm(uint32_t version)
{
	return version == CM_PRIVATE_VERSION ? &table : NULL;
}
