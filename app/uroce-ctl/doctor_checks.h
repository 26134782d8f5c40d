/* SPDX-License-Identifier: BSD-3-Clause */
/* The checks of this host, in groups. */
#ifndef DOCTOR_CHECKS_H
#define DOCTOR_CHECKS_H

struct doctor;

/** Make all checks, and tell the findings. */
void doctor_run(const struct doctor *doctor);

/* The groups, each in a file of its own. */
void doctor_memory(const struct doctor *doctor);
void doctor_kernel(const struct doctor *doctor);
void doctor_nics(const struct doctor *doctor);
void doctor_ifaces(const struct doctor *doctor);
void doctor_sockets(const struct doctor *doctor);

#endif
