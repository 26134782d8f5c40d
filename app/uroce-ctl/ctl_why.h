/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce-ctl why: what programs wait for, in sentences. */
#ifndef CTL_WHY_H
#define CTL_WHY_H

#include "report/devices.h"

/** Print a line for each queue pair, completion queue and connection of the programs that waits,
 * and for whom; or one that nothing does. */
void why_show(const struct report_devices *devices, const struct report_filter *filter);

#endif
