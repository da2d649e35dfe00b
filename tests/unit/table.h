/* SPDX-License-Identifier: GPL-2.0 */
/* The table under test, shared by the files of the program. */
#ifndef _L4LB_UNIT_TABLE_H
#define _L4LB_UNIT_TABLE_H

#include "conn/bucket.h"
#include "conn/defence.h"
#include "conn/resize.h"
#include "conn/sweep.h"

#define MANY	12000

extern struct l4lb_net ln;
extern struct l4lb_conn_table table;
extern struct l4lb_conn *conns[MANY];	/* by number */
extern unsigned int swept[MANY], n_reset, n_asked;
extern bool no_interludes, sweep_queued;

u32 chance(u32 below);
struct l4lb_conn *conn_new(unsigned int i);
struct l4lb_conn *found_out(const struct l4lb_conn *conn);
bool add(unsigned int i);
void del(unsigned int i);
void check(unsigned int i);
void do_work(void);
unsigned int bits(void);

/* table_size.c */
void sweep(unsigned int n);
void poor(unsigned int n);
void sizes(unsigned int n);
void equals(unsigned int n);

#endif /* _L4LB_UNIT_TABLE_H */
