/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps that bring a reliable queue pair up. A call that fails ends the program with one line.
 */
#ifndef EXAMPLES_RC_H
#define EXAMPLES_RC_H

#include <stdint.h>

#include <infiniband/verbs.h>

/** Move a new queue pair to INIT: receive requests can be posted now. `access` is what the peer may
 * do with our memory. */
void rc_init(struct ibv_qp *qp, int access);

/** Move it to RTR and RTS: connected to the queue pair `peer_qpn` at `peer_gid`, from the address
 * with this index. */
void rc_connect(struct ibv_qp *qp, uint32_t peer_qpn, const union ibv_gid *peer_gid,
		uint8_t sgid_index);

#endif
