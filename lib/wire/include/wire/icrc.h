/* SPDX-License-Identifier: BSD-3-Clause */
/* The invariant CRC of RoCEv2 (IBTA 7.8.1 and A17.3.4): CRC-32 over a packet whose changeable
 * fields read as ones. */
#ifndef WIRE_ICRC_H
#define WIRE_ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Return the CRC state after the headers of a packet, from the IP header to the last extended
 * header. MT-safe.
 *
 * @param l3
 *   The IP header.
 * @param l3_len
 *   Is 20 for IPv4 without options, 40 for IPv6.
 * @param headers_len
 *   Bytes from `l3` to the payload; at most ICRC_HEADERS_MAX, at least IP, UDP and BTH.
 */
uint32_t icrc_headers(const uint8_t *l3, size_t l3_len, size_t headers_len);

#define ICRC_HEADERS_MAX 128

/** Copy headers to `dst`, and return what icrc_headers would: each byte is read once. MT-safe. */
uint32_t icrc_copy_headers(uint8_t *dst, const uint8_t *l3, size_t l3_len, size_t headers_len);

/** Return the CRC state after `len` more bytes. MT-safe. */
uint32_t icrc_update(uint32_t state, const void *data, size_t len);

/** Copy `len` bytes and return the CRC state after them; ranges do not overlap. MT-safe. */
uint32_t icrc_copy(uint32_t state, void *dst, const void *src, size_t len);

/**
 * Do what icrc_copy does, with non-temporal stores where the processor has them: the bytes go past
 * the caches. These stores are not ordered with later ones. Call `rte_wmb` before another thread is
 * told of the bytes. MT-safe.
 */
uint32_t icrc_copy_past_caches(uint32_t state, void *dst, const void *src, size_t len);

/** Return the CRC state after `len` zero bytes, in O(log len). MT-safe. */
uint32_t icrc_zeros(uint32_t state, size_t len);

/**
 * Return the factor for icrc_move over `len` bytes, in O(log len). A negative `len` goes back.
 * MT-safe.
 */
uint32_t icrc_distance(int32_t len);

/**
 * CRC-32 is linear: if bytes of a packet change, its ICRC changes by a value that depends only on
 * the bits that differ, and on how far they are before the end. MT-safe.
 *
 * @param difference
 *   Of four bytes, the first one lowest: the bits that differ.
 * @param distance
 *   icrc_distance of the bytes from the first of them to the end of what the ICRC covers.
 * @return
 *   The bits of the state that differ. With the distance back: the difference of the bytes from
 *   that of the states.
 */
uint32_t icrc_move(uint32_t difference, uint32_t distance);

/** Write the finished CRC at `dst` in the wire's byte order. MT-safe. */
void icrc_store(uint32_t state, uint8_t dst[4]);

/** Return the CRC at `src`, in the form that icrc_store takes. MT-safe. */
uint32_t icrc_load(const uint8_t src[4]);

#endif
