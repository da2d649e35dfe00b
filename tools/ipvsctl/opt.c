// SPDX-License-Identifier: GPL-2.0
/* What the options of this run are; options.c reads them from the command line. */
#include "opt.h"

enum { TIMEOUT_DEFAULT_MS = 5000 };

struct options opt = { .timeout_ms = TIMEOUT_DEFAULT_MS };
