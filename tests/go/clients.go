// SPDX-License-Identifier: GPL-2.0

// Package clients pins the version of the Go client whose own tests are run against
// the module: tests/lab/go-clients compiles them, tests/clients/test_moby.py runs them.
package clients

import _ "github.com/moby/ipvs"
