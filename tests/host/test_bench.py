# SPDX-License-Identifier: GPL-2.0
"""The scheduler bench's own parts: workload, model server, client, report.

Only lower bounds of times are checked: a model must take at least its specified time.
"""

import importlib.machinery
import importlib.util
import itertools
import json
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

TOP = Path(__file__).resolve().parents[2]
SOURCES = TOP / "bench/scheduling"
sys.path.insert(0, str(SOURCES))

import report  # noqa: E402
import virtual  # noqa: E402
import workload  # noqa: E402

MS = 1_000_000
VIP, CLIENTS = "127.0.0.1", "127.0.9.1"
NEXT_CLIENTS = itertools.count(10, 3)      # the traces here have up to two clients


def bench():
    loader = importlib.machinery.SourceFileLoader("bench_schedulers", str(TOP / "bench/schedulers"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """httpd and load, with the address and undefined-behaviour sanitizers."""
    directory = tmp_path_factory.mktemp("bench")
    for name in virtual.PROGRAMS:
        subprocess.run(virtual.compiler(name, directory / name, "-g", "-O1", "-Werror",
                                        "-fsanitize=address,undefined",
                                        "-fno-sanitize-recover=all"), check=True)
    return directory


def free_port():
    with socket.socket() as s:
        s.bind((VIP, 0))
        return s.getsockname()[1]


class Server:
    """A running httpd; costs in milliseconds."""

    def __init__(self, programs, path, sizes, cpu=0, disk=0, *, cache=0, workers=10):
        (path / "sizes").write_bytes(struct.pack(f"<{len(sizes)}I", *sizes))
        self.port = free_port()
        self.proc = subprocess.Popen(
            [programs / "httpd", VIP, str(self.port), "3", path / "sizes", str(cpu * MS), "0",
             str(disk * MS), "1000000000", str(cache), str(workers), "64"],
            stdout=subprocess.PIPE, text=True)
        assert self.proc.stdout.readline() == "ready\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        assert self.proc.poll() is None, "httpd died"
        self.proc.kill()
        self.proc.wait()

    def ask(self, text):
        s = socket.create_connection((VIP, self.port), 10)
        s.sendall(text.encode())
        return s

    def get(self, *documents):
        """(cache, length) of each document; all are requested at once."""
        return [answer(s) for s in [self.ask(f"GET /{d} HTTP/1.0\r\n\r\n") for d in documents]]


def answer(s):
    with s:
        data = b""
        while piece := s.recv(65536):
            data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    fields = dict(line.split(": ") for line in head.decode().split("\r\n")[1:])
    assert fields["Real-Server"] == "3"
    assert len(body) == int(fields["Content-Length"])
    return fields["Cache"], len(body)


# -- the workload


def small(**changes):
    parameters = workload.load()
    parameters["arrivals"] |= {"warmup": 0, "seconds": 20} | changes
    return parameters, parameters["experiment"]["vips"]


def test_same_seed_same_bytes(tmp_path):
    parameters, experiment = small(seconds=3)
    texts = []
    for name, seed in (("a", 7), ("b", 7), ("c", 8)):
        (tmp_path / name).mkdir()
        workload.write(tmp_path / name, parameters, experiment, seed)
        texts.append([(tmp_path / name / f).read_bytes() for f in ("trace", "sizes")])
    assert texts[0] == texts[1]
    assert texts[0][0] != texts[2][0]
    assert texts[0][1] == texts[2][1], "the catalogue does not depend on the seed"


def test_arrivals_follow_the_parameters():
    parameters, experiment = small()
    requests = list(workload.arrivals(parameters, experiment, 1))
    assert requests == sorted(requests, key=lambda r: r[0])
    for second in range(20):
        count = sum(second <= at / workload.NSEC < second + 1 for at, *_ in requests)
        assert 600 < count < 1120    # 700 to 1000, and three standard deviations
    documents = [d for _, d, _, _ in requests]
    # Zipf: number 1 twice as often as number 2, ten times as often as number 10.
    assert 1.8 < documents.count(0) / documents.count(1) < 2.2
    assert 7 < documents.count(0) / documents.count(9) < 14
    clients = {c for _, _, c, _ in requests}
    assert clients == set(range(parameters["clients"]["addresses"]))
    assert all(vip == d % 64 for _, d, _, vip in requests)


def test_the_papers_answers_fit_its_link():
    """1,000 answers a second through 10 Mb/s, with 500 bytes of headers each."""
    parameters, _ = small()
    sizes = workload.sizes(parameters["documents"],
                           parameters["experiment"]["paper"]["size_scale"])
    shares = workload.popularity(parameters["documents"])
    weights = [b - a for a, b in zip([0, *shares], shares)]
    mean = sum(s * w for s, w in zip(sizes, weights)) / shares[-1]
    assert 100 < mean < 1250 - 500
    assert max(sizes) > 20 * mean, "sizes are heavy-tailed"


# -- the model server


def test_httpd_caches_what_was_used_last(programs, tmp_path):
    """The cache holds two documents of 1000 bytes, at the start the first two."""
    with Server(programs, tmp_path, [1000] * 5, cache=2000) as server:
        order = [0, 1, 2, 1, 0, 2, 1, 1]
        got = [server.get(d)[0][0] for d in order]
        assert got == ["hit", "hit", "miss", "hit", "miss", "miss", "miss", "hit"]


def test_httpd_serves_whole_documents(programs, tmp_path):
    sizes = [0, 1, 65535, 65536, 3_000_000]
    with Server(programs, tmp_path, sizes, cache=10) as server:
        assert [n for _, n in server.get(*range(5))] == sizes


def test_httpd_one_processor_and_one_disk(programs, tmp_path):
    """Each serves one request at a time; processor and disk work in parallel."""
    with Server(programs, tmp_path, [10] * 9, cpu=40, disk=60, cache=20) as server:
        started = time.monotonic()
        assert server.get(0, 1, 0, 1, 0) == [("hit", 10)] * 5
        assert time.monotonic() - started >= 5 * 0.040
        started = time.monotonic()
        assert {c for c, _ in server.get(5, 6, 7, 8)} == {"miss"}
        assert time.monotonic() - started >= 0.040 + 4 * 0.060


def test_httpd_reads_a_document_once(programs, tmp_path):
    """A second request for a document that is being read waits for that read."""
    with Server(programs, tmp_path, [10, 50], disk=400, cache=20, workers=20) as server:
        started = time.monotonic()
        assert server.get(*[1] * 20) == [("miss", 50)] * 20
        took = time.monotonic() - started
        assert took >= 0.4
        assert took < 10 * 0.4, "read again for each"


def test_httpd_workers(programs, tmp_path):
    """While all workers are busy, a further request waits."""
    with Server(programs, tmp_path, [10], cache=10, workers=2) as server:
        idle = [server.ask("GET /0") for _ in range(2)]     # unfinished
        third = server.ask("GET /0 HTTP/1.0\r\n\r\n")
        third.settimeout(0.3)
        with pytest.raises(TimeoutError):
            third.recv(1)
        third.settimeout(10)
        idle[0].sendall(b" HTTP/1.0\r\n\r\n")
        assert answer(idle[0]) == answer(third) == ("hit", 10)
        idle[1].close()


def test_httpd_refuses(programs, tmp_path):
    with Server(programs, tmp_path, [10], cache=10) as server:
        for text in ("GET /1 HTTP/1.0\r\n\r\n", "PUT /0 HTTP/1.0\r\n\r\n", "x" * 600):
            with server.ask(text) as s:
                try:
                    assert s.recv(10) == b""
                except ConnectionResetError:
                    pass
        assert server.get(0) == [("hit", 10)]
    done = subprocess.run([programs / "httpd", VIP, "x"], capture_output=True, check=False)
    assert done.returncode == 2


# -- the client


def replay(programs, path, arrivals, port, give_up=5):
    # New client addresses each time: ports of an earlier replay may still be closing.
    clients = f"127.0.9.{next(NEXT_CLIENTS)}"
    (path / "trace").write_bytes(b"".join(workload.ARRIVAL.pack(*a) for a in arrivals))
    done = subprocess.run([programs / "load", path / "trace", path / "outcomes", clients, VIP,
                           str(port), str(give_up)], capture_output=True, text=True, check=False,
                          timeout=60)
    assert not done.returncode, done.stderr
    return [o[2:] for o in workload.read_outcomes(path)]


def test_load_replays_a_trace(programs, tmp_path):
    sizes = [5, 200_000, 30]
    with Server(programs, tmp_path, sizes, disk=30, cache=5) as server:
        arrivals = [(n * 20 * MS, n % 3, n % 2, 0) for n in range(30)]
        outcomes = replay(programs, tmp_path, arrivals, server.port)
    for n, (took, length, number, hit, fault) in enumerate(outcomes):
        assert (length, number, fault) == (sizes[n % 3], 3, 0)
        assert hit or took >= 30 * MS
    assert sum(o[3] for o in outcomes) >= 1


def test_load_does_not_wait(programs, tmp_path):
    """Open loop: requests go out on time while earlier ones are under way. A busy machine may
    be late once."""
    for turn in range(4):
        with Server(programs, tmp_path, [5], cpu=150, cache=5) as server:
            outcomes = replay(programs, tmp_path, [(n * MS, 0, 0, 0) for n in range(4)],
                              server.port)
        # Each answer waits for all earlier ones; for a request sent late that wait would be
        # shorter.
        if all(outcome[0] >= (n + 0.5) * 150 * MS for n, outcome in enumerate(outcomes)):
            break
        assert turn < 3, outcomes


@pytest.mark.parametrize("reply, fault", [
    (None, 1), (b"", 2), (b"HTTP/1.0 200 OK\r\nReal-Server: 1\r\nContent-Length: 9\r\n\r\n123", 2),
    (b"HTTP/1.0 500 No\r\nReal-Server: 1\r\n\r\n", 2), (b"y" * 2000, 2), ("silence", 3)],
    ids=("refused", "closed", "short", "refusal", "garbage", "silence"))
def test_load_tells_failures(programs, tmp_path, reply, fault):
    """Only a complete answer counts as an answer."""
    with socket.socket() as listener:
        listener.bind((VIP, 0))
        port = listener.getsockname()[1]
        if reply is not None:
            listener.listen()
        if isinstance(reply, bytes):
            program = ("import socket, sys; s = socket.socket(fileno=int(sys.argv[1])); "
                       "s.settimeout(20); c = s.accept()[0]; c.recv(1000); "
                       "c.sendall(eval(sys.argv[2])); c.close()")
            with subprocess.Popen([sys.executable, "-c", program, str(listener.fileno()),
                                   repr(reply)], pass_fds=[listener.fileno()]):
                outcomes = replay(programs, tmp_path, [(0, 0, 0, 0)], port)
        else:
            outcomes = replay(programs, tmp_path, [(0, 0, 0, 0)], port, give_up=1)
    assert [o[4] for o in outcomes] == [fault]


def test_load_refuses_a_bad_trace(programs, tmp_path):
    (tmp_path / "trace").write_bytes(workload.ARRIVAL.pack(5, 0, 0, 0) +
                                     workload.ARRIVAL.pack(4, 0, 0, 0))
    for size in (32, 31, 0):
        (tmp_path / "trace").write_bytes((tmp_path / "trace").read_bytes()[:size])
        done = subprocess.run([programs / "load", tmp_path / "trace", tmp_path / "o", CLIENTS, VIP,
                               "80", "5"], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert len(done.stderr.splitlines()) == 1


# -- SURGE's users

VISIT = struct.Struct("<QQIIII")


def surge(programs, path, port, users=4, seconds=1, *, seed=1, documents=3, idle=("20", "1.5", "60")):
    clients = f"127.0.9.{next(NEXT_CLIENTS)}"
    done = subprocess.run(
        [programs / "surge", path / "visits", str(users), str(seconds), str(seed), str(documents),
         "1.0", *idle, clients, "2", VIP, str(port), "5"],
        capture_output=True, text=True, check=False, timeout=60)
    assert not done.returncode, done.stderr
    return list(VISIT.iter_unpack((path / "visits").read_bytes())), done.stdout


def test_surge_waits_for_its_documents(programs, tmp_path):
    """Closed loop: a user has one request at a time and idles between two as specified."""
    sizes = [5, 100_000, 30]
    with Server(programs, tmp_path, sizes, cpu=5, cache=5) as server:
        visits, said = surge(programs, tmp_path, server.port, seconds=2)
    assert len(visits) > 20 and not any(v[5] for v in visits)
    assert said.splitlines()[0].startswith("1 ")
    assert {v[4] for v in visits} == set(range(4))
    for user in range(4):
        visited = sorted(v for v in visits if v[4] == user)
        for before, after in zip(visited, visited[1:]):
            pause = after[0] - before[0] - before[1]
            assert pause >= 19 * MS
        assert all(size == sizes[document] for _, _, size, document, _, _ in visited)
    assert max(v[0] for v in visits) < 2.1e9


def test_surge_follows_its_seed(programs, tmp_path):
    """With the same seed users request the same documents, popular ones more often."""
    with Server(programs, tmp_path, [1] * 50, cache=50) as server:
        def asked(seed):
            for seconds in (1, 3, 9):       # a busy machine answers fewer requests
                visits, _ = surge(programs, tmp_path, server.port, 8, seconds, seed=seed,
                                  documents=50, idle=("5", "1.5", "10"))
                by_user = {user: [] for user in range(8)}
                for _, _, _, document, user, _ in sorted(visits):
                    by_user[user].append(document)
                if min(map(len, by_user.values())) >= 10:
                    break
            return by_user
        one, same, other = asked(1), asked(1), asked(2)
    for user in range(8):
        n = min(len(one[user]), len(same[user]))
        assert n >= 10 and one[user][:n] == same[user][:n]
    assert any(one[u][:20] != other[u][:20] for u in range(8))
    everything = [d for documents in one.values() for d in documents]
    assert everything.count(0) > 3 * everything.count(9)


@pytest.mark.parametrize("at, word, what", [
    (2, "0", "there must be users"), (2, "x", "'x' is none of the numbers"),
    (6, "0", "'0' is no number above 0"), (7, "0", "there must be users"),
    (9, "10", "there must be users"), (10, "host", "'host' is not an IPv4 address")])
def test_surge_refuses(programs, tmp_path, at, word, what):
    argv = [programs / "surge", tmp_path / "visits", "1", "1", "1", "1", "1.0", "20", "1.5", "60",
            "127.0.0.1", "1", VIP, "80", "5"]
    argv[at] = word
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2 and what in done.stderr


# -- the report


def test_estimate():
    e = report.Estimate([1.0, 2.0, 3.0])
    assert e.mean == 2
    assert e.half == pytest.approx(4.303 / 3 ** 0.5)    # deviation 1
    assert f"{e:.1f}" == "2.0 ± 2.5"
    assert f"{report.Estimate([4.0]):.1f}" == "4.0"
    assert report.Estimate([1.0, 1.2]).meets(report.Estimate([1.5, 1.7]))
    assert not report.Estimate([1.0, 1.0]).meets(report.Estimate([1.1, 1.1]))


def test_percentile():
    values = list(range(1, 101))
    assert [report.percentile(values, p) for p in (1, 50, 95, 99, 100)] == [1, 50, 95, 99, 100]
    assert report.percentile([7], 99) == 7


def results(means, parameters=None, code="c"):
    """One experiment's results, with two seeds; MEANS: {(size, scheduler): mean}."""
    parameters = parameters or workload.load()
    runs = []
    for (size, scheduler), mean in means.items():
        n = max(size, 1)
        for seed in (1, 2):
            runs.append({"experiment": "gigabit", "scheduler": scheduler, "servers": size,
                         "seed": seed, "requests": 100 * n, "failed": 0, "mean": mean + seed / 100,
                         "p95": 2 * mean, "p99": 3 * mean, "each": [150.0] + [50.0] * (n - 1),
                         "hits": [75.0] + [25.0] * (n - 1)})
    return {"command": "c", "date": "d", "kernel": "k", "code": code, "parameters": parameters,
            "schedulers": sorted({s for _, s in means} - {"standalone"}), "runs": runs}


def paper_like(more):
    """Means like the paper's; at 4 servers each scheduler's is MORE above the one before."""
    means = {(0, "standalone"): 100.0}
    for n, s in enumerate(report.PAPER):
        means[2, s] = 92.0 if s not in ("rr", "wrr") else 93.0
        means[4, s] = 40.0 + more * n
    return means


def test_report_beside_the_paper(tmp_path):
    plots = report.write(results(paper_like(0)), tmp_path)
    text = (tmp_path / "table.md").read_text("utf-8")
    row = next(line for line in text.splitlines() if line.startswith("| 4 | lblc "))
    assert "| 40.015 ± 0.064 |" in row
    assert "60.0 ± 0.0 %" in row            # better than standalone
    assert "| 2.00 | 50.0 % |" in row       # imbalance: 150 of 300 for one of four
    assert "4.7 to 14.6 % | 7.0 to 8.0 % | Agrees |" in text
    assert "46.4 to 77.1 % | 60.0 to 60.0 % | Agrees |" in text
    assert "within 0.0 %, their intervals overlap" in text
    assert plots == ["gigabit.png"]
    assert (tmp_path / "gigabit.png").stat().st_size > 10000


def test_report_says_what_does_not_agree(tmp_path):
    means = paper_like(2)
    for s in report.PAPER:
        means[2, s] = 50.0
    report.write(results(means), tmp_path)
    text = (tmp_path / "table.md").read_text("utf-8")
    assert "4.7 to 14.6 % | 50.0 to 50.0 % | Does not agree: we gain more |" in text
    assert "first and last are 25.0 % apart" in text
    assert "rr 20.0 %, lblcr 0.0 % | Does not agree |" in text


def test_an_experiment_has_its_own_servers(tmp_path):
    """An experiment's settings of the servers override the common ones."""
    (tmp_path / "trace").write_bytes(bytes(3 * workload.ARRIVAL.size))
    parameters, kernel = workload.load(), SimpleNamespace(programs="bin")
    spec = {name: bench().Run(name, "lblcr:shrink=5,expire=9", 4, 1)._spec(
        kernel, parameters, parameters["experiment"][name], tmp_path)
        for name in ("paper", "overload", "unequal")}
    assert spec["overload"]["server"] == spec["paper"]["server"] | {"cpu_request": 5400}
    assert spec["paper"]["server"]["cpu_request"] == 900
    assert spec["paper"]["speeds"] == [1.0] * 4 and spec["unequal"]["speeds"][0] == 2.0
    assert spec["paper"]["options"] == {"shrink": "5", "expire": "9"}
    assert spec["paper"]["scheduler"] == "lblcr" and spec["paper"]["requests"] == 3


def test_two_runs_with_one_seed():
    tool = bench()
    base = results(paper_like(0))
    assert tool.compare(base, None)[1]
    near = results({k: v * 1.004 for k, v in paper_like(0).items()})
    far = results({k: v * 1.006 for k, v in paper_like(0).items()})
    text, agree = tool.compare(near, base)
    assert agree and "13" not in text and "they agree" in text and "0.400 %" in text
    text, agree = tool.compare(far, base)
    assert not agree and "DO NOT agree" in text
    other = results({k: v * 2 for k, v in paper_like(0).items()}, code="other")
    assert tool.compare(other, base)[1], "other code may give other figures"
    parameters = json.loads(json.dumps(base["parameters"]))
    parameters["server"]["workers"] = 3
    assert "nothing to compare" in tool.compare(results(paper_like(0), parameters), base)[0]


@pytest.mark.parametrize("words, what", [
    (["--servers", "0 2"], "'0' is not a number from 1 to 16"),
    (["--servers", "2 2x"], "'2x' is not a number from 1 to 16"),
    (["--sched", "rr rr"], "name each scheduler once"),
    (["--sched", ""], "name each scheduler once"),
    (["--experiments", "nope"], "no experiment 'nope': there are paper, overload"),
    (["--seed", "-1"], "is not a number"),
    (["--repeat", "0"], "'0' is not a number from 1 to 100"),
    (["--jobs", "x"], "'x' is not a number from 1 to 64"),
    (["--compare", "rr mh rr"], "name each scheduler once"),
    (["--compare", ""], "name each scheduler once"),
    (["--compare", "rr", "--flows", "0"], "'0' is not a number from 1 to 4194304"),
    (["--compare", "rr", "--hold", "4194305"], "'4194305' is not a number from 1 to 4194304"),
    (["--compare", "rr", "--quick"], "--compare is without traffic: leave out"),
    (["--compare", "rr", "--sched", "mh"], "--compare is without traffic: leave out"),
    (["--compare", "rr", "--jobs", "64"], "leave out --jobs"),
    (["--hold", "5"], "--flows and --hold are for --compare"),
    (["huh"], "huh")])
def test_bad_arguments(words, what):
    done = subprocess.run([TOP / "bench/schedulers", *words], capture_output=True, text=True,
                          check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 2 and not done.stdout
    assert len(done.stderr.splitlines()) == 1 and what in done.stderr
