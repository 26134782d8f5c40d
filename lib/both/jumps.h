/* SPDX-License-Identifier: BSD-3-Clause */
/* Where each function of jumps.def jumps to. Private to this room. */
#ifndef BOTH_JUMPS_H
#define BOTH_JUMPS_H

/* No other file of the library has these; hidden, so that a jump needs no relocation. */
#define OURS(name)    extern __attribute__((visibility("hidden"))) void *jump_##name;
#define SYSTEMS(name) OURS(name)
#include "jumps.def"
#undef OURS
#undef SYSTEMS

#endif
