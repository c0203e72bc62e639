// SPDX-License-Identifier: GPL-2.0
/*
 * Randomized model test: model_main [STEPS [SEED]].
 *
 * Runs are short enough to be repeated under a debugger and are named by their
 * seed, which is printed before a failure can end the program.
 */
#include "model.h"
#include <inttypes.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#define RUN_STEPS	200000u
#define CHECK_EVERY	2000u

static u64 current_seed;

static u32 pick_random(void *src, u32 n)
{
	u64 *state = src, z = (*state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return (u32)(((z >> 32) * n) >> 32);
}

/* Every operation must have had an effect, or the test is not what it says. */
static bool covered(const u64 *done)
{
	bool ok = true;
	u32 i;

	for (i = 0; i < MODEL_OPS; i++) {
		printf("# %-14s %10" PRIu64 "\n", model_op_name(i), done[i]);
		ok &= done[i] > 0;
	}
	return ok;
}

static void run(u64 seed, u32 steps, u64 *done)
{
	u64 state = seed;
	struct model *x = malloc(sizeof(*x));
	u32 i;

	MINI_ASSERT(x);
	model_init(x, pick_random, &state);
	for (i = 0; i < steps; i++) {
		model_step(x);
		if (i % CHECK_EVERY == 0)
			model_check(x);
	}
	model_check(x);
	for (i = 0; i < MODEL_OPS; i++)
		done[i] += x->done[i];
	model_fini(x);
	free(x);
}

static void on_abort(int sig)
{
	char line[96];
	int len;

	(void)sig;
	len = snprintf(line, sizeof(line),
		       "# reproduce: model %u %" PRIu64 "\nnot ok model/random\n", RUN_STEPS,
		       current_seed);
	if (len > 0 && write(1, line, (size_t)len) < 0)
		_exit(3);
}

int main(int argc, char **argv)
{
	u64 steps = argc > 1 ? strtoull(argv[1], NULL, 0) : 2000000, at;
	u64 done[MODEL_OPS] = { 0 };
	bool given = argc > 2;

	current_seed = given ? strtoull(argv[2], NULL, 0) : (u64)time(NULL) << 20;
	signal(SIGABRT, on_abort);
	printf("# first seed %" PRIu64 ", %" PRIu64 " steps\n", current_seed, steps);
	fflush(stdout);
	for (at = 0; at < steps; at += RUN_STEPS, current_seed++)
		run(current_seed, steps - at < RUN_STEPS ? (u32)(steps - at) : RUN_STEPS, done);
	if (!covered(done)) {
		printf("not ok model/random\n");
		return 1;
	}
	printf("ok model/random\n");
	return 0;
}
