// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/*
 * Reader of table files with a network. All checks are in cczoo_network_load(); what it shares
 * with cczoo_table.c, which it takes in whole, it has from there.
 */
#include "cczoo_network.h"
#include "cczoo_table.c"

enum { LAYER_BYTES = 4, CURVE_BYTES = 20, ENTRY_BYTES = 4, BIAS_BYTES = 8 };
enum { IDENTITY, RELU, LOGISTIC, TANH };

struct layer {
	const uint8_t *biases;
	const uint8_t *weights;
	uint32_t inputs;
	uint32_t outputs;
	uint32_t shift;
	uint32_t activation;
};

/* What the head of the layer says that gets so many numbers. */
static inline struct layer head_at(const struct cczoo_network *network, uint32_t i,
				   uint32_t inputs)
{
	const uint8_t *head = network->layers + i * LAYER_BYTES;
	struct layer layer = { .inputs = inputs };

	layer.outputs = head[0] | (uint32_t)head[1] << 8;
	layer.shift = head[2];
	layer.activation = head[3];
	return layer;
}

/* The same of a file of the right length, with the biases that start there and the weights. */
static inline struct layer layer_at(const struct cczoo_network *network, uint32_t i,
				    uint32_t inputs, const uint8_t *sums)
{
	struct layer layer = head_at(network, i, inputs);

	layer.biases = sums;
	layer.weights = sums + (size_t)layer.outputs * BIAS_BYTES;
	return layer;
}

static inline const uint8_t *behind(const struct layer *layer)
{
	return layer->weights + (size_t)layer->outputs * layer->inputs * WEIGHT_BYTES;
}

/* Every layer's head; *bytes is what all biases and weights take. */
static int check_layers(struct cczoo_network *network, uint64_t *bytes)
{
	uint32_t inputs = network->features, widest = 0;

	*bytes = 0;
	for (uint32_t i = 0; i < network->layer_count; i++) {
		struct layer layer = head_at(network, i, inputs);
		int last = i + 1 == network->layer_count;

		if (!layer.outputs || layer.outputs > CCZOO_NETWORK_MAX_WIDTH ||
		    layer.shift > MAX_SHIFT || layer.activation > TANH ||
		    (layer.activation >= LOGISTIC && !network->entry_count) ||
		    (last && (layer.shift || layer.activation != IDENTITY)))
			return CCZOO_TABLE_LAYER;
		*bytes += (uint64_t)layer.outputs * (BIAS_BYTES + (uint64_t)inputs * WEIGHT_BYTES);
		inputs = layer.outputs;
		if (!last && inputs > widest)
			widest = inputs;
	}
	network->outputs = inputs;
	network->scratch = 2 * widest;
	if (inputs != network->labels && (network->labels != 2 || inputs != 1))
		return CCZOO_TABLE_CLASSES;
	return CCZOO_TABLE_OK;
}

/*
 * From 0 upwards to one at most, never falling. The position of the first number that the last
 * entry answers must fit 63 bits; without a division, that number is found bit by bit.
 */
static int check_curve(const struct cczoo_network *network, uint32_t places)
{
	uint32_t width = network->frac + network->down;
	uint64_t last = (uint64_t)network->entry_count - 1, half, end, before = 0;

	if (network->entry_count < 2 || network->entry_count > CCZOO_NETWORK_MAX_ENTRIES ||
	    places > 31 || !network->q || network->q > 30 || !network->mul ||
	    network->mul >> 31 || !network->down || network->down > 61 || network->frac > 20)
		return CCZOO_TABLE_CURVE;
	if (u32_at(network->entries) ||
	    u32_at(network->entries + (size_t)last * ENTRY_BYTES) > 1u << network->q)
		return CCZOO_TABLE_CURVE;
	for (uint64_t i = 0; i < last; i++) {
		const uint8_t *entry = network->entries + (size_t)i * ENTRY_BYTES;

		if (u32_at(entry) > u32_at(entry + ENTRY_BYTES))
			return CCZOO_TABLE_CURVE;
	}
	if (width > 62 || last >> (63 - width))
		return CCZOO_TABLE_CURVE;
	half = (uint64_t)1 << (network->down - 1);
	end = last << width;
	for (int bit = 31; bit >= 0; bit--) {
		uint64_t more = before | (uint64_t)1 << bit;

		if (more * network->mul + half < end)
			before = more;
	}
	half += (before + 1) * network->mul;
	return half < end || half >> 63 ? CCZOO_TABLE_CURVE : CCZOO_TABLE_OK;
}

/* No number up to 2^bits may overflow a sum: sum(|weight|) * 2^bits + |bias| < 2^63. */
static int check_sums(const struct layer *layer, uint32_t bits)
{
	const int64_t most = (int64_t)1 << 62;

	for (uint32_t i = 0; i < layer->outputs; i++) {
		const uint8_t *weights = layer->weights + (size_t)i * layer->inputs * WEIGHT_BYTES;
		int64_t bias = s64_at(layer->biases + (size_t)i * BIAS_BYTES);
		uint64_t sum = 0, room = ((uint64_t)1 << 63) - 1;

		if (bias < -most || bias > most)
			return CCZOO_TABLE_OVERFLOW;
		room -= (uint64_t)(bias < 0 ? -bias : bias);
		for (uint32_t j = 0; j < layer->inputs; j++) {
			int64_t weight = s32_at(weights + (size_t)j * WEIGHT_BYTES);

			if (weight == -((int64_t)1 << 31))
				return CCZOO_TABLE_OVERFLOW;
			sum += (uint64_t)(weight < 0 ? -weight : weight);
		}
		if (sum > room >> bits)
			return CCZOO_TABLE_OVERFLOW;
	}
	return CCZOO_TABLE_OK;
}

/* Layers, table and sums of a body of so many bytes. */
static int check_body(struct cczoo_network *network, uint64_t body)
{
	uint64_t heads = (uint64_t)network->layer_count * LAYER_BYTES, sums;
	uint64_t curve = network->entry_count ?
				 CURVE_BYTES + (uint64_t)network->entry_count * ENTRY_BYTES :
				 0;
	uint32_t inputs = network->features, bits = 31;
	const uint8_t *at;
	int error;

	if (body < heads + curve)
		return CCZOO_TABLE_COUNTS;
	error = check_layers(network, &sums);
	if (error)
		return error;
	if (body != heads + curve + sums)
		return CCZOO_TABLE_COUNTS;
	at = network->layers + heads;
	network->sums = at + curve;
	if (curve) {
		network->q = u32_at(at + 4);
		network->mul = u32_at(at + 8);
		network->down = u32_at(at + 12);
		network->frac = u32_at(at + 16);
		network->entries = at + CURVE_BYTES;
		error = check_curve(network, u32_at(at));
	}
	at = network->sums;
	for (uint32_t i = 0; i < network->layer_count && !error; i++) {
		struct layer layer = layer_at(network, i, inputs, at);

		error = check_sums(&layer, bits);
		inputs = layer.outputs;
		bits = layer.activation >= LOGISTIC ? network->q : 31;
		at = behind(&layer);
	}
	return error;
}

int cczoo_network_load(struct cczoo_network *network, const uint8_t *file, size_t size,
		       uint32_t features, uint32_t labels, const uint8_t *schema_hash)
{
	struct cczoo_network n = { .labels = labels };
	int error = check_head(file, size);
	int64_t places;

	if (error)
		return error;
	if (file[AT_KIND] != CCZOO_NETWORK_KIND)
		return CCZOO_TABLE_KIND;
	if (!labels || file[AT_CLASSES] != labels)
		return CCZOO_TABLE_CLASSES;
	n.features = u32_at(file + AT_FEATURES);
	if (!n.features || n.features > CCZOO_TABLE_MAX_FEATURES || n.features != features)
		return CCZOO_TABLE_FEATURES;
	if (schema_hash && !same(file + AT_SCHEMA, schema_hash, CCZOO_TABLE_HASH_BYTES))
		return CCZOO_TABLE_SCHEMA;
	n.layer_count = u32_at(file + AT_PARTS);
	n.entry_count = u32_at(file + AT_ITEMS);
	places = s64_at(file + AT_BIAS);
	if (!n.layer_count || n.layer_count > CCZOO_NETWORK_MAX_LAYERS || places < 0 ||
	    places > MAX_SHIFT)
		return CCZOO_TABLE_COUNTS;
	n.places = (uint32_t)places;
	n.cut = s64_at(file + AT_CUT);
	n.layers = file + HEAD_BYTES;
	n.model_hash = file + AT_MODEL;
	error = check_body(&n, size - HEAD_BYTES - CHECKSUM_BYTES);
	if (!error)
		*network = n;
	return error;
}

/* tanh of a number with the table's fractional bits; odd, and constant beyond the table. */
static int32_t curve_at(const struct cczoo_network *network, int64_t x)
{
	uint64_t size = x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
	uint64_t at = (size * network->mul + ((uint64_t)1 << (network->down - 1))) >> network->down;
	uint64_t i = at >> network->frac, last = network->entry_count - 1;
	const uint8_t *entry = network->entries + (size_t)(i < last ? i : last) * ENTRY_BYTES;
	int32_t found = s32_at(entry);

	if (i < last && network->frac) {
		int64_t rest = (int64_t)(at & (((uint64_t)1 << network->frac) - 1));
		int64_t rise = (int64_t)s32_at(entry + ENTRY_BYTES) - found;

		rise = rise * rest + ((int64_t)1 << (network->frac - 1));
		found += (int32_t)(rise >> network->frac);
	}
	return x < 0 ? -found : found;
}

static inline int64_t sum_at(const struct layer *layer, uint32_t i, const int32_t *x)
{
	const uint8_t *weights = layer->weights + (size_t)i * layer->inputs * WEIGHT_BYTES;
	int64_t sum = s64_at(layer->biases + (size_t)i * BIAS_BYTES);

	for (uint32_t j = 0; j < layer->inputs; j++)
		sum += (int64_t)s32_at(weights + (size_t)j * WEIGHT_BYTES) * x[j];
	return sum;
}

static inline int32_t activated(const struct cczoo_network *network, const struct layer *layer,
				int64_t sum)
{
	const int64_t most = 2147483647;

	sum >>= layer->shift;
	sum = sum > most ? most : sum < -most ? -most : sum;
	if (layer->activation == TANH)
		return curve_at(network, 2 * sum);
	if (layer->activation == LOGISTIC)
		return (((int32_t)1 << network->q) + curve_at(network, sum)) >> 1;
	return (int32_t)(layer->activation == RELU && sum < 0 ? 0 : sum);
}

void cczoo_network_scores(const struct cczoo_network *network, const int32_t *x, int32_t *scratch,
			  int64_t *scores)
{
	struct layer layer = layer_at(network, 0, network->features, network->sums);

	/* Two halves of the scratch memory in turns: a layer reads one and writes the other. */
	for (uint32_t i = 1; i < network->layer_count; i++) {
		int32_t *answers = scratch + (i & 1 ? 0 : network->scratch / 2);

		for (uint32_t j = 0; j < layer.outputs; j++)
			answers[j] = activated(network, &layer, sum_at(&layer, j, x));
		x = answers;
		layer = layer_at(network, i, layer.outputs, behind(&layer));
	}
	for (uint32_t j = 0; j < layer.outputs; j++)
		scores[j] = sum_at(&layer, j, x);
}

int cczoo_network_classify(const struct cczoo_network *network, const int32_t *x,
			   int32_t *scratch, int64_t *scores)
{
	int best = 0;

	cczoo_network_scores(network, x, scratch, scores);
	if (network->outputs < network->labels)
		return scores[0] > network->cut;
	for (uint32_t i = 1; i < network->labels; i++)
		if (scores[i] > scores[best])
			best = (int)i;
	return best;
}
