/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the checks of all groups. */
#include "doctor_checks.h"

void doctor_run(const struct doctor *doctor)
{
	doctor_memory(doctor);
	doctor_kernel(doctor);
	doctor_nics(doctor);
	doctor_ifaces(doctor);
	doctor_sockets(doctor);
}
