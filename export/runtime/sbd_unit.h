/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What sbd_driver.c calls: sbd_unit.c, which is compiled for SUBFLOWS subflows as a kernel would
 * compile it and holds nothing but calls of the exported header, so that its size is the header's.
 */
#ifndef CCZOO_SBD_UNIT_H
#define CCZOO_SBD_UNIT_H

#include <stddef.h>
#include <stdint.h>

size_t unit_bytes(void);
void unit_init(void *s, int wifi);
void unit_sample(void *s, int subflow, uint64_t time_us, uint32_t rtt_us, int ca_state);
void unit_ack(void *s, int subflow, uint64_t time_us, uint64_t acked_bytes);
int unit_ready(const void *s);
#if SUBFLOWS > 2
int unit_features(void *s, int a, int b, int32_t *x);
int unit_classify(void *s, int a, int b);
int unit_partition(void *s, uint8_t *group);
#else
int unit_features(void *s, int32_t *x);
int unit_classify(void *s);
#endif
int unit_verdict(void *s); /* of all windows until now; -1: don't know, or there are none */
int64_t unit_window(const void *s);
void unit_again(void *s); /* puts back the window that was taken */

#endif
