// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/*
 * Reader of table files with several scores. All checks are in cczoo_scores_load(); what it shares
 * with cczoo_table.c, which it takes in whole, it has from there.
 */
#include "cczoo_scores.h"
#include "cczoo_table.c"

enum { INTO_BYTES = 4, SCORE_BYTES = 4 };

/* Every leaf's value must be the index of a row. */
static int check_leaves(const struct cczoo_table *table, uint32_t nodes, uint32_t rows)
{
	for (uint32_t i = 0; i < nodes; i++) {
		const uint8_t *node = table->items + (size_t)i * NODE_BYTES;

		if (!u32_at(node + 4) && u32_at(node) >= rows)
			return CCZOO_TABLE_CHILD;
	}
	return CCZOO_TABLE_OK;
}

static int check_into(const struct cczoo_scores *model)
{
	for (uint32_t i = 0; i < model->table.trees; i++)
		if (u32_at(model->into + (size_t)i * INTO_BYTES) >= model->labels)
			return CCZOO_TABLE_CLASSES;
	return CCZOO_TABLE_OK;
}

int cczoo_scores_load(struct cczoo_scores *model, const uint8_t *file, size_t size,
		      uint32_t features, uint32_t labels, const uint8_t *schema_hash)
{
	struct cczoo_scores m = { .labels = labels };
	struct cczoo_table *t = &m.table;
	int error = check_head(file, size);
	int64_t rows, places;
	uint32_t nodes;
	uint64_t body;

	if (error)
		return error;
	t->kind = file[AT_KIND];
	if (t->kind != CCZOO_SCORES_KIND)
		return CCZOO_TABLE_KIND;
	if (!labels || file[AT_CLASSES] != labels)
		return CCZOO_TABLE_CLASSES;
	t->features = u32_at(file + AT_FEATURES);
	if (!t->features || t->features > CCZOO_TABLE_MAX_FEATURES || t->features != features)
		return CCZOO_TABLE_FEATURES;
	if (schema_hash && !same(file + AT_SCHEMA, schema_hash, CCZOO_TABLE_HASH_BYTES))
		return CCZOO_TABLE_SCHEMA;
	t->trees = u32_at(file + AT_PARTS);
	nodes = u32_at(file + AT_ITEMS);
	rows = s64_at(file + AT_CUT);
	places = s64_at(file + AT_BIAS);
	if (!t->trees || !nodes || nodes > CCZOO_TABLE_MAX_NODES || rows < 0 ||
	    rows > CCZOO_TABLE_MAX_NODES || places < 0 || places > MAX_SHIFT)
		return CCZOO_TABLE_COUNTS;
	body = (uint64_t)t->trees * (ROOT_BYTES + (rows ? 0 : INTO_BYTES)) +
	       (uint64_t)nodes * NODE_BYTES + (uint64_t)rows * labels * SCORE_BYTES;
	if (body != size - HEAD_BYTES - CHECKSUM_BYTES)
		return CCZOO_TABLE_COUNTS;
	m.row_count = (uint32_t)rows;
	m.places = (uint32_t)places;
	t->roots = file + HEAD_BYTES;
	m.into = t->roots + (size_t)t->trees * ROOT_BYTES;
	t->items = m.into + (rows ? 0 : (size_t)t->trees * INTO_BYTES);
	m.rows = t->items + (size_t)nodes * NODE_BYTES;
	t->model_hash = file + AT_MODEL;
	error = check_trees(t, nodes);
	if (!error)
		error = rows ? check_leaves(t, nodes, m.row_count) : check_into(&m);
	if (!error)
		*model = m;
	return error;
}

void cczoo_scores(const struct cczoo_scores *model, const int32_t *x, int64_t *scores)
{
	for (uint32_t i = 0; i < model->labels; i++)
		scores[i] = 0;
	for (uint32_t tree = 0; tree < model->table.trees; tree++) {
		int32_t value = walk(&model->table, tree, x);
		const uint8_t *row;

		if (!model->row_count) {
			scores[u32_at(model->into + (size_t)tree * INTO_BYTES)] += value;
			continue;
		}
		row = model->rows + (size_t)value * model->labels * SCORE_BYTES;
		for (uint32_t i = 0; i < model->labels; i++)
			scores[i] += s32_at(row + i * SCORE_BYTES);
	}
}

int cczoo_scores_classify(const struct cczoo_scores *model, const int32_t *x, int64_t *scores)
{
	int best = 0;

	cczoo_scores(model, x, scores);
	for (uint32_t i = 1; i < model->labels; i++)
		if (scores[i] > scores[best])
			best = (int)i;
	return best;
}
