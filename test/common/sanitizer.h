/* SPDX-License-Identifier: BSD-3-Clause */
/* What a test may not ask of a build with the thread sanitizer. */
#ifndef TEST_COMMON_SANITIZER_H
#define TEST_COMMON_SANITIZER_H

#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define THREAD_SANITIZER 1
#else
#define THREAD_SANITIZER 0
#endif

#endif
