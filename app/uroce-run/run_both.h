/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce-run --also-system: the program gets a libibverbs.so.1 that shows the devices of the
 * system's library beside uroce's (lib/both). */
#ifndef UROCE_RUN_BOTH_H
#define UROCE_RUN_BOTH_H

#include <stddef.h>

/**
 * Put the directory of this libibverbs.so.1 in front of LD_LIBRARY_PATH, and name the system's
 * library in the environment. The dynamic linker looks for the latter as it does for programs, but
 * with the LD_LIBRARY_PATH that uroce-run was started with. Not MT-safe.
 *
 * @param library
 *   The directory of uroce's own libibverbs.so.1.
 * @return
 *   0; -ENOENT if a library is missing, -ENOTSUP if lib/both cannot work with the system's, or
 *   another -errno. All with `error`.
 */
int both_export(const char *library, char *error, size_t error_size);

#endif
