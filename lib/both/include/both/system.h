/* SPDX-License-Identifier: BSD-3-Clause */
/* How uroce-run tells this room's libibverbs.so.1 where the system's is. */
#ifndef BOTH_SYSTEM_H
#define BOTH_SYSTEM_H

#define BOTH_SYSTEM_VARIABLE "UROCE_SYSTEM_VERBS" /* environment: an absolute path */

#endif
