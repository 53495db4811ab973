/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Loads the table file TABLE_FILE before main() for the unit that answers from it. FEATURES,
 * SCHEMA_HASH and LABELS are what the file must have been made for. With NETWORK it is a network's,
 * with SCORES one of several scores.
 */
#include <stdio.h>
#include <stdlib.h>

#if defined(NETWORK)
#include "cczoo_network.h"
extern struct cczoo_network loaded;
extern int32_t *scratch;
#define LOAD(file, size, hash) cczoo_network_load(&loaded, file, size, FEATURES, LABELS, hash)
#elif defined(SCORES)
#include "cczoo_scores.h"
extern struct cczoo_scores loaded;
#define LOAD(file, size, hash) cczoo_scores_load(&loaded, file, size, FEATURES, LABELS, hash)
#else
#include "cczoo_table.h"
extern struct cczoo_table loaded;
#define LOAD(file, size, hash) cczoo_table_load(&loaded, file, size, FEATURES, hash)
#endif

static uint8_t *file;

__attribute__((constructor)) static void load(void)
{
	static const uint8_t schema_hash[] = { SCHEMA_HASH };
	FILE *stream = fopen(TABLE_FILE, "rb");
	long size = -1;
	int error;

	if (stream && !fseek(stream, 0, SEEK_END))
		size = ftell(stream);
	if (size > 0)
		file = malloc(size);
	if (!file || fseek(stream, 0, SEEK_SET) || fread(file, 1, size, stream) != (size_t)size) {
		fprintf(stderr, "%s: can't be read\n", TABLE_FILE);
		exit(2);
	}
	fclose(stream);
	error = LOAD(file, size, schema_hash);
	if (error) {
		fprintf(stderr, "%s: %s\n", TABLE_FILE, cczoo_table_text(error));
		exit(2);
	}
#ifdef NETWORK
	/* Of just this size, so that a sanitizer sees a number too many. */
	scratch = malloc(loaded.scratch * sizeof(*scratch) + !loaded.scratch);
	if (!scratch)
		exit(2);
#endif
}

__attribute__((destructor)) static void unload(void)
{
#ifdef NETWORK
	free(scratch);
#endif
	free(file);
}
