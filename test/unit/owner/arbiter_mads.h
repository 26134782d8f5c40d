/* SPDX-License-Identifier: BSD-3-Clause */
/* MADs for tests of the arbiter: between a peer and this host's address. */
#ifndef ARBITER_MADS_H
#define ARBITER_MADS_H

#include <string.h>

#include "owner/arbiter.h"
#include "wire/cm_ip.h"
#include "wire/gid.h"

#define PORT	7174
#define PEER_ID 0x1234u
#define TID	0x77u
#define QPN	0x4001u /* the first number of a process is 0x4000 */

static const uint8_t host[GID_LEN] = {[10] = 0xff, 0xff, 10, 9, 0, 1};
static const uint8_t peer[GID_LEN] = {[10] = 0xff, 0xff, 10, 9, 0, 2};

static inline struct cm_mad mad_of(enum cm_message message, uint32_t local_id, uint32_t remote_id)
{
	return (struct cm_mad){
		.message = message, .tid = TID, .local_id = local_id, .remote_id = remote_id};
}

static inline struct cm_mad req_to(uint16_t port, uint32_t local_id)
{
	struct cm_mad mad = mad_of(CM_REQ, local_id, 0);

	mad.req.service_id = cm_service_id(CM_PS_TCP, port);
	mad.req.qpn = QPN;
	return mad;
}

static inline struct cm_mad sidr_req_to(uint16_t port, uint32_t request_id)
{
	struct cm_mad mad = mad_of(CM_SIDR_REQ, request_id, 0);

	mad.sidr_req.service_id = cm_service_id(CM_PS_UDP, port);
	return mad;
}

#endif
