/* SPDX-License-Identifier: BSD-3-Clause */
/* The command doctor. */
#ifndef DOCTOR_SHOW_H
#define DOCTOR_SHOW_H

#include "ctl_output.h"
#include "doctor.h"

/** Show all findings about a host. */
void doctor_show(const struct doctor_host *host, struct output *output);

#endif
