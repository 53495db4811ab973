// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/*
 * Reader of table files. All checks are in cczoo_table_load(): what it lets through,
 * cczoo_table_score() can walk without looking.
 */
#include "cczoo_table.h"

/* Offsets in a file; all numbers are little-endian. */
enum {
	AT_MAGIC = 0, AT_VERSION = 4, AT_KIND = 6, AT_CLASSES = 7, AT_SIZE = 8, AT_FEATURES = 12,
	AT_CUT = 16, AT_SCHEMA = 24, AT_MODEL = 56, AT_PARTS = 88, AT_ITEMS = 92, AT_BIAS = 96,
	HEAD_BYTES = 104,
};
enum { ROOT_BYTES = 4, NODE_BYTES = 8, WEIGHT_BYTES = 4, CHECKSUM_BYTES = 4 };

/* A node's link: index of its right child, and above it the feature compared; 0 in a leaf. */
#define RIGHT_BITS 20
#define RIGHT_MASK ((1u << RIGHT_BITS) - 1)
#define MAX_SHIFT 62
/* Trees walked side by side. */
#define LANES 4

/* Byte by byte, so that neither alignment nor byte order matters; compilers make one load of it. */
static inline uint32_t u32_at(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline int32_t s32_at(const uint8_t *p)
{
	return (int32_t)u32_at(p);
}

static inline int64_t s64_at(const uint8_t *p)
{
	return (int64_t)(u32_at(p) | (uint64_t)u32_at(p + 4) << 32);
}

/* CRC-32C (Castagnoli), four bits at a time: a small table that a cache doesn't notice. */
static uint32_t crc32c(const uint8_t *p, size_t size)
{
	static const uint32_t table[16] = {
		0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
		0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
		0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
	};
	uint32_t crc = 0xffffffff;

	for (size_t i = 0; i < size; i++) {
		crc ^= p[i];
		crc = crc >> 4 ^ table[crc & 15];
		crc = crc >> 4 ^ table[crc & 15];
	}
	return ~crc;
}

static int same(const uint8_t *a, const uint8_t *b, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (a[i] != b[i])
			return 0;
	return 1;
}

/*
 * One tree in preorder from node first on. A right child must start exactly where the left subtree
 * ended, so the right children still to come describe all of the rest: no cycle, no node with two
 * parents or none gets past this. *next is the node after the tree.
 */
static int check_tree(const uint8_t *nodes, uint32_t first, uint32_t end, uint32_t features,
		      uint32_t *next)
{
	/* Right children still to come, each with its depth above RIGHT_BITS. */
	uint32_t pending[CCZOO_TABLE_MAX_DEPTH];
	uint32_t waiting = 0, depth = 0;

	for (uint32_t i = first; i < end; i++) {
		uint32_t link = u32_at(nodes + (size_t)i * NODE_BYTES + 4);
		uint32_t right = link & RIGHT_MASK;

		if (link) {
			if (link >> RIGHT_BITS >= features)
				return CCZOO_TABLE_FEATURE;
			if (right < i + 2 || right >= end)
				return CCZOO_TABLE_CHILD;
			if (++depth > CCZOO_TABLE_MAX_DEPTH)
				return CCZOO_TABLE_DEPTH;
			pending[waiting++] = right | depth << RIGHT_BITS;
			continue;
		}
		if (!waiting) {
			*next = i + 1;
			return CCZOO_TABLE_OK;
		}
		waiting--;
		if ((pending[waiting] & RIGHT_MASK) != i + 1)
			return CCZOO_TABLE_CHILD;
		depth = pending[waiting] >> RIGHT_BITS;
	}
	return CCZOO_TABLE_CHILD;
}

static int check_trees(const struct cczoo_table *table, uint32_t nodes)
{
	uint32_t next = 0;

	for (uint32_t i = 0; i < table->trees; i++) {
		int error;

		if (u32_at(table->roots + (size_t)i * ROOT_BYTES) != next)
			return CCZOO_TABLE_ROOT;
		error = check_tree(table->items, next, nodes, table->features, &next);
		if (error)
			return error;
	}
	return next == nodes ? CCZOO_TABLE_OK : CCZOO_TABLE_ROOT;
}

/* No int32_t observation may overflow the sum: sum(|weight|) * 2^31 + |bias| < 2^63. */
static int check_weights(const struct cczoo_table *table)
{
	const int64_t most = (int64_t)1 << 62;
	uint64_t sum = 0;

	if (table->bias < -most || table->bias > most)
		return CCZOO_TABLE_OVERFLOW;
	for (uint32_t i = 0; i < table->features; i++) {
		int64_t weight = s32_at(table->items + (size_t)i * WEIGHT_BYTES);

		if (weight == -((int64_t)1 << 31))
			return CCZOO_TABLE_OVERFLOW;
		sum += (uint64_t)(weight < 0 ? -weight : weight);
	}
	if (sum >> 32)
		return CCZOO_TABLE_OVERFLOW;
	sum = (sum << 31) + (uint64_t)(table->bias < 0 ? -table->bias : table->bias);
	return sum >> 63 ? CCZOO_TABLE_OVERFLOW : CCZOO_TABLE_OK;
}

static int check_head(const uint8_t *file, size_t size)
{
	static const uint8_t magic[] = { 'C', 'C', 'Z', 'T' };

	if (size < HEAD_BYTES + CHECKSUM_BYTES)
		return CCZOO_TABLE_SHORT;
	if (!same(file + AT_MAGIC, magic, sizeof(magic)))
		return CCZOO_TABLE_MAGIC;
	if ((file[AT_VERSION] | file[AT_VERSION + 1] << 8) != CCZOO_TABLE_VERSION)
		return CCZOO_TABLE_OTHER_VERSION;
	if (u32_at(file + AT_SIZE) != size)
		return CCZOO_TABLE_SIZE;
	size -= CHECKSUM_BYTES;
	return crc32c(file, size) == u32_at(file + size) ? CCZOO_TABLE_OK : CCZOO_TABLE_CHECKSUM;
}

int cczoo_table_load(struct cczoo_table *table, const uint8_t *file, size_t size,
		     uint32_t features, const uint8_t *schema_hash)
{
	struct cczoo_table t = { 0 };
	uint32_t parts, items;
	int linear, error = check_head(file, size);
	uint64_t body;

	if (error)
		return error;
	t.kind = file[AT_KIND];
	if (t.kind < CCZOO_TABLE_TREE || t.kind > CCZOO_TABLE_LINEAR)
		return CCZOO_TABLE_KIND;
	if (file[AT_CLASSES] != 2)
		return CCZOO_TABLE_CLASSES;
	t.features = u32_at(file + AT_FEATURES);
	if (!t.features || t.features > CCZOO_TABLE_MAX_FEATURES || t.features != features)
		return CCZOO_TABLE_FEATURES;
	if (schema_hash && !same(file + AT_SCHEMA, schema_hash, CCZOO_TABLE_HASH_BYTES))
		return CCZOO_TABLE_SCHEMA;
	linear = t.kind == CCZOO_TABLE_LINEAR;
	parts = u32_at(file + AT_PARTS);
	items = u32_at(file + AT_ITEMS);
	if (linear ? parts > MAX_SHIFT || items != features :
		     !parts || !items || items > CCZOO_TABLE_MAX_NODES ||
			     (t.kind == CCZOO_TABLE_TREE && parts != 1))
		return CCZOO_TABLE_COUNTS;
	body = linear ? (uint64_t)items * WEIGHT_BYTES :
			(uint64_t)parts * ROOT_BYTES + (uint64_t)items * NODE_BYTES;
	if (body != size - HEAD_BYTES - CHECKSUM_BYTES)
		return CCZOO_TABLE_COUNTS;
	t.cut = s64_at(file + AT_CUT);
	t.bias = s64_at(file + AT_BIAS);
	if (!linear && t.bias)
		return CCZOO_TABLE_UNUSED;
	t.trees = linear ? 0 : parts;
	t.roots = file + HEAD_BYTES;
	t.items = t.roots + (size_t)t.trees * ROOT_BYTES;
	t.model_hash = file + AT_MODEL;
	error = linear ? check_weights(&t) : check_trees(&t, items);
	if (!error)
		*table = t;
	return error;
}

/* The node after this one; a leaf, whose link is 0, is its own next. Compiles without a branch. */
static inline const uint8_t *step(const uint8_t *nodes, const uint8_t *node, const int32_t *x)
{
	uint32_t link = u32_at(node + 4);
	const uint8_t *right = link ? nodes + (size_t)(link & RIGHT_MASK) * NODE_BYTES : node;
	const uint8_t *left = link ? node + NODE_BYTES : node;

	return x[link >> RIGHT_BITS] <= s32_at(node) ? left : right;
}

static inline const uint8_t *root_at(const struct cczoo_table *table, uint32_t tree)
{
	return table->items + (size_t)u32_at(table->roots + (size_t)tree * ROOT_BYTES) * NODE_BYTES;
}

/* Sum over LANES trees from this one on, side by side: their loads wait together. */
static inline int64_t walk_lanes(const struct cczoo_table *table, uint32_t tree, const int32_t *x)
{
	const uint8_t *node[LANES];
	int64_t sum = 0;
	uint32_t inner;

	for (uint32_t i = 0; i < LANES; i++)
		node[i] = root_at(table, tree + i);
	do {
		inner = 0;
		for (uint32_t i = 0; i < LANES; i++) {
			node[i] = step(table->items, node[i], x);
			inner |= u32_at(node[i] + 4);
		}
	} while (inner);
	for (uint32_t i = 0; i < LANES; i++)
		sum += s32_at(node[i]);
	return sum;
}

static inline int32_t walk(const struct cczoo_table *table, uint32_t tree, const int32_t *x)
{
	const uint8_t *node = root_at(table, tree);
	uint32_t link;

	while ((link = u32_at(node + 4)))
		node = x[link >> RIGHT_BITS] <= s32_at(node) ?
			       node + NODE_BYTES :
			       table->items + (size_t)(link & RIGHT_MASK) * NODE_BYTES;
	return s32_at(node);
}

int64_t cczoo_table_score(const struct cczoo_table *table, const int32_t *x)
{
	int64_t sum = table->bias;
	uint32_t tree = 0;

	for (; table->trees - tree >= LANES; tree += LANES)
		sum += walk_lanes(table, tree, x);
	for (; tree < table->trees; tree++)
		sum += walk(table, tree, x);
	if (table->kind == CCZOO_TABLE_LINEAR)
		for (uint32_t i = 0; i < table->features; i++)
			sum += (int64_t)x[i] * s32_at(table->items + (size_t)i * WEIGHT_BYTES);
	return sum;
}

int cczoo_table_classify(const struct cczoo_table *table, const int32_t *x)
{
	return cczoo_table_score(table, x) > table->cut;
}

const char *cczoo_table_text(int error)
{
	static const char *const text[CCZOO_TABLE_ERRORS] = {
		[CCZOO_TABLE_OK] = "loaded",
		[CCZOO_TABLE_SHORT] = "shorter than a table's head",
		[CCZOO_TABLE_MAGIC] = "not a table file of cczoo",
		[CCZOO_TABLE_OTHER_VERSION] = "another version of the format",
		[CCZOO_TABLE_SIZE] = "not as long as it says: cut off or added to",
		[CCZOO_TABLE_CHECKSUM] = "its checksum is wrong: damaged",
		[CCZOO_TABLE_KIND] = "a kind of model that this reader doesn't know",
		[CCZOO_TABLE_CLASSES] = "made for another number of classes",
		[CCZOO_TABLE_FEATURES] = "made for another number of features",
		[CCZOO_TABLE_SCHEMA] = "made for other features (schema hash)",
		[CCZOO_TABLE_COUNTS] = "its counts don't fit its length or its kind",
		[CCZOO_TABLE_UNUSED] = "a field that its kind doesn't use isn't 0",
		[CCZOO_TABLE_ROOT] = "its roots aren't where its trees start",
		[CCZOO_TABLE_FEATURE] = "a node compares a feature that there isn't",
		[CCZOO_TABLE_CHILD] = "its nodes aren't trees in preorder",
		[CCZOO_TABLE_DEPTH] = "a tree is deeper than 128 comparisons",
		[CCZOO_TABLE_OVERFLOW] = "its weighted sum could overflow",
		[CCZOO_TABLE_LAYER] = "a layer isn't one of this format",
		[CCZOO_TABLE_CURVE] = "its table of tanh isn't one",
	};

	return error >= 0 && error < CCZOO_TABLE_ERRORS ? text[error] : "unknown error";
}
