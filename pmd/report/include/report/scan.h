/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding the reports of this host's processes. */
#ifndef REPORT_SCAN_H
#define REPORT_SCAN_H

#include "report/set.h"

/** Take in the reports of all processes whose descriptors may be looked at: one's own, or
 * everybody's where one is root. MT-safe. 0 or -errno. */
int report_scan(struct report_set *set);

#endif
