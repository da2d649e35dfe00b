/* SPDX-License-Identifier: GPL-2.0 */
/* hostile: see hostile.c */
#ifndef HOSTILE_H
#define HOSTILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	ROOM	= 4096,		/* bytes of an input */
	BATCH	= 64,		/* inputs for each system call */
};

struct input {
	size_t	len;
	uint8_t	data[ROOM];
};

/**
 * struct counts - what became of the inputs
 * @sent: the kernel took them
 * @refused: the kernel did not take them
 * @accepted: messages that were answered without an error
 * @rejected: messages that were answered with an error
 * @gone: the device or its namespace no longer exists
 */
struct counts {
	uint64_t sent, refused, accepted, rejected;
	bool	gone;
};

/* Random numbers: begin() makes those of an input depend on seed and number only. */
void begin(uint64_t seed, uint64_t number);
uint32_t below(uint32_t n);
bool one_in(uint32_t n);

/* Damage that fits any input; both keep the first @from bytes. */
void flip_bit(struct input *in, size_t from);
void any_byte(struct input *in, size_t from);

/* packets.c: @in is an Ethernet frame */
void damage_packet(struct input *in);
void repair_packet(uint8_t *ip, size_t len, int depth);

/* messages.c: @in is a generic netlink message */
void damage_message(struct input *in);

#endif /* HOSTILE_H */
