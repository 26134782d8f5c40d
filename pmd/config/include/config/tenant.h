/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings of a tenant of uroced: of a user's programs that pass through it. */
#ifndef CONFIG_TENANT_H
#define CONFIG_TENANT_H

#include <stddef.h>
#include <stdint.h>

#define TENANT_SETTINGS_MAX	   64 /* of one uroced */
#define TENANT_WEIGHT_MAX	   1000
#define TENANT_RATE_MIN		   UINT64_C(1000000)
#define TENANT_RATE_MAX		   UINT64_C(1000000000000)
#define TENANT_CONNECTION_RATE_MAX 1000000

enum tenant_kind {
	TENANT_USER,	 /* the isolated programs of a user */
	TENANT_OTHERS,	 /* those of each user or container without settings of its own */
	TENANT_ATTACHED, /* all attached programs */
};

struct tenant_settings {
	enum tenant_kind kind;
	char user[64];		  /* TENANT_USER: by name or number */
	uint32_t weight;	  /* 0: one */
	uint64_t rate;		  /* bytes a second; 0: no limit */
	uint32_t max_qp;	  /* queue pairs of all its programs on a port; 0: no limit */
	uint32_t connection_rate; /* requests for connections a second; 0: no limit */
};

/** Set one setting of a tenant by its name ("weight", "rate", "max-qp", "connection-rate"). 0;
 * -ENOENT for an unknown name; -EINVAL; with `error`. Not MT-safe on one struct. */
int tenant_set(struct tenant_settings *tenant, const char *name, const char *value, char *error,
	       size_t error_size);

/**
 * Read the sections [tenant USER], [tenants] and [attached] of an INI file.
 *
 * @return
 *   Their number, or -errno with `error`; -ENOSPC if there are more than `max`.
 */
int tenant_read_file(const char *path, struct tenant_settings *tenants, size_t max, char *error,
		     size_t error_size);

#endif
