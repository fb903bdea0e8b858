"""The whole comparison on small inputs, in a sandbox without a network."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from bench.peers import environments, sandbox
from bench.peers.page import all_rows

ROOT = Path(__file__).parents[3]


def test_sandbox_rejects_other_interfaces(monkeypatch: pytest.MonkeyPatch) -> None:
    """With another interface than loopback, nothing is run."""
    monkeypatch.setattr(socket, "if_nameindex", lambda: [(1, "lo"), (2, "eth0")])
    with pytest.raises(RuntimeError, match="found lo, eth0"):
        sandbox.set_up_network()


@pytest.mark.long
def test_sandbox_has_only_loopback(tmp_path: Path) -> None:
    """The archive's host name resolves to loopback, and other hosts are unreachable."""
    if not sandbox.is_available():
        pytest.skip("long: namespaces cannot be had here")
    seen = sandbox.run_isolated("bench.peers.sandbox", [], tmp_path)
    assert seen == {"interfaces": ["lo"], "archive": "127.0.0.1", "outside": "Network is unreachable"}


@pytest.mark.long
def test_comparison_runs_all_tools(tmp_path: Path) -> None:
    """All tools run, unlost recovers everything correctly, and each row has figures of both tools."""
    if absent := environments.missing_peers():
        pytest.skip(f"long: {', '.join(absent)} not installed; `make bench-peers` installs them")
    if not sandbox.is_available():
        pytest.skip("long: namespaces cannot be had here")
    command = [sys.executable, "-m", "bench.peers", "--tiny", "--to", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, timeout=600)
    # Exit code 1 means that a peer is ahead without a stated reason, which start-up may cause in a tiny run.
    assert done.returncode in (0, 1), done.stderr.decode()
    results = json.loads((tmp_path / "peers.json").read_text())
    tools = {tool["tool"]: tool for tool in results["recovering"]}
    assert len(tools) == 4
    ours = tools["unlost"]
    assert (ours["right"], ours["wrong"], ours["missing"]) == (ours["resources"], {}, 0)
    assert (ours["links_broken"], ours["refused"]) == (0, 0)
    for tool in tools.values():
        assert tool["right"] + sum(tool["wrong"].values()) + tool["missing"] == tool["resources"]
        assert 0 < tool["right"] <= ours["right"]
        assert tool["requests"] > 0
    rows = all_rows(results)
    assert {row.peer.partition(",")[0] for row in rows} == set(environments.PEERS)
    listed = next(row for row in rows if row.unit == "captures listed")
    assert listed.ours == listed.theirs == results["size"]["captures"]
    assert "| recovering a site |" in (tmp_path / "peers.md").read_text()
