/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The verb "kvtier ns tiers".
 */
#ifndef KVTIER_NS_TIERS_H
#define KVTIER_NS_TIERS_H

int ns_tiers(int argc, char **argv);

#endif /* KVTIER_NS_TIERS_H */
