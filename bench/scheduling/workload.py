# SPDX-License-Identifier: GPL-2.0
"""The catalogue of documents and the requests of a seed, made from workload.toml.
The same seed gives the same bytes everywhere."""

import itertools
import random
import struct
import tomllib
from bisect import bisect
from pathlib import Path

PARAMETERS = Path(__file__).with_name("workload.toml")
# struct arrival and struct outcome of trace.h
ARRIVAL = struct.Struct("<QIHH")
OUTCOME = struct.Struct("<QIBBBx")
FAULTS = ("", "no connection", "broken answer", "no answer in time")
NSEC = 1_000_000_000


class WorkloadError(Exception):
    """workload.toml cannot be read or parsed; the text says why."""


def load():
    try:
        return tomllib.loads(PARAMETERS.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as e:
        raise WorkloadError(f"{PARAMETERS}: {e}") from e


def sizes(documents, scale):
    """Bytes of each document, the most popular one first."""
    rng = random.Random(documents["catalogue_seed"])

    def one():
        if rng.random() >= documents["tail_share"]:
            size = rng.lognormvariate(documents["body_mu"], documents["body_sigma"])
        else:
            size = documents["tail_least"] * rng.paretovariate(documents["tail_alpha"])
        return max(1, round(min(size, documents["most"]) * scale))
    return [one() for _ in range(documents["count"])]


def bed(parameters, experiment, servers, directory):
    """What bed.py has to know of an EXPERIMENT whose files are in DIRECTORY, but for the scheduler and
    the programs."""
    network = parameters["network"]
    server = parameters["server"] | experiment.get("server", {})
    slow = experiment.get("slow", {})
    documents = sizes(parameters["documents"], experiment["size_scale"])
    return {
        "servers": servers, "weights": experiment.get("weights", [1] * servers),
        "speeds": experiment.get("speeds", [1.0] * servers), "vips": experiment.get("vips", 1),
        "method": experiment.get("method", "dr"),
        # The server that is slow for a while; in the file, "from" counts from the end of the warming up.
        "slow": slow and slow | {"from": slow["from"] + parameters["arrivals"]["warmup"]},
        "rate": {"client": experiment["client_rate"], "server": network["server_rate"],
                 "director": experiment.get("director_rate", network["director_rate"])},
        "delay": network["delay"], "queue": network["queue"], "server": server,
        "cache": round(sum(documents) * experiment.get("cache_share", server["cache_share"])),
        "give_up": parameters["arrivals"]["give_up"],
        "requests": (Path(directory) / "trace").stat().st_size // ARRIVAL.size, "directory": str(directory)}


def popularity(documents):
    """Running sums of the documents' shares, not normalised."""
    return list(itertools.accumulate((n + 1) ** -documents["zipf"]
                                     for n in range(documents["count"])))


def arrivals(parameters, experiment, seed):
    """Yields (ns, document, client, vip) in the order of time."""
    rng = random.Random(seed)
    shares = popularity(parameters["documents"])
    vips = experiment.get("vips", 1)
    low, high = parameters["arrivals"]["rate"]
    seconds = parameters["arrivals"]["warmup"] + parameters["arrivals"]["seconds"]
    for second in range(seconds):
        rate = rng.uniform(low, high)
        at = rng.expovariate(rate)
        while at < 1:
            document = bisect(shares, rng.random() * shares[-1])
            yield (round((second + at) * NSEC), document,
                   rng.randrange(parameters["clients"]["addresses"]), document % vips)
            at += rng.expovariate(rate)


def write(directory, parameters, experiment, seed):
    """Writes the files sizes and trace, which httpd and load read."""
    documents = sizes(parameters["documents"], experiment["size_scale"])
    (directory / "sizes").write_bytes(struct.pack(f"<{len(documents)}I", *documents))
    with open(directory / "trace", "wb") as out:
        for arrival in arrivals(parameters, experiment, seed):
            out.write(ARRIVAL.pack(*arrival))


def read_outcomes(directory):
    """[(ns of arrival, vip, ns taken, bytes, server, hit, fault)]"""
    trace = ARRIVAL.iter_unpack((directory / "trace").read_bytes())
    outcomes = OUTCOME.iter_unpack((directory / "outcomes").read_bytes())
    return [(at, vip, *outcome) for (at, _, _, vip), outcome in zip(trace, outcomes)]
