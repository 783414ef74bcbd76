"""Every warning names the line of the caller, however many frames of ours and of PyTorch lie in between."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

import ahop
from ahop import similarity
from ahop.learning.report import FitReport
from ahop.similarity import Corruption
from ahop.similarity.families import calibration as trust
from ahop.variants import Biased, Mixed

SOURCE = Path(ahop.__file__).parent
GENERATOR = torch.Generator().manual_seed(0)
PATTERNS = torch.rand(40, 8, generator=GENERATOR)
UNRELATED = torch.rand(40, 8, generator=GENERATOR)
SEEN = Mixed(0.4, 0.3, 0.1).sample(PATTERNS, 60)
SHIFTED = Biased(1.0).sample(PATTERNS, 300)


def cut_short(monkeypatch):
    report = FitReport("em", 1.0, 9, converged=False)
    monkeypatch.setattr(Corruption, "fit", torch.no_grad()(lambda *given, **options: report))
    return ahop.BayesianHopfield(PATTERNS)


def grown(monkeypatch):
    """Overlaps grow without bound when nothing separates them."""
    return ahop.UniversalHopfield(2 * torch.eye(2), similarity="dot", separation="identity")


def restless(monkeypatch):
    monkeypatch.setattr("ahop.nn.hopfield._MOST_STEPS", 3)
    return ahop.nn.Hopfield(update_steps_max=None, update_steps_eps=0.0, scaling=0.5)


def disagreeing(monkeypatch):
    """Queries that many dimensions of drift together, and halves of them that never agree on hidden causes."""
    monkeypatch.setattr(trust, "agreement", lambda one, *others: float(getattr(one, "rank", 0) == 0))
    return ahop.BayesianHopfield(torch.randn(30, 12, generator=torch.Generator().manual_seed(0)))


def drifted(memory):
    generator = torch.Generator().manual_seed(1)
    origins = torch.arange(120) % len(memory)
    way = torch.randn(2, 12, generator=generator)
    drift = 2 * torch.randn(120, 2, generator=generator) @ way
    return memory.patterns[origins] + drift + 0.1 * torch.randn(120, 12, generator=generator)


# Each question is one line, the one that its warning has to name.
CASES = {
    "a fixed similarity": (lambda _: similarity.Dot(), lambda part: part.fit(PATTERNS, PATTERNS)),
    "a memory of one": (lambda _: ahop.ModernHopfield(PATTERNS), lambda memory: memory.fit(PATTERNS)),
    "a memory that never rests": (grown, lambda memory: memory.retrieve(torch.ones(2), None, max_steps=7)),
    "a memory that is called": (grown, lambda memory: memory(torch.ones(2), None, max_steps=7)),
    "a layer that never rests": (restless, lambda layer: layer((torch.randn(4, 3), torch.randn(2, 3), PATTERNS[:4]))),
    "order weights": (lambda _: ahop.AdaptiveHopfield(PATTERNS), lambda memory: memory.fit(*SHIFTED, steps=1)),
    "a kernel": (lambda _: ahop.KernelHopfield(PATTERNS), lambda memory: memory.fit(steps=1)),
    "a likelihood": (cut_short, lambda memory: memory.fit(SEEN.queries)),
    "no map": (lambda _: ahop.BayesianHopfield(PATTERNS), lambda memory: memory.fit(torch.rand(20, 5))),
    "nothing found": (lambda _: ahop.BayesianHopfield(PATTERNS), lambda memory: memory.fit(UNRELATED)),
    "nothing found by g-hop": (lambda _: ahop.GaussianHopfield(PATTERNS), lambda memory: memory.fit(UNRELATED)),
    "hidden causes": (disagreeing, lambda memory: memory.fit(drifted(memory))),
}


@pytest.mark.parametrize("case", CASES)
def test_a_warning_names_the_line_of_the_caller(case, monkeypatch):
    prepare, ask = CASES[case]
    part = prepare(monkeypatch)
    with pytest.warns() as told:
        ask(part)
    line = ask.__code__.co_firstlineno
    assert {(one.filename, one.lineno) for one in told} == {(__file__, line)}, [str(one.message) for one in told]


def test_all_warn_in_this_way():
    files = [path for path in SOURCE.rglob("*.py") if path.name != "_warnings.py"]
    assert not [path for path in files if "warnings.warn" in path.read_text() or "stacklevel" in path.read_text()]


@pytest.mark.slow
def test_a_line_is_warned_of_once_by_default_as_python_does():
    program = "import ahop, torch\nfor _ in range(3): ahop.ModernHopfield(torch.eye(2)).fit(torch.eye(2))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stderr.count("fit changes nothing") == 1 and "<string>:2: UserWarning" in run.stderr
