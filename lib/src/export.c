// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Leased blocks as a dma-buf, for drivers that import those.
 */
#include "internal.h"

KVTI_EXPORT int kvtier_export(struct kvtier_ns *ns, const uint64_t *handles,
			      uint32_t nr, uint64_t *bytes)
{
	struct kvtier_export cmd = {
		.size = sizeof(cmd),
		.nr = nr,
		.fd = -1,
		.handles = kvti_addr(handles),
	};
	int ret = kvti_ioctl(ns->fd, KVTIER_OP_EXPORT, &cmd);

	if (ret)
		return ret;
	if (bytes)
		*bytes = cmd.bytes;
	return cmd.fd;
}
