/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding the reports of this host's processes. */
#ifndef REPORT_SCAN_H
#define REPORT_SCAN_H

#include "report/set.h"

/* Nobody hides the reports of others behind many of their own. An uroced has one for each of its
 * ports, a program one for each of its devices, and a child may have those of its parent too. */
#define SCAN_PROCESS_MAX 64
/* Descriptors of a process that are looked at, the lowest first: reports are opened early. */
#define SCAN_FDS_MAX  16384
#define SCAN_USER_MAX 256 /* of a user's processes; the superuser's are not limited */

/**
 * Take in the reports of all processes whose descriptors may be looked at: one's own, or
 * everybody's where one is root. Those that are left out are counted in the set: they are behind a
 * limit, or cannot be opened at once. MT-safe.
 *
 * @return
 *   0 or -errno.
 */
int report_scan(struct report_set *set);

#endif
