/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Other devices, as public sources describe them (uroce-run --like): the limits that they report,
 * and what their drivers refuse, by which error. With one of them a device has only what both have.
 *
 * Without --like no device is chosen, and all of this returns what the caller has.
 */
#ifndef LIKE_LIKE_H
#define LIKE_LIKE_H

#include <stdint.h>

#include <infiniband/verbs.h>

enum like_figure {
#define LIKE_FIGURE(name, ...) LIKE_##name,
#include "like/like.def"
	LIKE_FIGURES,
};

enum like_lack {
#define LIKE_LACK(name, ...) LIKE_LACKS_##name,
#include "like/like.def"
	LIKE_LACKS,
};

/* No device is chosen (like_column). */
#define LIKE_NONE (-1)

/** Choose a device, before the first one is created; "" chooses none. Not MT-safe. 0, or -EINVAL if
 * there is no such device. */
int like_choose(const char *option);

/** Return the column of a device by its option, or LIKE_NONE. MT-safe. */
int like_find(const char *option);

/** Return the names of the devices, with commas between them. MT-safe. */
const char *like_names(void);

/** Return the column of the chosen device in the lists of like.def, or LIKE_NONE. MT-safe. */
int like_column(void);

/** Return the smaller of ours and the chosen device's. MT-safe. */
uint64_t like_most(enum like_figure figure, uint64_t ours);

/** Return 0, or the negative errno value by which the chosen device refuses this, and say why.
 * MT-safe. */
int like_refuses(enum like_lack what);

/** Return -EOPNOTSUPP, and say that the chosen device's driver does not have the call. MT-safe. */
int like_lacks_call(void);

/** Return the opcodes that the chosen device does not have: bits of enum ibv_wr_opcode. MT-safe. */
uint32_t like_lacking_opcodes(void);

/** Take from a device's answer what the chosen one does not have. MT-safe. */
void like_limit(struct ibv_device_attr_ex *attr);

#endif
