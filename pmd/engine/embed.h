/* SPDX-License-Identifier: BSD-3-Clause */
/* The provider's side of uroce_attach_port. */
#ifndef ENGINE_EMBED_H
#define ENGINE_EMBED_H

struct link;
struct settings;

/** Return the settings of the port that the program attaches, or has attached last; NULL if it has
 * attached none. */
const struct settings *embed_settings(void);

/** Open the link on that port. Returns 0 or -errno (logged). */
int embed_open_link(struct link *link);

#endif
