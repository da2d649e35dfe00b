// SPDX-License-Identifier: GPL-2.0
/* The options of this run; options.c reads them from the command line. */
#include "opt.h"

enum { TIMEOUT_DEFAULT_MS = 5000 };

struct options opt = { .timeout_ms = TIMEOUT_DEFAULT_MS };
