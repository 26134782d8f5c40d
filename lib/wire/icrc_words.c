/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRC-32 by shifts of 64-bit words, for processors without carry-less multiplication. Most of these
 * are emulated, and on them a load from a table costs many times as much as a shift.
 *
 * The CRC's polynomial divides x^300 + x^155 + x^117 + x^89 + 1. So a bit may be deleted if the
 * bits at distances of 145, 183, 211 and 300 behind it are inverted: the remainder stays the same.
 * Each word is deleted in this way when it is read, and its changes are kept for the five words
 * behind it. Only the last bytes need tables.
 */
#include <string.h>

#include <rte_byteorder.h>

#include "wire/icrc_kernel.h"

#define WORD_BYTES sizeof(uint64_t)
#define BEHIND	   5 /* number of following words that a word changes */
#define GROUP	   (BEHIND * WORD_BYTES)
#define TABLES	   8
#define POLYNOMIAL 0xedb88320u /* bit-reflected */

/* tables[n][b]: the change of the CRC by byte b if n bytes follow it. Constant from main on. */
static uint32_t tables[TABLES][256];

/* Make the tables before an implementation is chosen: other constructors may ask for CRCs. */
__attribute__((constructor(101))) static void make_tables(void)
{
	for (uint32_t byte = 0; byte < 256; byte++) {
		uint32_t crc = byte;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
		tables[0][byte] = crc;
	}
	for (int n = 1; n < TABLES; n++)
		for (uint32_t byte = 0; byte < 256; byte++) {
			const uint32_t crc = tables[n - 1][byte];

			tables[n][byte] = crc >> 8 ^ tables[0][crc & 0xff];
		}
}

/* Load a word; the first byte in memory is the lowest. */
static inline uint64_t load_word(const uint8_t *from)
{
	uint64_t word;

	memcpy(&word, from, sizeof(word));
	return rte_le_to_cpu_64(word);
}

static inline void store_word(uint8_t *to, uint64_t word)
{
	word = rte_cpu_to_le_64(word);
	memcpy(to, &word, sizeof(word));
}

/* Return the register (a state without its inversion) after a word to which it was added. */
static inline uint32_t take_word(uint64_t word)
{
	return tables[7][word & 0xff] ^ tables[6][word >> 8 & 0xff] ^ tables[5][word >> 16 & 0xff] ^
	       tables[4][word >> 24 & 0xff] ^ tables[3][word >> 32 & 0xff] ^
	       tables[2][word >> 40 & 0xff] ^ tables[1][word >> 48 & 0xff] ^ tables[0][word >> 56];
}

static inline uint32_t take_byte(uint32_t reg, uint8_t byte)
{
	return reg >> 8 ^ tables[0][(reg ^ byte) & 0xff];
}

/* Source and destination of the bytes; `to` is NULL if they are only read. */
struct stream {
	const uint8_t *from;
	uint8_t *to;
	size_t left;
};

/* Read each byte once, because the application may be changing it. */
static inline uint64_t next_word(struct stream *s)
{
	const uint64_t word = load_word(s->from);

	s->from += WORD_BYTES;
	s->left -= WORD_BYTES;
	if (s->to) {
		store_word(s->to, word);
		s->to += WORD_BYTES;
	}
	return word;
}

/* Delete a word. p0 to p4 hold the changes of this word and the four behind it; on return p0 holds
 * those of the fifth behind it. */
static inline void strike_out(uint64_t word, uint64_t *p0, uint64_t *p2, uint64_t *p3, uint64_t *p4)
{
	word ^= *p0;
	*p2 ^= word << 17 ^ word << 55;
	*p3 ^= word >> 47 ^ word >> 9 ^ word << 19;
	*p4 ^= word >> 45 ^ word << 44;
	*p0 = word >> 20;
}

__attribute__((always_inline)) static inline uint32_t run(uint32_t state, struct stream s)
{
	uint64_t p0 = ~state, p1 = 0, p2 = 0, p3 = 0, p4 = 0;
	uint32_t reg;

	if (s.left >= 2 * GROUP) {
		do {
			strike_out(next_word(&s), &p0, &p2, &p3, &p4);
			strike_out(next_word(&s), &p1, &p3, &p4, &p0);
			strike_out(next_word(&s), &p2, &p4, &p0, &p1);
			strike_out(next_word(&s), &p3, &p0, &p1, &p2);
			strike_out(next_word(&s), &p4, &p1, &p2, &p3);
		} while (s.left >= 2 * GROUP);
		reg = take_word(next_word(&s) ^ p0);
		reg = take_word(next_word(&s) ^ p1 ^ reg);
		reg = take_word(next_word(&s) ^ p2 ^ reg);
		reg = take_word(next_word(&s) ^ p3 ^ reg);
		reg = take_word(next_word(&s) ^ p4 ^ reg);
	} else {
		reg = ~state;
	}
	while (s.left >= WORD_BYTES)
		reg = take_word(next_word(&s) ^ reg);
	for (; s.left > 0; s.left--) {
		const uint8_t byte = *s.from++;

		if (s.to)
			*s.to++ = byte;
		reg = take_byte(reg, byte);
	}
	return ~reg;
}

/*
 * Keep a loop within one page. An emulator links blocks of code directly only within a page, and
 * looks up each jump to another page. With a loop across a page's end, 64 KiB WRITEs take three
 * times as long.
 */
#define WITHIN_PAGE(size) __attribute__((aligned(size)))

WITHIN_PAGE(2048) static uint32_t update_words(uint32_t state, const void *data, size_t len)
{
	return run(state, (struct stream){.from = data, .left = len});
}

WITHIN_PAGE(4096) static uint32_t copy_words(uint32_t state, void *dst, const void *src, size_t len)
{
	return run(state, (struct stream){.from = src, .to = dst, .left = len});
}

static uint32_t masked_words(uint32_t state, const uint8_t *data, const uint8_t *ones, size_t len)
{
	uint32_t reg = ~state;
	size_t i;

	for (i = 0; len - i >= WORD_BYTES; i += WORD_BYTES)
		reg = take_word((load_word(data + i) | load_word(ones + i)) ^ reg);
	for (; i < len; i++)
		reg = take_byte(reg, data[i] | ones[i]);
	return ~reg;
}

static uint32_t copy_masked_words(uint32_t state, uint8_t *dst, const uint8_t *src,
				  const uint8_t *ones, size_t len)
{
	memcpy(dst, src, len);
	return masked_words(state, dst, ones, len);
}

static bool supported_words(void)
{
	return true;
}

/* Return true if this processor has no carry-less multiplication; otherwise ISA-L uses it, even
 * where our own implementations do not run. */
static bool suits_words(void)
{
#ifdef __x86_64__
	__builtin_cpu_init();
	return !__builtin_cpu_supports("pclmul");
#else
	return false;
#endif
}

const struct icrc_kernel icrc_kernel_words = {
	.name = "words",
	.supported = supported_words,
	.suits = suits_words,
	.update = update_words,
	.copy = copy_words,
	.masked = masked_words,
	.copy_masked = copy_masked_words,
};
