/* SPDX-License-Identifier: BSD-3-Clause */
/* Attach to a port that another process owns. */
#ifndef ATTACH_ATTACH_H
#define ATTACH_ATTACH_H

#include <stdint.h>

struct cm_ports_ops;
struct link;
struct xrc_share_ops;

#define SHARE_SOCKET_DEFAULT "/run/uroce/uroced.sock"

/* Properties of the device on a shared port, besides its link. */
struct share_facts {
	uint32_t qpn_first;
	uint32_t qpn_count;
	int32_t owner_pid;
	uint32_t ports;	 /* that the owner shares; also set if this one was unplugged (-ENODEV) */
	char name[64];	 /* of the device; "": the program chooses */
	uint32_t max_qp; /* 0: no limit */
	uint64_t max_memory; /* bytes registered; 0: no limit */
	char cc[8];	     /* the owner's choice of congestion control; "": none was made */
	char unique[512];
};

/**
 * Attach. After this call the link is as link_open leaves it. Needs no EAL. link->port.engines is
 * set before. Not MT-safe.
 *
 * @param socket_path
 *   Where the owner listens.
 * @param number
 *   The index of the owner's port; the first is 0.
 * @param report_fd
 *   The process's report, which the owner may read (report/write.h).
 * @return
 *   0 or -errno (logged).
 */
int share_attach(struct link *link, const char *socket_path, uint32_t number, int report_fd,
		 struct share_facts *facts);

/** Return the process id of the owner that an attached process has now; 0: it is not known.
 * Engine's thread. */
int32_t share_owner_pid(const struct link *link);

/** Return the operations by which an attached process gets CM ports, for device->cm_ports. NULL:
 * the process owns the link itself. MT-safe. */
const struct cm_ports_ops *share_ports(const struct link *link, void **user);

/** Return the operations by which an attached process shares XRC domains, for device->xrc_share.
 * NULL: the process owns the link itself. MT-safe. */
const struct xrc_share_ops *share_xrc_ops(const struct link *link, void **user);

/**
 * Attach without sharing memory: the port becomes a memif client whose server is the owner. After
 * this call the port is as port_prepare leaves it. Needs no EAL. Not MT-safe.
 *
 * @param socket_path
 *   Where the owner listens for isolated programs.
 * @return
 *   0 or -errno (logged).
 */
int share_isolate(struct link *link, const char *socket_path, int report_fd,
		  struct share_facts *facts);

#endif
