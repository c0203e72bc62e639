// SPDX-License-Identifier: GPL-2.0
/*
 * A plugin of the emulator: a processor of the machine that says "pause" lets others run.
 *
 * A processor of the machine is a thread here, and more of those run than there are processors.
 * One that waits for a lock spins, and says so with this instruction, as on any machine. Here the
 * lock's holder may be a thread that has been put off the processor, and then the other spins for
 * as long as the scheduler lets it: without this a third of what the tests take was such waiting, and
 * more of it the busier the processors were. The emulator itself goes round its loop once at each
 * "pause" and does not yield. What is executed in the machine, and in which order one of its
 * processors executes it, is as without the plugin.
 *
 * No header of the plugin interface is in Debian's packages: this declares what is used of it,
 * as it is from version 3 of the interface on (QEMU 9.1).
 */

#include <sched.h>
#include <stddef.h>
#include <stdint.h>

#define KVT_PLUGIN_API_VERSION	4
#define KVT_PLUGIN_CB_NO_REGS	0

#define EXPORTED __attribute__((visibility("default")))

struct qemu_info_t;
struct qemu_plugin_insn;
struct qemu_plugin_tb;

typedef void (*insn_exec_fn)(unsigned int vcpu, void *data);
typedef void (*tb_trans_fn)(uint64_t plugin, struct qemu_plugin_tb *tb);

extern void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t plugin, tb_trans_fn fn);
extern void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, insn_exec_fn fn,
						   int flags, void *data);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb,
							size_t i);
extern size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
extern size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *buf, size_t len);

/* What the emulator looks up by name. */
extern EXPORTED int qemu_plugin_version;
extern EXPORTED int qemu_plugin_install(uint64_t plugin, const struct qemu_info_t *info, int argc,
					char **argv);

int qemu_plugin_version = KVT_PLUGIN_API_VERSION;

static void yield(unsigned int vcpu, void *data)
{
	(void)vcpu;
	(void)data;
	sched_yield();
}

static int is_pause(const struct qemu_plugin_insn *insn)
{
	uint8_t code[2];

	return qemu_plugin_insn_size(insn) == sizeof(code) &&
	       qemu_plugin_insn_data(insn, code, sizeof(code)) == sizeof(code) &&
	       code[0] == 0xf3 && code[1] == 0x90;
}

/* Called once for each piece of code that is translated. */
static void translated(uint64_t plugin, struct qemu_plugin_tb *tb)
{
	struct qemu_plugin_insn *insn;
	size_t i;

	(void)plugin;
	for (i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
		insn = qemu_plugin_tb_get_insn(tb, i);
		if (is_pause(insn))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, yield, KVT_PLUGIN_CB_NO_REGS,
							       NULL);
	}
}

int qemu_plugin_install(uint64_t plugin, const struct qemu_info_t *info, int argc, char **argv)
{
	(void)info;
	(void)argc;
	(void)argv;
	qemu_plugin_register_vcpu_tb_trans_cb(plugin, translated);
	return 0;
}
