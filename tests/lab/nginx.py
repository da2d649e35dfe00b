# SPDX-License-Identifier: GPL-2.0
"""nginx as the real servers of a Topology."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from lab.netns import wait_until

CONF = """\
daemon off;
worker_processes 1;
pid {dir}/pid;
error_log {dir}/error.log;
events {{ worker_connections 1024; }}
http {{
	log_format who "$remote_addr";
	access_log {log};
	client_body_temp_path {dir}/body;
	proxy_temp_path {dir}/proxy;
	fastcgi_temp_path {dir}/fastcgi;
	uwsgi_temp_path {dir}/uwsgi;
	scgi_temp_path {dir}/scgi;
	server {{
		{listen}
		root {dir}/html;
		add_header Real-Server {name};
		location = /slow {{ limit_rate {rate}; }}
	}}
}}
"""


class NginxError(RuntimeError):
    """An nginx did not start; the text says why."""


class Nginx:
    """An nginx in each real server's namespace, until stop().

    PAGES: sizes in bytes by name, of which "slow" is sent at RATE bytes/s.
    LOGS: whether each logs its clients' addresses. TOPO has the servers.
    """

    def __init__(self, topo, pages, rate=0, logs=True, *, ports=(80,)):
        self.pages, self.rate, self.logs, self.procs = pages, rate, logs, {}
        self.listen = " ".join(f"listen {port}; listen [::]:{port};" for port in ports)
        self.directory = Path(tempfile.mkdtemp(prefix="l4lb-nginx-"))
        os.chmod(self.directory, 0o755)
        try:
            for node in topo.servers:
                self._start(node)
            for name in self.procs:
                self._wait_ready(name)
        except BaseException:
            self.stop()
            raise

    def _start(self, node):
        home = self.directory / node.role
        (home / "html").mkdir(parents=True)
        for page, size in self.pages.items():
            text = f"<html><body>This is {node.role}.</body></html>\n"
            (home / "html" / page).write_text(text.ljust(size), encoding="ascii")
        conf = home / "nginx.conf"
        conf.write_text(CONF.format(dir=home, name=node.role, rate=self.rate,
                                    listen=self.listen, log=f"{home}/access.log who" if self.logs else "off"),
                        encoding="ascii")
        self.procs[node.role] = node.ns.popen(
            ["nginx", "-e", str(home / "error.log"), "-p", str(home), "-c", str(conf)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def _wait_ready(self, name):
        home, proc = self.directory / name, self.procs[name]
        wait_until(lambda: proc.poll() is not None or
                   ((home / "pid").exists() and (home / "pid").read_text()),
                   60, f"nginx on {name} is up")
        if proc.poll() is not None:
            log = (home / "error.log").read_text(errors="replace").strip()
            raise NginxError(f"nginx on {name} ended with status {proc.returncode}: "
                             f"{log.splitlines()[-1] if log else 'no message'}")

    def log(self, name):
        """The clients' addresses, one for each request served."""
        path = self.directory / name / "access.log"
        return path.read_text(encoding="ascii").split() if path.exists() else []

    def stop(self):
        for proc in self.procs.values():
            proc.terminate()
        for proc in self.procs.values():
            try:
                proc.wait(10)
            except subprocess.TimeoutExpired:
                proc.kill()
                proc.wait()
        shutil.rmtree(self.directory, ignore_errors=True)
