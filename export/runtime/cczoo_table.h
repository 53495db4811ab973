/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Reads a classifier from a table file (.cct), so that a new one needs no new code.
 *
 * cczoo_table_load() checks everything once, in memory that the caller keeps and nobody changes
 * afterwards; cczoo_table_classify() then checks nothing. Integers only, no allocation, no libc:
 * the same code runs in a kernel. Format: docs/table-format.md of cczoo.
 */
#ifndef CCZOO_TABLE_H
#define CCZOO_TABLE_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stddef.h>
#include <stdint.h>
#endif

#define CCZOO_TABLE_VERSION 1
#define CCZOO_TABLE_HASH_BYTES 32
/* Bounds on what a file may make classify do. */
#define CCZOO_TABLE_MAX_FEATURES 1024
#define CCZOO_TABLE_MAX_NODES (1u << 20)
#define CCZOO_TABLE_MAX_DEPTH 128

enum cczoo_table_kind {
	CCZOO_TABLE_TREE = 1,
	CCZOO_TABLE_FOREST = 2,
	CCZOO_TABLE_LINEAR = 3,
};

enum cczoo_table_error {
	CCZOO_TABLE_OK,
	CCZOO_TABLE_SHORT,
	CCZOO_TABLE_MAGIC,
	CCZOO_TABLE_OTHER_VERSION,
	CCZOO_TABLE_SIZE,
	CCZOO_TABLE_CHECKSUM,
	CCZOO_TABLE_KIND,
	CCZOO_TABLE_CLASSES,
	CCZOO_TABLE_FEATURES,
	CCZOO_TABLE_SCHEMA,
	CCZOO_TABLE_COUNTS,
	CCZOO_TABLE_UNUSED,
	CCZOO_TABLE_ROOT,
	CCZOO_TABLE_FEATURE,
	CCZOO_TABLE_CHILD,
	CCZOO_TABLE_DEPTH,
	CCZOO_TABLE_OVERFLOW,
	CCZOO_TABLE_LAYER,
	CCZOO_TABLE_CURVE,
	CCZOO_TABLE_ERRORS
};

/* A loaded file; points into it. Fields are the reader's own but for those named here. */
struct cczoo_table {
	const uint8_t *roots;
	const uint8_t *items;
	const uint8_t *model_hash; /* CCZOO_TABLE_HASH_BYTES of them: which model this is */
	int64_t cut;
	int64_t bias;
	uint32_t trees;
	uint32_t features;
	uint32_t kind; /* enum cczoo_table_kind */
};

/*
 * Load a file of size bytes for code that makes features int32_t numbers as the schema hash says
 * (CCZOO_TABLE_HASH_BYTES; NULL: any). 0, or enum cczoo_table_error with *table untouched.
 */
int cczoo_table_load(struct cczoo_table *table, const uint8_t *file, size_t size,
		     uint32_t features, const uint8_t *schema_hash);

/* Score of one observation: what is compared with the cut. */
int64_t cczoo_table_score(const struct cczoo_table *table, const int32_t *x);

/* Class of one observation: 1 where its score is above the cut, else 0. */
int cczoo_table_classify(const struct cczoo_table *table, const int32_t *x);

/* An enum cczoo_table_error in words. */
const char *cczoo_table_text(int error);

#endif
