/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Files that load, surge and httpd exchange with the bench's Python side, all numbers
 * little-endian; and helper functions of these programs.
 */
#ifndef _TRACE_H
#define _TRACE_H

#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NSEC_PER_SEC	1000000000ULL

/* A request of the trace: load's input. */
struct arrival {
	uint64_t	at;		/* ns after the start */
	uint32_t	document;
	uint16_t	client;		/* index of the client's address */
	uint16_t	vip;		/* index of the VIP */
};

/* The result of a request: load's output, in the order of the input. */
struct outcome {
	uint64_t	took;		/* ns from connect() to the last byte */
	uint32_t	bytes;		/* of the document */
	uint8_t		server;		/* number from 1, as the answer says */
	uint8_t		hit;		/* came from the server's cache */
	uint8_t		fault;		/* enum fault */
	uint8_t		pad;
};

/* A document that a user has fetched: surge's output. */
struct visit {
	uint64_t	at;		/* ns after the start */
	uint64_t	took;		/* ns from connect() to the last byte */
	uint32_t	bytes;		/* of the document */
	uint32_t	document;
	uint32_t	user;
	uint32_t	fault;		/* enum fault */
};

enum fault { FAULT_NONE, FAULT_CONNECT, FAULT_BROKEN, FAULT_TIMEOUT };

static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static inline struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = ns / NSEC_PER_SEC,
				  .tv_nsec = ns % NSEC_PER_SEC };
}

/* Reads a file of SIZE-byte entries; *count is set to their number. */
static inline void *read_entries(const char *path, size_t size, size_t *count)
{
	FILE *f = fopen(path, "rb");
	long length = -1;
	void *data;

	if (f && !fseek(f, 0, SEEK_END))
		length = ftell(f);
	if (length < 0)
		err(1, "%s", path);
	rewind(f);
	if (!length || length % size)
		errx(1, "%s: %ld bytes, not a number of %zu-byte entries",
		     path, length, size);
	data = malloc(length);
	if (!data || fread(data, 1, length, f) != (size_t)length)
		err(1, "%s", path);
	fclose(f);
	*count = length / size;
	return data;
}

static inline unsigned long parse_number(const char *text, unsigned long most)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (end == text || *end || n > most)
		errx(2, "'%s' is none of the numbers from 0 to %lu", text, most);
	return n;
}

#endif /* _TRACE_H */
