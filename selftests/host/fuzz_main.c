// SPDX-License-Identifier: GPL-2.0
/*
 * libFuzzer target: each two bytes of input are one choice of the model test, so
 * the fuzzer breeds sequences of operations. Invariants are checked at the end
 * and on the way.
 */
#include "model.h"

#define CHECK_EVERY	512u

struct bytes {
	const u8 *at;
	size_t left;
};

static u32 pick_bytes(void *src, u32 n)
{
	struct bytes *b = src;
	u32 v;

	if (b->left < 2) {
		b->left = 0;
		return 0;
	}
	v = b->at[0] | (u32)b->at[1] << 8;
	b->at += 2;
	b->left -= 2;
	return v % n;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct bytes b = { .at = data, .left = size };
	struct model *x = malloc(sizeof(*x));
	u32 i;

	MINI_ASSERT(x);
	model_init(x, pick_bytes, &b);
	for (i = 1; b.left; i++) {
		model_step(x);
		if (i % CHECK_EVERY == 0)
			model_check(x);
	}
	model_check(x);
	model_fini(x);
	free(x);
	return 0;
}
