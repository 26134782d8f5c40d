/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of an id, and enhanced connection establishment: options of a vendor's queue pairs, which
 * travel in REQ and REP. Our own queue pairs have none: programs that bring theirs set and read
 * them. */
#include "id.h"

#include <string.h>

#include <infiniband/sa.h>

#define ACK_TIMEOUT_MAX 31 /* five bits of a REQ */

static int read_bool(const void *value, size_t len, bool *out)
{
	int number;

	if (len != sizeof(number))
		return explain_argument("optlen must be that of an int");
	memcpy(&number, value, sizeof(number));
	*out = number != 0;
	return 0;
}

static int set_tos(struct cm_id *id, const void *value, size_t len)
{
	if (len != sizeof(id->tos))
		return explain_argument("optlen must be 1");
	memcpy(&id->tos, value, sizeof(id->tos));
	return 0;
}

static int set_ack_timeout(struct cm_id *id, const void *value, size_t len)
{
	uint8_t timeout;

	if (len != sizeof(timeout))
		return explain_argument("optlen must be 1");
	memcpy(&timeout, value, sizeof(timeout));
	if (timeout > ACK_TIMEOUT_MAX ||
	    (id->public.qp_type != IBV_QPT_RC && id->public.qp_type != IBV_QPT_XRC_SEND))
		return explain_argument("the timeout is more than 31, or the id's queue pairs are "
					"not RC or XRC_SEND");
	id->ack_timeout = timeout;
	return 0;
}

/* As on Linux, a port may be shared from now on until its id listens, but no shared port becomes
 * unshared. */
static int set_reuse(struct cm_id *id, const void *value, size_t len)
{
	const enum id_state state = id_state(id);
	bool reuse;
	int rc = read_bool(value, len, &reuse);

	if (rc == 0 && state != ID_IDLE) {
		if (!reuse || state == ID_LISTENING)
			return explain_argument(
				"a bound id may only begin to share its port, and not "
				"while it listens");
		rc = bind_change(id, reuse, id->af_only);
	}
	if (rc == 0)
		id->reuse = reuse;
	return rc;
}

static int set_af_only(struct cm_id *id, const void *value, size_t len)
{
	const enum id_state state = id_state(id);
	bool af_only;
	int rc = read_bool(value, len, &af_only);

	if (rc == 0 && state != ID_IDLE)
		rc = state == ID_BOUND ? bind_change(id, id->reuse, af_only)
				       : explain_state(id, "IDLE or BOUND");
	if (rc == 0)
		id->af_only = af_only;
	return rc;
}

static int set_id_option(struct cm_id *id, int name, const void *value, size_t len)
{
	switch (name) {
	case RDMA_OPTION_ID_TOS:
		return set_tos(id, value, len);
	case RDMA_OPTION_ID_REUSEADDR:
		return set_reuse(id, value, len);
	case RDMA_OPTION_ID_AFONLY:
		return set_af_only(id, value, len);
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		return set_ack_timeout(id, value, len);
	default:
		return ID_REASON(-ENOSYS, "uroce has no option %d of level RDMA_OPTION_ID", name);
	}
}

/* Return true if one of the paths serves both directions and the connection manager's messages. */
static bool has_usable_path(const void *value, size_t len)
{
	const uint32_t wanted =
		IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;
	struct ibv_path_data data;

	for (size_t at = 0; at < len; at += sizeof(data)) {
		memcpy(&data, (const uint8_t *)value + at, sizeof(data));
		if (data.flags == wanted)
			return true;
	}
	return false;
}

/* Accept a path that the program gives, and raise the event of a resolved route; on RoCE our own
 * path is the only possible one. */
static int set_path(struct cm_id *id, const void *value, size_t len)
{
	if (len % sizeof(struct ibv_path_data) != 0 || !has_usable_path(value, len))
		return explain_argument("no struct ibv_path_data has the flags IBV_PATH_FLAG_GMP, "
					"_PRIMARY and _BIDIRECTIONAL");
	return resolve_route(id);
}

static int set_option(struct cm_id *id, int level, int name, const void *value, size_t len)
{
	if (level == RDMA_OPTION_ID)
		return set_id_option(id, name, value, len);
	if (level == RDMA_OPTION_IB && name == RDMA_OPTION_IB_PATH)
		return set_path(id, value, len);
	return ID_REASON(-ENOSYS, "uroce has no option %d of level %d", name, level);
}

int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval, size_t optlen)
{
	ID_CALL();
	const int rc = id_check(id);

	if (rc != 0 || !optval)
		return id_result(rc != 0 ? rc : explain_argument("optval is NULL"));
	return id_result(set_option(cm_id_of(id), level, optname, optval, optlen));
}

/* Set options. An id with a queue pair takes them from the queue pair, and ours have none. */
int rdma_set_local_ece(struct rdma_cm_id *public, struct ibv_ece *ece)
{
	ID_CALL();
	struct cm_id *id = cm_id_of(public);
	const int rc = id_check(public);

	if (rc != 0)
		return id_result(rc);
	if (qp_exists(id) || !ece || ece->vendor_id == 0 || ece->comp_mask != 0)
		return id_result(explain_argument("the id has a queue pair, or ece is NULL, or its "
						  "vendor_id is 0, or its comp_mask is not"));
	id->local_ece = (struct cm_ece){.vendor_id = ece->vendor_id, .options = ece->options};
	return 0;
}

int rdma_get_remote_ece(struct rdma_cm_id *public, struct ibv_ece *ece)
{
	ID_CALL();
	struct cm_id *id = cm_id_of(public);
	const int rc = id_check(public);

	if (rc != 0)
		return id_result(rc);
	if (qp_exists(id) || !ece)
		return id_result(explain_argument("the id has a queue pair, or ece is NULL"));
	pthread_mutex_lock(&id->lock);
	*ece = (struct ibv_ece){
		.vendor_id = id->remote_ece.vendor_id,
		.options = id->remote_ece.options,
	};
	pthread_mutex_unlock(&id->lock);
	return 0;
}
