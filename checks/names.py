"""The public names are exactly the sorted `worldline.__all__`: each can be imported and is documented."""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType

from checks import SOURCE, Verdict


def check() -> Verdict:
    """Import the package and look at each name of its `__all__`."""
    if not (SOURCE / "__init__.py").exists():
        return Verdict("no src/worldline/__init__.py yet")
    package = importlib.import_module("worldline")
    return Verdict(f"{len(getattr(package, '__all__', ()))} public names", problems_of(package))


def problems_of(package: ModuleType) -> list[str]:
    """What is wrong with the public names of `package`, a line each."""
    names = list(getattr(package, "__all__", ()))
    problems = [] if names else [f"{package.__name__}.__all__ is missing or empty"]
    if names != sorted(names):
        problems.append(f"{package.__name__}.__all__ is not sorted: {' '.join(sorted(names))}")
    if missing := sorted(set(names) - set(dir(package))):
        problems.append(f"dir({package.__name__}) does not list: {' '.join(missing)}")
    for name in names:
        try:
            value = getattr(package, name)
        except (AttributeError, ImportError) as error:
            problems.append(f"{package.__name__}.{name} cannot be imported: {error}")
            continue
        own = inspect.isroutine(value) or inspect.isclass(value) or inspect.ismodule(value)
        if own and not inspect.getdoc(value):
            problems.append(f"{package.__name__}.{name} has no docstring")
    return problems
