"""Rules on imports that the layers' contract cannot state for a compiled module."""

import ast
import subprocess
import sys
from pathlib import Path

import lachesis

PACKAGE = Path(lachesis.__file__).parent
MAY_IMPORT_THE_ENGINE = {"__init__.py", "simulation", "placement", "predict"}


def imports_the_engine(source: str) -> bool:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import) and any("_engine" in name.name for name in node.names):
            return True
        if isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(name.name for name in node.names)]
            if any(name.endswith("_engine") for name in names):
                return True
    return False


def test_only_simulation_placement_and_prediction_speak_to_the_engine():
    rooms = {
        path.relative_to(PACKAGE).parts[0]
        for path in PACKAGE.rglob("*.py")
        if imports_the_engine(path.read_text())
    }
    assert rooms <= MAY_IMPORT_THE_ENGINE
    assert "simulation" in rooms, "the check itself must see an import"


def test_public_names_are_there():
    for name in lachesis.__all__:
        assert getattr(lachesis, name) is not None


def test_the_simulator_loads_nothing_that_it_does_not_need():
    code = (
        "import sys, lachesis.simulation, lachesis.placement;"
        "print(*sorted({'pandas', 'polars', 'sklearn', 'scipy', 'matplotlib'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []
