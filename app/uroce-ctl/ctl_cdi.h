/* SPDX-License-Identifier: BSD-3-Clause */
/* The command cdi: describes, for container engines, what a container needs to have the device
 * (Container Device Interface, cncf.io). */
#ifndef CTL_CDI_H
#define CTL_CDI_H

#include <stddef.h>

struct view_facts;

/* Where a container finds them. */
#define CDI_DIR	    "/opt/uroce"
#define CDI_LIBRARY CDI_DIR "/lib"
#define CDI_NEEDED  CDI_DIR "/needed"
#define CDI_PRELOAD CDI_DIR "/liburoce-view.so"
#define CDI_SOCKET  CDI_DIR "/isolated.sock"
#define CDI_VIEW    CDI_DIR "/view"

/* Paths of the host. */
struct cdi_host {
	const char *library; /* the directory of libibverbs.so.1 */
	const char *needed;  /* a library that those need beside the C library; NULL: none */
	const char *preload; /* liburoce-view.so */
	const char *socket;  /* uroced's, for isolated programs */
	const char *view;    /* a directory with the files of the device */
};

/** Return the specification as JSON, which the caller frees. NULL: no memory. MT-safe. */
char *cdi_text(const struct cdi_host *host);

/**
 * Write the files of a device into a directory of a directory, which are made if they are missing.
 * Not MT-safe.
 *
 * @return
 *   0; -EINVAL: the device has a name that settings refuse; -EPERM: others can write to one of the
 *   directories; or another -errno.
 */
int cdi_write_view(const char *parent, const char *name, const struct view_facts *facts);

/**
 * Print the specification for the uroced that listens at a socket. Attaches to it, and writes the
 * files of its device into /run/uroce-cdi, for a user other than root $XDG_RUNTIME_DIR/uroce-cdi.
 * Ends the process if it cannot attach. Not MT-safe.
 */
void cdi_run(const char *socket, char *error, size_t error_size);

#endif
