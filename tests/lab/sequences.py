# SPDX-License-Identifier: GPL-2.0
"""Random sequences of configuration, packets, waiting and module changes, with a model.

A step is [name, arguments, fault]; a fault is [] or one of

  ["nth", n]    the n-th allocation of the command fails
  ["cache"]     no connection, or part of one, is allocated while packets arrive
  ["slab", n]   every n-th slab allocation of the kernel fails while packets arrive
  ["workers"]   work items get no pages, so that tables cannot be resized
  ["task", n]   every n-th allocation of the test's processes fails

All of it is JSON, and the same seed gives the same steps everywhere. The model says what
each command must answer and what listings must show afterwards; packets only have to leave
everything consistent. test_sequences.py plays the steps (lab.player).
"""

import copy
import errno
import random

SERVICES = 6            # the first half UDP, the others TCP
SERVERS = 4
SCHEDULERS = ("rr", "wrr", "lc", "wlc", "lblc", "lblcr", "dh", "sh", "mh", "sed", "nq", "fo",
              "ovf", "twos", "ewma", "bpf")
PERSISTENT = 1
# What a command that fails for lack of memory answers. EFAULT: the request was not read.
# ENOBUFS: it was not sent, or done and not acknowledged.
SHORT = (errno.ENOMEM, errno.EFAULT, errno.ENOBUFS)
SETTINGS = {"expire_nodest_conn": (0, 1), "fast_path": (0, 1, 2), "conntrack": (0, 1),
            "expire_quiescent_template": (0, 1), "sloppy_tcp": (0, 1),
            "drop_entry": (0, 1, 3), "secure_tcp": (0, 3), "cache_bypass": (0, 1)}
# 0 is the default of each.
POLICY = {"tcp": (0, 2), "udp": (0, 1), "on_idle": (0, 1), "on_loss": (0, 1, 2, 3),
          "on_drain": (0, 1, 2), "guard": (0, 1, 2), "fast_path": (0, 1, 2, 3),
          "priority": (0, 1), "sync": (0, 1, 2, 3), "log": (0, 1), "ramp": (0, 1, 1, 60),
          "limit_rate": (0, 2, 1000), "limit_burst": (0, 5), "limit_conns": (0, 3, 200),
          "limit_reply": (0, 1), "latency": (0, 1), "conn_state": (0, 0, 0, 1),
          "snat": (0, 1, 2)}       # nothing, one address, some
HASHING = ("mh", "sh", "dh")
# What a range of more than one address can have.
RANGE_POLICY = sorted(set(POLICY) - {"guard", "conn_state"})
# (bits that the prefix lacks, first and last port): the third crosses the second.
RANGES = ((0, 1, 65535), (0, 9000, 9010), (0, 9005, 9020), (2, 9000, 9010), (3, 7, 7))
CROSS = {1, 2}


def by_chance(sched, many):
    """twos tosses coins; ewma draws lots, of MANY real servers, which are more than 16."""
    return sched == "twos" or (sched == "ewma" and many)


class Model:
    """{service: {"sched", "flags", "timeout", "policy": {name: value}, without defaults,
    "servers": {number: (weight, upper, lower)}}}; of RANGES {number: {"policy", "servers"}}"""

    def __init__(self):
        self.services = {}
        self.ranges = {}

    def expect(self, name, args):
        """(errno, the model after the step) of a command that finds enough memory."""
        after = copy.deepcopy(self)
        return getattr(after, "do_" + name)(*args) or 0, after

    def do_service(self, service, sched, flags, timeout):
        if service in self.services:
            return errno.EEXIST
        self.services[service] = {"sched": sched, "flags": flags, "timeout": timeout,
                                  "policy": {}, "servers": {}}
        return 0

    def do_edit(self, service, sched, flags, timeout):
        if service not in self.services:
            return errno.ESRCH
        self.services[service].update(sched=sched, flags=flags, timeout=timeout)
        return 0

    def do_policy(self, service, values):
        if service not in self.services:
            return errno.ESRCH
        found = self.services[service]
        policy = found["policy"] | values
        if self.never_lazy(service, policy) or (
                policy.get("conn_state") and not found["policy"].get("conn_state")
                and (found["flags"] & PERSISTENT or found["sched"] not in HASHING)):
            return errno.EOPNOTSUPP
        found["policy"] = {k: v for k, v in policy.items() if v}
        return 0

    @staticmethod
    def never_lazy(service, policy):
        """Is the conn-state lazy of POLICY one that SERVICE cannot have?"""
        return policy.get("conn_state") and (
            service < SERVICES // 2
            or any(policy.get(name) for name in ("latency", "limit_rate", "limit_conns", "snat")))

    def do_shadow(self, service, _sched):
        return 0 if service in self.services else errno.ESRCH

    def do_trial(self, service, _sched, _flows, _hold, without):
        if service not in self.services:
            return errno.ESRCH
        servers = self.services[service]["servers"]
        if not servers:
            return errno.EINVAL
        return errno.EADDRNOTAVAIL if without and without not in servers else 0

    def do_delete(self, service):
        return 0 if self.services.pop(service, None) else errno.ESRCH

    def do_zero(self, service):
        return 0 if service in self.services else errno.ESRCH

    def do_flush(self):
        self.services.clear()
        self.ranges.clear()

    def do_range(self, number, on, servers=(), policy=()):
        """One of RANGES comes or goes."""
        if not on:
            return 0 if self.ranges.pop(number, None) else errno.ESRCH
        if number in self.ranges or (number in CROSS and self.ranges.keys() & CROSS):
            return errno.EEXIST
        self.ranges[number] = {"policy": {k: v for k, v in dict(policy).items() if v},
                               "servers": {n: tuple(values) for n, *values in servers}}
        return 0

    def do_range_server(self, number, server, *values):
        """One real server comes or changes; without VALUES it goes."""
        if number not in self.ranges:
            return errno.ESRCH
        servers = self.ranges[number]["servers"]
        if not values:
            return 0 if servers.pop(server, None) else errno.ENOENT
        servers[server] = values
        return 0

    def do_range_zero(self, number):
        return 0 if number in self.ranges else errno.ESRCH

    def do_server(self, service, number, *values):
        return self.change_server(service, number, values, errno.EEXIST, False)

    def do_edit_server(self, service, number, *values):
        return self.change_server(service, number, values, errno.ENOENT, True)

    def change_server(self, service, number, values, error, there):
        if service not in self.services:
            return errno.ESRCH
        servers = self.services[service]["servers"]
        if (number in servers) != there:
            return error
        servers[number] = tuple(values)
        return 0

    def do_remove(self, service, number):
        if service not in self.services:
            return errno.ESRCH
        return 0 if self.services[service]["servers"].pop(number, None) else errno.ENOENT

    def do_batch(self, entries, replace):
        """Services that exist keep the servers that a merge does not name, but no policy."""
        if any(self.never_lazy(service, policy)
               for service, *_, policies in ((e[0], e[5:]) for e in entries) for policy in policies):
            return errno.EOPNOTSUPP
        if replace and self.ranges:     # the message does not say that it knows them
            return errno.EOPNOTSUPP
        if replace:
            self.services = {s: v for s, v in self.services.items()
                             if s in [entry[0] for entry in entries]}
        for service, sched, flags, timeout, servers, *policy in entries:
            old = self.services.get(service, {"servers": {}})["servers"]
            new = {number: tuple(values) for number, *values in servers}
            self.services[service] = {
                "sched": sched, "flags": flags, "timeout": timeout,
                "policy": {k: v for values in policy for k, v in values.items() if v},
                "servers": new if replace else {**old, **new}}
        return 0

    def takes_all(self, service):
        """Does each new UDP connection of SERVICE find a server?"""
        found = self.services.get(service)
        return bool(found) and found["sched"] in ("rr", "wrr", "lc", "wlc", "fo", "sed", "nq") \
            and any(weight for weight, _, _ in found["servers"].values()) \
            and not any(upper for _, upper, _ in found["servers"].values()) \
            and not any(name.startswith("limit_") for name in found["policy"])


class Generator:
    def __init__(self, seed):
        self.chance = random.Random(seed)

    def service_number(self):
        return self.chance.randrange(SERVICES)

    def options(self):
        persistent = self.chance.random() < 0.25
        return [self.chance.choice(SCHEDULERS), PERSISTENT if persistent else 0,
                self.chance.choice((1, 2, 300)) if persistent else 0]

    def server_values(self):
        upper = self.chance.choice((0, 0, 0, 5))
        return [self.chance.choice((0, 1, 1, 3, 100)), upper, upper // 2]

    def service(self):
        return "service", [self.service_number(), *self.options()]

    def edit(self):
        return "edit", [self.service_number(), *self.options()]

    def policy_values(self, most):
        names = self.chance.sample(sorted(POLICY), self.chance.randint(1, most))
        return {name: self.chance.choice(POLICY[name]) for name in names}

    def policy(self):
        return "policy", [self.service_number(), self.policy_values(len(POLICY))]

    def shadow(self):
        return "shadow", [self.service_number(), self.chance.choice((*SCHEDULERS, "none", "none"))]

    def trial(self):
        return "trial", [self.service_number(), self.chance.choice(SCHEDULERS),
                         self.chance.choice((1, 50, 2000)), self.chance.choice((0, 1, 30)),
                         self.chance.choice((0, 0, 1, 2))]

    def delete(self):
        return "delete", [self.service_number()]

    def zero(self):
        return "zero", [self.service_number()]

    def flush(self):
        return "flush", []

    def range_number(self):
        """Often the same, which is therefore often there."""
        return self.chance.choice((3, 3, 3, *range(len(RANGES))))

    def range(self):
        number = self.range_number()
        if self.chance.random() < 0.3:
            return "range", [number, False]
        names = self.chance.sample(RANGE_POLICY, self.chance.randint(0, 4))
        return "range", [number, True, self.servers(),
                         {name: self.chance.choice(POLICY[name]) for name in names}]

    def range_server(self):
        values = self.server_values() if self.chance.random() < 0.7 else []
        return "range_server", [self.range_number(), self.chance.randrange(1, SERVERS + 1), *values]

    def range_zero(self):
        return "range_zero", [self.range_number()]

    def about_server(self, name):
        values = [] if name == "remove" else self.server_values()
        return name, [self.service_number(), self.chance.randrange(1, SERVERS + 1), *values]

    def batch(self):
        entries = [[service, *self.options(), self.servers(),
                    *([self.policy_values(4)] if self.chance.random() < 0.5 else [])]
                   for service in self.some(range(SERVICES))]
        return "batch", [entries, self.chance.random() < 0.4]

    def servers(self):
        return [[n, *self.server_values()] for n in self.some(range(1, SERVERS + 1))]

    def some(self, numbers):
        return sorted(self.chance.sample(list(numbers), self.chance.randint(1, len(numbers))))

    def packets(self):
        """Packets of clients FIRST to FIRST + COUNT: openings, or any segments."""
        return "packets", [self.service_number(), *self.segments()]

    def range_packets(self):
        """The same to ports of a range."""
        return "range_packets", [self.range_number(), *self.segments()]

    def segments(self):
        kind = self.chance.choice(("open", "open", "open", "data", "fin", "rst", "reply", "icmp"))
        return kind, self.chance.randrange(40), self.chance.choice((1, 5, 30))

    def burst(self):
        """Enough new connections for the table to grow, and to shrink when they expire."""
        return "packets", [self.service_number(), "open", 100, self.chance.choice((400, 1500))]

    def wait(self):
        """Connections of the last seconds expire."""
        return "wait", []

    def setting(self):
        name = self.chance.choice(sorted(SETTINGS))
        return "setting", [name, self.chance.choice(SETTINGS[name])]

    def namespace(self):
        """One with services and connections comes and goes."""
        return "namespace", [self.chance.randrange(1, 5)]

    def scheduler(self):
        return "scheduler", [self.chance.choice(SCHEDULERS)]

    def reload(self):
        return "reload", []

    CHOICES = (
        (14, service), (8, edit), (8, policy), (5, shadow), (4, trial), (4, delete),
        (2, zero), (1, flush), (8, range), (9, range_server), (1, range_zero), (8, range_packets),
        (18, lambda g: g.about_server("server")), (8, lambda g: g.about_server("edit_server")),
        (6, lambda g: g.about_server("remove")), (6, batch), (24, packets), (3, burst),
        (2, wait), (5, setting), (2, namespace), (2, scheduler), (0.7, reload))
    AT_PACKETS = ["cache"], ["slab", 7], ["slab", 20], ["workers"]
    FAULTS = {"packets": AT_PACKETS, "range_packets": AT_PACKETS,
              "namespace": (["task", 20], ["task", 50], ["task", 200]),
              "wait": (["workers"],), "scheduler": (), "setting": ()}

    def fault(self, name):
        if self.chance.random() < 0.45:
            return []
        if name in self.FAULTS:
            known = self.FAULTS[name]
            return list(self.chance.choice(known)) if known else []
        most = {"reload": 600, "batch": 120}.get(name, 40)
        return ["nth", self.chance.randint(1, most)]

    def steps(self, count):
        weights = [weight for weight, _ in self.CHOICES]
        out = []
        for _ in range(count):
            name, args = self.chance.choices(self.CHOICES, weights)[0][1](self)
            out.append([name, args, self.fault(name)])
        return out
