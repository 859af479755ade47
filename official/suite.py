"""The official suite: a run of some of its scenarios, and what to think of the checks that it wrote down."""

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from install import node
from processes import Failure

SCHEMA = "wire-schema-valid"  # comes on top of what a scenario is about


class Suite:
    """An installed version of the suite."""

    def __init__(self, processes, folder, package):
        home = folder / "node_modules" / package
        self.processes = processes
        self.version = json.loads((home / "package.json").read_text())["version"]
        self.command = [node(folder), str(home / "dist/index.js")]

    def run(self, *arguments):
        return self.processes.run([*self.command, *arguments])

    def list(self, leg, *selection):
        """The scenarios that decide, and those that are only reported."""
        code, out, err = self.run("list", f"--{leg}", *selection)
        if code != 0:
            raise Failure(f"the suite's list ended with {code}\n{err}")
        section = re.search(rf"^{leg.title()}(?: server)? scenarios.*\n((?:  - .*\n)*)", out, re.M)
        return re.findall(r"^  - (\S+)", section[1], re.M), re.findall(rf"^    - (\S+) \[{leg}\]", out, re.M)


@dataclass
class Group:
    """Scenarios of one version of the suite that are run together."""

    title: str
    suite: Suite
    leg: str  # the suite's word for who is tested: server, client or authorization
    counts: tuple  # of the scenarios that decide and of those that are only reported, so that none goes missing
    selection: list  # the options for all of them
    single: list  # the options for one, without --scenario
    target: list  # the options that say who is tested
    results: Path
    skippable: dict  # the reasons of the checks that may be skipped, by scenario and check
    names: list  # only scenarios whose name contains one of these; all if there are none
    tally: Counter = field(default_factory=Counter)
    skipped: set = field(default_factory=set)

    def meet(self):
        listed = self.suite.list(self.leg, *(self.selection if "--requirements" in self.selection else []))
        failures = []
        if (counts := tuple(map(len, listed))) != self.counts:
            failures.append(f"the suite lists {counts} scenarios instead of {self.counts}")
        scenarios = [name for names in listed for name in names if self.wanted(name)]
        runs = {name: ["--scenario", name, *self.single] for name in scenarios} if self.names else {"": self.selection}
        ends, said = [], {}
        for name, options in runs.items():
            command = [self.leg, *self.target, *options, "--output-dir", str(self.results)]
            try:
                code, out, err = self.suite.run(*command)
                ends += [f"{' '.join(options)}: it ended with {code}"] if code else []
                said[name] = out + err
            except Failure as failure:
                failures.append(f"{' '.join(options)}: {failure}")
        reports = self.reports()
        for scenario in scenarios:
            output = said.get(scenario if self.names else "", "")
            problems = self.judge(scenario, reports.pop(scenario, None), output)
            failures += [f"{scenario}: {problem}" for problem in problems]
        failures += [f"{scenario}: it is not in the list" for scenario in reports]
        # A failed check ends the suite with 1, which says nothing new; without one it does.
        failures += [] if self.tally["failed"] else ends
        return f"{self.tally['scenarios']} scenarios, {self.tally['passed']} checks passed", failures

    def wanted(self, name):
        return not self.names or any(word.lower() in name.lower() for word in self.names)

    def reports(self):
        """The checks of each scenario, from the folders that the suite names after it and the time."""
        prefix = {"server": "server-", "authorization": "authorization-server-"}.get(self.leg, "")
        name = re.compile(prefix + r"(.+)-\d{4}-\d\d-\d\dT[\d-]+Z")
        found = {}
        for path in self.results.rglob("checks.json"):
            found[name.fullmatch(str(path.parent.relative_to(self.results)))[1]] = json.loads(path.read_text())
        return found

    def judge(self, scenario, checks, output):
        """Counts the checks of a scenario, and yields what is wrong with it."""
        self.tally["scenarios"] += 1
        if checks is None:
            reason = re.search(rf"^(?:Failed to run scenario {re.escape(scenario)}|\w+ test error): (.*)", output, re.M)
            self.tally["failed"] += 1
            yield f"no checks.json; {reason[1] if reason else 'the suite does not say why'}"
            return
        ran = False
        for check in checks:
            status, reason = check["status"], check.get("errorMessage") or check.get("description", "")
            if status == "SUCCESS":
                self.tally["passed"] += 1
                ran = ran or check["id"] != SCHEMA
            elif status == "SKIPPED" and (scenario, check["id"]) in self.skippable:
                self.skipped.add((scenario, check["id"]))
                self.tally["skipped"] += 1
                ran = True
            elif status != "INFO":
                self.tally["warnings" if status == "WARNING" else "failed"] += 1
                yield f"{status} {check['id']}: {reason}"
                ran = True
        if not ran:
            self.tally["failed"] += 1
            yield f"no check ran: {'; '.join(check.get('errorMessage') or check['id'] for check in checks)}"
