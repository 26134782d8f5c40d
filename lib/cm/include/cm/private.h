/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interface between librdmacm.so.1 and the connection manager: one table of functions, which
 * libibverbs.so.1 exports as uroce_private_cm@UROCE_PRIVATE. Both libraries come from one build;
 * the version detects a mixture of two builds.
 *
 * Each function is the one of the same name in cm/agent.h, cm/cm.h, queue/channel.h,
 * base/reason.h or base/log.h.
 */
#ifndef CM_PRIVATE_H
#define CM_PRIVATE_H

#include <infiniband/verbs.h>

#include "base/log.h"
#include "cm/agent.h"
#include "queue/channel.h"

#define CM_PRIVATE_VERSION 7

struct cm_private {
	/* Return the agent of a context's device. 0, -ENODEV if the context is a parent process's
	 * or is closed, or the error of agent_get. MT-safe. */
	int (*agent_of)(struct ibv_context *context, const struct agent_notify *notify,
			struct agent **agent);
	struct cm *(*agent_enter)(struct agent *agent, uint64_t *now_ns);
	void (*agent_leave)(struct agent *agent);
	void (*agent_wait)(struct agent *agent);
	const struct cm_ports_ops *(*agent_ports)(const struct agent *agent, void **user);
	int (*agent_find_gid)(struct agent *agent, const uint8_t *gid, uint8_t ip_version,
			      uint32_t ifindex, struct device_gid *found);
	int (*agent_find_own)(const struct agent *agent, const struct gsi_address *address,
			      struct device_gid *found);
	int (*agent_choose_source)(struct agent *agent, const uint8_t dgid[16], uint32_t ifindex,
				   struct device_gid *found);
	int (*agent_resolve)(struct agent *agent, struct agent_query *query, uint8_t sgid_index,
			     const uint8_t dgid[16], uint64_t timeout_ns);
	void (*agent_forget)(struct agent_query *query);

	int (*cm_listen)(struct cm *cm, const struct cm_listen_attr *attr,
			 struct cm_listener **listener);
	void (*cm_unlisten)(struct cm_listener *listener, uint64_t now_ns);
	int (*cm_connect)(struct cm *cm, const struct cm_connect_attr *attr, uint64_t now_ns,
			  struct cm_conn **conn);
	int (*cm_resolve)(struct cm *cm, const struct cm_resolve_attr *attr, uint64_t now_ns,
			  struct cm_conn **conn);
	int (*cm_accept)(struct cm_conn *conn, const struct cm_accept_attr *attr, uint64_t now_ns);
	int (*cm_establish)(struct cm_conn *conn, const void *private_data, uint8_t private_len,
			    uint64_t now_ns);
	int (*cm_reject)(struct cm_conn *conn, uint16_t reason, const void *private_data,
			 uint8_t private_len, uint64_t now_ns);
	int (*cm_disconnect)(struct cm_conn *conn, const void *private_data, uint8_t private_len,
			     uint64_t now_ns);
	int (*cm_data_arrived)(struct cm_conn *conn, uint64_t now_ns);
	int (*cm_reply)(struct cm_conn *conn, const struct cm_reply_attr *attr, uint64_t now_ns);
	void (*cm_conn_destroy)(struct cm_conn *conn, uint64_t now_ns);
	void (*cm_conn_take)(struct cm_conn *conn);
	void (*cm_conn_set_user)(struct cm_conn *conn, void *user);
	void (*cm_conn_agreed)(const struct cm_conn *conn, struct cm_agreed *agreed);
	enum cm_state (*cm_conn_state)(const struct cm_conn *conn);

	void (*reason_say)(int of, const char *format, ...) __attribute__((format(printf, 2, 3)));
	const char *(*reason_take)(int of);
	int (*inject_into_rdma_call)(const char *name); /* inject/inject.h */
	void (*reason_enter)(const char *call);
	void (*reason_leave)(void);
	const char *(*reason_call)(unsigned int *depth);
	void (*explain_call)(int error); /* face_explain_call */
	void (*log_print)(enum log_level level, const char *format, ...)
		__attribute__((format(printf, 2, 3)));

	int (*channel_init)(struct channel *channel);
	void (*channel_fini)(struct channel *channel);
	void (*channel_raise)(struct channel *channel, struct channel_source *source);
	int (*channel_read)(struct channel *channel, void **object, int *code);
	uint32_t (*channel_forget)(struct channel *channel, struct channel_source *source);
	uint32_t (*channel_pending)(struct channel *channel, const struct channel_source *source);
};

/** Return the table, or NULL if the library has another version. MT-safe. */
const struct cm_private *uroce_private_cm(uint32_t version);

#endif
