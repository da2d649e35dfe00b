# SPDX-License-Identifier: GPL-2.0
"""What the counted figures were to reach, and whether they do."""

from dataclasses import dataclass

# Of a connection's life: SYN, SYN-ACK, ACK, FIN, FIN and ACK.
PACKETS_OF_A_LIFE = 6


def floor(figures, director, what):
    """What the cheapest forwarder of DIRECTOR's kind takes for the same packets."""
    kind = "xdp redirect" if director.endswith(" xdp") else "redirect"
    generator = "pktgen " if what.startswith("pktgen ") else ""
    return figures[generator + kind] * (PACKETS_OF_A_LIFE if what.endswith(" life") else 1)


def added(figures, director, what):
    """Instructions that DIRECTOR adds to that, as a ratio to ip_vs."""
    own, ip_vs = (figures[f"{d}: {what}"] - floor(figures, d, what) for d in (director, "ip_vs"))
    return own / ip_vs


@dataclass
class Bar:
    """The largest of its figures is to be at most LIMIT. A name is what instructions.json has
    after "l4lb"; a figure is a ratio to ip_vs, or with BESIDE the difference to that row."""
    text: str
    limit: float
    names: tuple
    beside: str = ""

    def values(self, figures):
        for name in self.names:
            if self.beside:
                yield figures[f"l4lb{name}"] - figures[f"l4lb{self.beside}"]
            else:
                director, _, what = f"l4lb{name}".partition(": ")
                yield added(figures, director, what)

    def said(self, figures):
        return [f"{v:+.0f}" if self.beside else f"{v:.2f}" for v in self.values(figures)]

    def is_met(self, figures):
        return max(self.values(figures)) <= self.limit


NEW = "udp4 dr new", "udp4 nat new", "tcp4 nat new", "udp6 dr new"
BARS = (
    Bar("known flow, XDP: NAT, DR, tunnel", 0.15, (" xdp: udp4 nat", " xdp: udp4 dr", " xdp: udp4 tun")),
    Bar("new flow, XDP: DR, NAT, TCP through NAT, IPv6", 0.30, tuple(f" xdp: {what}" for what in NEW)),
    Bar("... with four servers, wlc and mh", 0.30, (" xdp: udp4 dr wlc new", " xdp: udp4 dr mh new")),
    Bar("new flow, `fast-path new`: DR", 0.25, (" fast 2: udp4 dr new",)),
    Bar("... NAT", 0.30, (" fast 2: udp4 nat new",)),
    Bar("... TCP through NAT", 0.32, (" fast 2: tcp4 nat new",)),
    Bar("new flow, as installed, without a firewall: as with XDP", 0.85, tuple(f" fast 1: {what}" for what in NEW)),
    Bar("... with a firewall: through the stack, likewise", 0.85,
        tuple(f" fast 1: {what.removesuffix('new')}watched new" for what in NEW)),
    Bar("a connection's life, as installed, without and with a firewall", 0.50,
        (" fast 1: tcp4 nat life", " fast 1: tcp4 nat watched life")),
    Bar("instructions for a new flow while a server starts slowly", 150, (": udp4 dr ramping new",),
        ": udp4 dr four new"),
    Bar("... with a shadow, mh", 300, (": udp4 dr shadowed new",), ": udp4 dr four new"),
    Bar("... with a BPF program", 1000, (": udp4 dr bpf new",), ": udp4 dr four new"),
    Bar("... of a life that is logged, nobody listens", 150, (": tcp4 nat logged life",), ": tcp4 nat plain life"),
)


def lines(record):
    """The table, of all kernels of RECORD (instructions.json), the newest first. Rows that no
    kernel has are left out."""
    kernels = [record[name] for name in sorted(record, reverse=True)]
    yield "## What they were to reach"
    yield ""
    yield "Ratios as above, or instructions more than without; the largest of a row counts."
    yield ""
    yield f"| | at most | {' | '.join(k['kernel'] for k in kernels)} | |"
    yield "|---|---|" + "---|" * (len(kernels) + 1)
    for bar in BARS:
        have = [k["instructions"] for k in kernels
                if all(f"l4lb{n}" in k["instructions"] for n in (*bar.names, *filter(None, [bar.beside])))]
        if len(have) < len(kernels):
            continue
        limit = f"+{bar.limit:,.0f}" if bar.beside else f"{bar.limit:.2f}"
        cells = [", ".join(bar.said(figures)) for figures in have]
        met = all(bar.is_met(figures) for figures in have)
        yield f"| {bar.text} | {limit} | {' | '.join(cells)} | {'met' if met else 'missed'} |"
    yield ""
