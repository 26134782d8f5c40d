/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells which sanitizer a build has, for tests that cannot run with one. */
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
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define ADDRESS_SANITIZER 1
#else
#define ADDRESS_SANITIZER 0
#endif

#endif
