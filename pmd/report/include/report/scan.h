/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the reports of this host's processes. */
#ifndef REPORT_SCAN_H
#define REPORT_SCAN_H

#include "report/set.h"

/* Limit of reports per process, so that nobody can hide other processes' reports behind many of
 * their own. A uroced has one report for each of its ports, a program one for each of its devices,
 * and a child may have those of its parent, too. */
#define SCAN_PROCESS_MAX 64
/* Descriptors of a process that are checked, the lowest first: reports are opened early. */
#define SCAN_FDS_MAX  16384
#define SCAN_USER_MAX 256 /* per user; the superuser's reports are not limited */

/**
 * Add the reports of all processes whose descriptors may be read: the user's own, or all if the
 * user is root. The set counts the reports that are left out, because they exceed a limit or cannot
 * be opened at once. MT-safe.
 *
 * @return
 *   0 or -errno.
 */
int report_scan(struct report_set *set);

#endif
