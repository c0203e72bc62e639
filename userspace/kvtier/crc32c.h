/* SPDX-License-Identifier: GPL-2.0 */
/*
 * CRC-32C as the kernel's crc32c() has it: no inversion at either end. With the
 * processor's instruction where there is one, else eight bytes at a time by tables.
 * Included by the flavours of kvt_env.h for user space, the tool's and the host
 * harness's, which define the types before.
 */
#ifndef KVTIER_CRC32C_H
#define KVTIER_CRC32C_H

#define KVT_CRC32C_POLY		0x82f63b78u

/* Filled on first use; threads that race write the same values. */
#pragma weak kvt_crc32c_table
u32 kvt_crc32c_table[8][256];

static inline void kvt_crc32c_init(void)
{
	u32 i, k, crc;

	for (i = 0; i < 256; i++) {
		for (crc = i, k = 0; k < 8; k++)
			crc = crc >> 1 ^ (crc & 1 ? KVT_CRC32C_POLY : 0);
		kvt_crc32c_table[0][i] = crc;
	}
	for (i = 0; i < 256; i++) {
		for (crc = kvt_crc32c_table[0][i], k = 1; k < 8; k++) {
			crc = crc >> 8 ^ kvt_crc32c_table[0][crc & 0xff];
			kvt_crc32c_table[k][i] = crc;
		}
	}
}

static inline u32 kvt_crc32c_soft(u32 crc, const u8 *p, size_t len)
{
	u32 (*t)[256] = kvt_crc32c_table;
	u32 a, b;

	if (!t[0][1])
		kvt_crc32c_init();
	for (; len >= 8; len -= 8, p += 8) {
		a = crc ^ (p[0] | (u32)p[1] << 8 | (u32)p[2] << 16 | (u32)p[3] << 24);
		b = p[4] | (u32)p[5] << 8 | (u32)p[6] << 16 | (u32)p[7] << 24;
		crc = t[7][a & 0xff] ^ t[6][a >> 8 & 0xff] ^ t[5][a >> 16 & 0xff] ^
		      t[4][a >> 24] ^ t[3][b & 0xff] ^ t[2][b >> 8 & 0xff] ^
		      t[1][b >> 16 & 0xff] ^ t[0][b >> 24];
	}
	for (; len; len--, p++)
		crc = crc >> 8 ^ t[0][(crc ^ *p) & 0xff];
	return crc;
}

#if defined(__x86_64__)
kvt_env_attr(target("sse4.2"))
static inline u32 kvt_crc32c_hard(u32 crc, const u8 *p, size_t len)
{
	u64 word, c = crc;

	for (; len >= 8; len -= 8, p += 8) {
		memcpy(&word, p, sizeof(word));
		c = __builtin_ia32_crc32di(c, word);
	}
	for (; len; len--, p++)
		c = __builtin_ia32_crc32qi((u32)c, *p);
	return (u32)c;
}
#endif

static inline u32 crc32c(u32 crc, const void *data, size_t len)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("sse4.2"))
		return kvt_crc32c_hard(crc, data, len);
#endif
	return kvt_crc32c_soft(crc, data, len);
}

#endif /* KVTIER_CRC32C_H */
