# SPDX-License-Identifier: GPL-2.0
"""Compares two modules' answers to the same commands; lists intended differences.

`Player` sends commands (those of lab.fuzz) to the loaded module and records the
answers; `first_difference` compares two recordings; `shrink` reduces the
commands to those that matter.
"""

from dataclasses import dataclass, field

from . import genl

SPEC = genl.IPVS
CHANGES = {SPEC.request(c) for c in SPEC.commands
           if c.startswith(("new-", "set-", "del-", "flush"))}


@dataclass
class Answer:
    """The answer to one command."""
    errno: int
    sentence: str
    replies: list       # [(command number, payload)]


@dataclass
class Recording:
    """Answers, and states after some of the commands, by the command's index."""
    answers: dict = field(default_factory=dict)
    states: dict = field(default_factory=dict)


# ---- where l4lb differs from ip_vs on purpose ----

# Attribute: (difference, reason, whether it explains ip_vs's and l4lb's value).
VALUES = {
    "conn-tab-size": (
        "the size of the connection table",
        "that of l4lb grows by itself", lambda theirs, ours: True),
    "timeout": (
        "a persistence timeout of 2^32 jiffies (some 200 days) or more is kept",
        "in ip_vs it overflows, and another one is in force",
        lambda theirs, ours: ours >= (1 << 32) // 1000 and theirs < ours),
}


def _same_payload(name, theirs, ours):
    return theirs == ours or _alike(SPEC.read(name, theirs), SPEC.read(name, ours))


def _alike(theirs, ours):
    if isinstance(theirs, list):
        return len(theirs) == len(ours) and all(
            a[0] == b[0] and (a[1] == b[1] or a[0] in VALUES and VALUES[a[0]][2](a[1], b[1])
                              or _alike(a[1], b[1])) for a, b in zip(theirs, ours))
    return theirs == ours


def same_answer(command, theirs, ours):
    """The same errno, and the same replies or a difference that is intended."""
    if theirs.errno or ours.errno:
        return theirs.errno == ours.errno
    name = SPEC.commands[command[0]]["attribute-set"] if theirs.replies else ""
    return len(theirs.replies) == len(ours.replies) and all(
        a[0] == b[0] and _same_payload(name, a[1], b[1])
        for a, b in zip(theirs.replies, ours.replies))


def same_state(theirs, ours):
    return theirs == ours or theirs[1] == ours[1] and len(theirs[0]) == len(ours[0]) and all(
        _same_payload("cmd", a, b) and dests_a == dests_b
        for (a, dests_a), (b, dests_b) in zip(theirs[0], ours[0]))


# ---- asking ----

class Player:
    """A client of the module that is loaded, in namespace NS."""

    def __init__(self, ns):
        self.client = genl.Ipvs(ns)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.reset()
        self.client.close()

    def reset(self):
        self.client.flush()
        self.client.timeouts(900, 120, 300)

    def ask(self, number, payload, dump):
        try:
            replies = self.client.request(number, payload,
                                          genl.F_DUMP if dump else genl.F_ACK)
        except genl.NetlinkError as e:
            return Answer(e.errno, e.extack, [])
        if number == genl.GET_SERVICE:
            replies.sort()      # the order of services means nothing
        return Answer(0, "", replies)

    def state(self):
        """Everything that can be read: ([service, [server, ...]], timeouts)."""
        services = []
        for _, payload in sorted(self.client.dump(genl.GET_SERVICE)):
            # The reply names the service as a request does, so it can be sent.
            services.append((payload, [p for _, p in self.client.dump(genl.GET_DEST, payload)]))
        return services, self.client.request(genl.GET_CONFIG)

    def play(self, requests, every, forget=None, extras=None):
        """Send REQUESTS of fuzz.pack() to an empty table; None is skipped. Records
        the state after each EVERY requests and at the end. FORGET: another module's
        recording; requests about services that only it refused are undone. EXTRAS:
        all services get some of it, ten times between two states."""
        self.reset()
        out = Recording()
        for i, request in enumerate(requests):
            if extras and i % max(1, every // 10) == 0:
                extras.give(self.client)
            if request is not None:
                undo = forget and forget.answers[i].errno and self.undo(*request)
                out.answers[i] = self.ask(*request)
                if undo and not out.answers[i].errno:
                    self.client.request(*undo)
            if (i + 1) % every == 0 or i + 1 == len(requests):
                out.states[i] = self.state()
        return out

    def undo(self, number, payload, _):
        """The request that undoes another one, or None."""
        if number == genl.NEW_SERVICE:
            return genl.DEL_SERVICE, payload
        if number == genl.SET_SERVICE:
            was = self.ask(genl.GET_SERVICE, payload, False)
            return None if was.errno else (genl.SET_SERVICE, was.replies[0][1])
        return None


# ---- comparing ----

def readable_state(state):
    services, config = state
    return [{"service": SPEC.read("cmd", s), "dests": [SPEC.read("cmd", d) for d in dests]}
            for s, dests in services] + [SPEC.read("cmd", config[0][1])]


def readable(answer):
    if answer.errno:
        return f"errno {answer.errno} {answer.sentence!r}"
    return f"ok {[SPEC.read('cmd', payload) for _, payload in answer.replies] or ''}"


def first_difference(commands, theirs, ours):
    """(index, both answers as text) of the first difference, or None; OURS: l4lb's."""
    for i, command in enumerate(commands):
        a, b = theirs.answers[i], ours.answers[i]
        if not same_answer(command, a, b):
            return i, f"ip_vs: {readable(a)}\nl4lb:  {readable(b)}"
        if i in theirs.states and not same_state(theirs.states[i], ours.states[i]):
            a, b = readable_state(theirs.states[i]), readable_state(ours.states[i])
            return i, "afterwards ip_vs has: " + \
                f"{[x for x in a if x not in b]}\nand l4lb has: {[x for x in b if x not in a]}"
    return None


def core_refuses(command):
    """Whether the netlink core refuses it before any module is asked."""
    name, mode, _ = command
    return name not in SPEC.commands or mode not in SPEC.modes(name)


def first_silence(commands, ours):
    """(index, answer) of the first refusal without a readable sentence, or None."""
    for i, answer in ours.answers.items():
        if answer.errno and not core_refuses(commands[i]) and \
                (len(answer.sentence) < 8 or "\n" in answer.sentence):
            return i, readable(answer)
    return None


def without_refused(requests, recording):
    """Only the requests that succeeded and change something: without the others
    the states must be the same."""
    return [r if not recording.answers[i].errno and r[0] in CHANGES else None
            for i, r in enumerate(requests)]


# ---- shrinking ----

def _without(items, pieces):
    gone = {i for piece in pieces for i in range(*piece)}
    return [item for i, item in enumerate(items) if i not in gone]


def fewest(items, fails):
    """The fewest of ITEMS that still fail, by delta debugging. FAILS judges a
    list of candidates at once, because loading two modules in turn is slow."""
    parts = 2
    while len(items) > 1:
        cuts = [len(items) * n // parts for n in range(parts + 1)]
        pieces = list(zip(cuts, cuts[1:]))
        needless = [p for p, bad in zip(pieces, fails([_without(items, [p]) for p in pieces]))
                    if bad]
        if needless:
            # Pieces that are needless one by one may be needless together.
            tries = [_without(items, group)
                     for group in (needless, needless[::2], needless[1::2])]
            items = next((t for t, bad in zip(tries, fails(tries)) if bad),
                         _without(items, needless[:1]))
        elif parts >= len(items):
            break
        else:
            parts *= 2
        parts = max(2, min(parts, len(items)))
    return items


def _paths(attrs, path=()):
    """The path of each attribute: indices, from the outermost nest inwards."""
    for i, entry in enumerate(attrs):
        yield (*path, i)
        if isinstance(entry[1], list):
            yield from _paths(entry[1], (*path, i))


def _only(attrs, kept, path=()):
    return [[entry[0], _only(entry[1], kept, (*path, i)), *entry[2:]]
            if isinstance(entry[1], list) else entry
            for i, entry in enumerate(attrs) if (*path, i) in kept]


def shrink(commands, fails):
    """The fewest of COMMANDS with the fewest attributes that still fail."""
    # How far back does the cause lie? Try the last 1, 2, 4, ... commands.
    tries = [commands[-(1 << n):] for n in range(len(commands).bit_length())]
    commands = next((t for t, bad in zip(tries, fails(tries)) if bad), commands)
    commands = fewest(commands, fails)

    def build(paths):
        return [[name, mode, _only(attrs, set(paths), (n,))]
                for n, (name, mode, attrs) in enumerate(commands)]
    paths = [path for n, c in enumerate(commands) for path in _paths(c[2], (n,))]
    return build(fewest(paths, lambda tries: fails([build(t) for t in tries])))
