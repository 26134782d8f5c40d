/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of librdmacm that rdma_cma.h of rdma-core 44 lacks. Later releases declare them, so each
 * has a name of ours here, and the symbol that programs use. Manual pages: those of rdma-core 65.
 */
#ifndef RDMACM_LATER_H
#define RDMACM_LATER_H

#include <stdint.h>

#include <rdma/rdma_cma.h>

/* enum rdma_cm_event_type */
#define LATER_EVENT_ADDRINFO_RESOLVED ((enum rdma_cm_event_type)16)
#define LATER_EVENT_ADDRINFO_ERROR    ((enum rdma_cm_event_type)17)
#define LATER_EVENT_USER	      ((enum rdma_cm_event_type)18)
#define LATER_EVENT_INTERNAL	      ((enum rdma_cm_event_type)19)

/* rdma_addrinfo.ai_flags */
#define LATER_RAI_SA  0x10
#define LATER_RAI_DNS 0x20

/** Resolve a name as rdma_getaddrinfo does, and raise ADDRINFO_RESOLVED or ADDRINFO_ERROR. The name
 * is resolved before the call returns. MT-safe. 0, or -1 with errno and without an event;
 * rdma_resolve_addrinfo(3). */
int later_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
			   const struct rdma_addrinfo *hints) __asm__("rdma_resolve_addrinfo");

/** Return what the last rdma_resolve_addrinfo found, once; rdma_freeaddrinfo frees it. MT-safe. 0,
 * or -1 with errno; rdma_query_addrinfo(3). */
int later_query_addrinfo(struct rdma_cm_id *id,
			 struct rdma_addrinfo **info) __asm__("rdma_query_addrinfo");

/** Raise an event of the program's own, RDMA_CM_EVENT_USER. MT-safe. 0, or -1 with errno;
 * rdma_write_cm_event(3). */
int later_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status,
			 uint64_t arg) __asm__("rdma_write_cm_event");

#endif
