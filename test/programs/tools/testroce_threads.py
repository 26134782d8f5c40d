# SPDX-License-Identifier: BSD-3-Clause
"""testroce --threads: each thread has queue pairs, a connection and an engine of its own, on both sides."""

import contextlib
import ctypes
import json
import os
import re
import socket

from harness.process import LocalHost, ask, tcp_tables, tcp_tables_show, wait_until
from harness.report import CheckFailed
from programs.share.share import Uroced
from programs.tools.testroce import ALONE_PORT, SECONDS, TESTROCE, Prompt, TestroceTest

PORT = 26001
MESSAGES = 2003  # neither 2 nor 3 divides it
MODES = (
    ["--mode", "write", "--size", "5000"],
    ["--mode", "read", "--size", "5000"],
    ["--mode", "send", "--size", "40", "--batch", "4"],
    ["--mode", "atomic"],
    ["--mode", "latency", "--op", "write"],
    ["--mode", "latency", "--op", "send", "--size", "3000"],
    ["--mode", "incast", "--size", "3000"],
    ["--mode", "storage", "--region", "4M", "--depth", "16"],
)
# With inline progress only the threads themselves run the engines, also while one waits for another.
INLINE = (MODES[2], MODES[4], MODES[7])
ENGINES = ["--engines", "2"]
CONNECTIONS = 32  # that a server serves
LOOKS = 5  # after "clear stats"
CLOSE_WAIT = "08"  # in /proc/net/tcp


def threads(count, qps=3):
    return [*ENGINES, "--threads", str(count), "--qps", str(qps)]


class TestroceThreadsTest(TestroceTest):
    """Tests of two and three threads on two engines."""

    name = "testroce-threads"

    def run_all(self):
        for options in MODES:
            self._check("a pair: " + " ".join(options), self._measure, [*threads(2), "--pair", *options])
            if self._report.complete:
                self._check("alone: " + " ".join(options), self._measure, [*threads(2), *ALONE_PORT, *options])
        for options in INLINE:
            inline = ["--progress", "inline", *options]
            self._check("a pair: " + " ".join(inline), self._measure, [*threads(3), "--pair", *inline])
            self._check("alone: " + " ".join(inline), self._measure, [*threads(3), *ALONE_PORT, *inline])
        self._check("attached", self._attached)
        self._check("a server", self._served)
        self._check("a server ends once its clients have gone", self._once)
        self._check("a server is killed", self._server_killed)
        self._check("a client is killed", self._client_killed)
        self._check("a server is full", self._full)
        self._check("a server ends while a client's message is incomplete", self._half_a_message)
        self._check("a server is restarted", self._restarted)
        self._check("at the prompt", self._at_prompt)
        self._check("stages at the prompt", self._stages_at_prompt)
        self._check("lcores", self._lcores)
        self._check("wrong options", self._wrong_threads)
        self._check("--sweep", self._sweep_threads)

    def _run(self, options, role="client"):
        return LocalHost(f"{self.name}-{role}", self._work_dir, self._space.prefix).start([TESTROCE, *options])

    def _end(self, process, wanted=0):
        """Wait for the end of a testroce. Return its story."""
        status = process.wait(SECONDS)
        story = process.story("testroce")
        process.kill()
        if status != wanted:
            raise CheckFailed("testroce hangs" if status is None else f"exit {status}", story)
        return story

    def _measure(self, options):
        """Run a test by number of messages, and check that all threads together have sent so many."""
        path = os.path.join(self._work_dir, "result.json")
        story = self._end(self._run([*options, "--verify", "--messages", str(MESSAGES), "--json", path]))
        with open(path, encoding="utf-8") as file:
            result = json.load(file)
        if result["wrong"] or result["messages"] != MESSAGES or \
                result["threads"] != int(options[options.index("--threads") + 1]):
            raise CheckFailed("messages are wrong or missing", [str(result), *story])

    def _serve(self, port_options, *options):
        """Start a server, and wait until it listens."""
        server = self._run([*port_options, "--listen", str(PORT), *options], "server")
        if not wait_until(lambda: server.listens(PORT) or server.poll() is not None, SECONDS) or \
                server.poll() is not None:
            story = server.story("server")
            server.kill()
            raise CheckFailed("the server does not listen", story)
        return server

    def _client(self, port_options, *options):
        return [*port_options, "--connect", f"127.0.0.1:{PORT}", *options]

    def _attached(self):
        """Both sides in one attached program, then in two of them."""
        owner = Uroced(self._space, self._work_dir, None, *ALONE_PORT)
        owner.run()
        attached = ["--socket", owner.socket]
        try:
            for options in (MODES[0], MODES[2]):
                self._measure([*threads(2), *attached, *options])
            server = self._serve(attached, *ENGINES, "--threads", "2")
            try:
                for options in (MODES[0], MODES[2], MODES[7]):
                    self._measure(self._client(attached, *threads(2), *options))
            finally:
                server.kill()
        finally:
            owner.process.kill()

    def _served(self):
        """One server serves clients with other numbers of threads, one after the other, and ends at SIGTERM."""
        server = self._serve(self._port("server"), *ENGINES, "--threads", "2")
        try:
            for count in (1, 3, 2):
                for options in (MODES[0], MODES[2]) if self._report.complete else (MODES[2],):
                    self._measure(self._client(self._port("client"), *threads(count), *options))
            server.terminate()
        except CheckFailed as failure:
            raise CheckFailed(str(failure), [*failure.details, *server.story("server")]) from None
        finally:
            status = server.wait(SECONDS)
            story = server.story("server")
            server.kill()
        if status != 0:
            raise CheckFailed(f"the server at SIGTERM: {status}", story)

    def _once(self):
        server = self._serve(self._port("server"), *ENGINES, "--threads", "3", "--once")
        try:
            self._measure(self._client(self._port("client"), *threads(3), *MODES[2]))
        except CheckFailed:
            server.kill()
            raise
        self._end(server)

    def _start_endless(self):
        """Start a test without an end, and wait until it is under way."""
        client = self._run(self._client(self._port("client"), *threads(3), "--mode", "send", "--seconds", "0",
                                        "--stats-period", "0.1"))
        if not wait_until(lambda: re.search(r"[1-9]\d* messages", client.output()), SECONDS):
            story = client.story("client")
            client.kill()
            raise CheckFailed("the test does not begin", story)
        return client

    def _server_killed(self):
        """All threads of the client end, with an error."""
        server = self._serve(self._port("server"), *ENGINES, "--threads", "2")
        try:
            client = self._start_endless()
        finally:
            server.kill()
        story = self._end(client, 1)
        if not any("testroce: " in line for line in story[1:]):
            raise CheckFailed("the client does not say what failed", story)

    def _client_killed(self):
        """The server goes on, and serves the next client."""
        server = self._serve(self._port("server"), *ENGINES, "--threads", "2")
        try:
            self._start_endless().kill()
            self._measure(self._client(self._port("client"), *threads(2), *MODES[2]))
        except CheckFailed as failure:
            raise CheckFailed(str(failure), [*failure.details, *server.story("server")]) from None
        finally:
            server.kill()

    def _at_prompt(self):
        """The threads have an engine each in every test, whatever number of threads the tests before had."""
        counts = (2, 3, 1, 2, 2) if self._report.complete else (3, 1, 2)
        prompt = self._prompt_alone()
        try:
            prompt.say("set qps 4")
            shows = sum(self._watch(prompt, count) for count in counts)
        finally:
            prompt.say("quit")
            status = prompt.end()
        results = prompt.output().count(" messages in ")
        if status != 0 or results != shows + len(counts):
            raise CheckFailed(f"exit {status}, {results} results of {len(counts)} tests, shown {shows} times before",
                              prompt.output().splitlines()[-30:])

    def _prompt_alone(self):
        return Prompt([*self._space.prefix, TESTROCE, *ALONE_PORT, *ENGINES, "-i"],
                      os.path.join(self._work_dir, "prompt.log"))

    def _stages_at_prompt(self):
        """A refused test has failed, which the exit status says."""
        prompt = self._prompt_alone()
        try:
            for command in ("set qps 2", "set threads 2", "set stages on", "start"):
                prompt.say(command)
            prompt.expect("error: stages are those of one thread")
        finally:
            prompt.say("quit")
            status = prompt.end()
        if status != 1:
            raise CheckFailed(f"exit {status}", prompt.output().splitlines()[-30:])

    @staticmethod
    def _count(prompt):
        """Return how many messages "show stats" shows, and how many the four queue pairs have sent a moment later."""
        begin = len(prompt.output())

        def shown():
            return re.search(r" (\d+) messages in .*" + r"QP 0x\w+ +RTS +(\d+) messages\n" * 4, prompt.output()[begin:],
                             re.S)
        prompt.say("show stats")
        prompt.say("show qp")
        if not wait_until(shown, SECONDS):
            raise CheckFailed("the prompt does not show the messages", prompt.output().splitlines()[-30:])
        stats, *qps = map(int, shown().groups())
        return stats, sum(qps)

    def _clear(self, prompt):
        """Clear the messages of a running test. Then fewer are shown than before, and no more than were sent since. If
        the program is so late that more are shown, try again. Return the number of calls of "show stats"."""
        shows = 0

        def cleared():
            nonlocal shows
            before, total = self._count(prompt)
            prompt.say("clear stats")
            shows += 1
            # Each thread clears its own messages as soon as it has a CPU.
            for _ in range(LOOKS):
                after, total_after = self._count(prompt)
                shows += 1
                if after < before and after <= total_after - total:
                    return True
            return False
        if not wait_until(cleared, SECONDS, 0.1):
            raise CheckFailed("the messages are not cleared", prompt.output().splitlines()[-30:])
        return shows

    def _watch(self, prompt, count):
        """Run a test until each of its queue pairs has sent something. The number of a queue pair, modulo the number
        of engines, is that of its engine. Return the number of calls of "show stats"."""
        begin = len(prompt.output())
        prompt.say(f"set threads {count}")
        prompt.say("start")

        def shown_qps():
            prompt.say("show qp")
            return re.search(r"(QP 0x[0-9a-f]{6} RTS +[1-9]\d* messages\n){4}", prompt.output()[begin:])
        if not wait_until(shown_qps, SECONDS, 0.1):
            raise CheckFailed("not all queue pairs send", prompt.output().splitlines()[-30:])
        engines = [int(number, 16) % 2 for number in re.findall(r"QP 0x(\w+)", shown_qps().group())]
        shows = self._clear(prompt)
        results = prompt.output().count(" messages in ")
        prompt.say("stop")
        prompt.expect(" messages in ", results + 1)
        # The first queue pairs belong to the first thread: two of two threads, two of three, all of one.
        wanted = {1: {(0, 0, 0, 0), (1, 1, 1, 1)}, 2: {(0, 0, 1, 1), (1, 1, 0, 0)}, 3: {(0, 0, 1, 0), (1, 1, 0, 1)}}
        if tuple(engines) not in wanted[count]:
            raise CheckFailed(f"{count} threads: the queue pairs' engines are {engines}",
                              prompt.output().splitlines()[-30:])
        return shows

    def _lcores(self):
        """With EAL options each thread is pinned to an lcore's CPU."""
        cpus = sorted(os.sched_getaffinity(0))[:2]
        wanted = sorted(str(cpus[number % len(cpus)]) for number in range(3))
        process = self._run(["-l", ",".join(map(str, cpus)), "--no-huge", "-m", "256", "--no-pci", "--", *ALONE_PORT,
                             *threads(3), *MODES[2], "--seconds", "0"])

        def pinned():
            found = []
            for task in os.listdir(f"/proc/{process.pid}/task"):
                with contextlib.suppress(OSError), \
                        open(f"/proc/{process.pid}/task/{task}/status", encoding="ascii") as file:
                    fields = dict(line.split(":", 1) for line in file.read().splitlines())
                    if fields["Name"].strip() == "testroce":
                        found.append(fields["Cpus_allowed_list"].strip())
            return sorted(found)
        try:
            if not wait_until(lambda: process.poll() is not None or pinned() == wanted, SECONDS) or \
                    process.poll() is not None:
                raise CheckFailed(f"the threads are not at {wanted}", process.story("testroce"))
            process.terminate()
        except CheckFailed:
            process.kill()
            raise
        self._end(process)

    def _full(self):
        """A server refuses a connection too many with a reason, and serves again once there is room."""
        server = self._serve(self._port("server"), *ENGINES, "--threads", "2")
        client = self._client(self._port("client"), *threads(2), *MODES[2])
        others = []
        try:
            for _ in range(CONNECTIONS - 1):
                others.append(self._connect())
            story = self._end(self._run(client), 1)
            if f"the server has {CONNECTIONS} connections already" not in "\n".join(story):
                raise CheckFailed("the client does not say why", story)
            for other in others:
                other.close()
            if not wait_until(lambda: not tcp_tables_show(tcp_tables(server.pid), CLOSE_WAIT, PORT), SECONDS):
                raise CheckFailed("the server does not see that connections are closed", server.story("server"))
            self._measure(client)
        except CheckFailed as failure:
            raise CheckFailed(str(failure), [*failure.details, *server.story("server")]) from None
        finally:
            for other in others:
                other.close()
            server.kill()

    def _connect(self):
        """Connect to the server in the network namespace of the test."""
        with open("/proc/self/ns/net", encoding="ascii") as own, \
                open(f"/run/netns/{self._space.name}", encoding="ascii") as space:
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.setns(space.fileno(), 0) != 0:
                raise CheckFailed(os.strerror(ctypes.get_errno()))
            try:
                return socket.create_connection(("127.0.0.1", PORT), SECONDS)
            finally:
                libc.setns(own.fileno(), 0)

    def _half_a_message(self):
        """The first connection belongs to the first thread of the server, the second one to the second thread."""
        server = self._serve(self._port("server"), *ENGINES, "--threads", "2")
        try:
            with self._connect(), self._connect() as half:
                half.sendall(bytes(8))
                # Served by the first thread; the second one waits for the other half meanwhile.
                self._measure(self._client(self._port("client"), *threads(1), *MODES[2]))
                server.terminate()
                status = server.wait(SECONDS / 2)
            if status != 0:
                raise CheckFailed(f"the server at SIGTERM: {status}")
        except CheckFailed as failure:
            raise CheckFailed(str(failure), [*failure.details, *server.story("server")]) from None
        finally:
            server.kill()

    def _restarted(self):
        """A prompt connects again with all threads after the server has gone."""
        owner = Uroced(self._space, self._work_dir, None, *ALONE_PORT)
        owner.run()
        attached = ["--socket", owner.socket]
        server = self._serve(attached, *ENGINES, "--threads", "2")
        prompt = Prompt([*self._space.prefix, TESTROCE, *self._client(attached, *threads(2), *MODES[2]), "-i"],
                        os.path.join(self._work_dir, "prompt.log"))
        try:
            for command in (f"set messages {MESSAGES}", "start", "wait"):
                prompt.say(command)
            prompt.expect(f" {MESSAGES} messages in ")
            server.kill()
            for command in ("start", "wait"):
                prompt.say(command)
            prompt.expect("error: the server: ")
            server = self._serve(attached, *ENGINES, "--threads", "2")
            for command in ("start", "wait"):
                prompt.say(command)
            prompt.expect(f" {MESSAGES} messages in ", 2)
        finally:
            prompt.say("quit")
            prompt.end()
            server.kill()
            owner.process.kill()

    def _wrong_threads(self):
        for options, text in ((["--threads", "3", "--qps", "2"], "as many queue pairs"),
                              (["--threads", "2", "--qps", "2", "--messages", "1"], "as many queue pairs and messages"),
                              (["--threads", "33", "--qps", "33"], "1 to 32"),
                              (["--threads", "2", "--qps", "2", "--stages"], "stages are those of one thread")):
            done = ask([TESTROCE, *options], SECONDS)
            if done.returncode != 1 or text not in done.stderr or done.stderr.count("\n") != 1:
                raise CheckFailed("the options were not refused in one line", [str(options), done.stderr])

    def _sweep_threads(self):
        """A test with fewer queue pairs than threads has a thread for each queue pair."""
        folder = os.path.join(self._work_dir, "sweep")
        self._series(*threads(2, 2), *ALONE_PORT, "--sweep", folder)
        with open(os.path.join(folder, "results.json"), encoding="utf-8") as file:
            tests = [json.loads(line) for line in file]
        wrong = [test for test in tests if test["threads"] != min(2, test["qps"])]
        if wrong or not any(test["threads"] == 1 for test in tests):
            raise CheckFailed("tests have other numbers of threads", [str(test) for test in wrong])
