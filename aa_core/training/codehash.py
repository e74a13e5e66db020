"""A hash of the code that determines a result, such as a run's weights; comments and docstrings do not change it."""

from __future__ import annotations

import ast
import functools
import hashlib
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
START = "aa_core.training.optimisation"


@functools.cache
def training_code_hash(package: Path = PACKAGE) -> str:
    """Hash, 64 hexadecimal digits, of every module that the training step is made of.

    Args:
        package: folder of `aa_core`'s sources.
    """
    return code_hash((START,), package)


def code_hash(starts: tuple[str, ...], package: Path = PACKAGE) -> str:
    """Hash, 64 hexadecimal digits, of some modules and all that they import of their package.

    Args:
        starts: full names of modules, in any order.
        package: folder of the package's sources.
    """
    modules = {name: tree for start in starts for name, tree in imported_modules(package, start).items()}
    digest = hashlib.sha256()
    for name, tree in sorted(modules.items()):
        digest.update(f"{name} {_canonical(tree)}\n".encode())
    return digest.hexdigest()


def imported_modules(package: Path, start: str) -> dict[str, ast.Module]:
    """Module `start` and every module of its package that it imports, directly or through others, parsed.

    Imports count wherever they stand (in a function, under `TYPE_CHECKING`), and importing `a.b.c` imports the
    packages `a` and `a.b`.

    Args:
        package: folder of the package's sources.
        start: full name of a module in it.
    """
    found: dict[str, ast.Module] = {}
    waiting = {start}
    while waiting:
        name = waiting.pop()
        path = _source(package, name)
        if name in found or path is None:
            continue
        found[name] = ast.parse(path.read_bytes())
        waiting.update(_parents(name))
        for node in ast.walk(found[name]):
            waiting.update(_imported_names(node, name, is_package=path.name == "__init__.py"))
    return found


def _source(package: Path, name: str) -> Path | None:
    """File of a module, or None where the name is not a module of the package."""
    root, *rest = name.split(".")
    if root != package.name:
        return None
    path = package.joinpath(*rest)
    candidates = (path / "__init__.py", path.with_name(f"{path.name}.py"))
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def _parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts))]


def _imported_names(node: ast.AST, importer: str, *, is_package: bool) -> list[str]:
    """Names that may be modules: `from a import b` imports `a`, and `a.b` where that is one."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = node.module or ""
    if node.level:
        parts = importer.split(".")
        parts = parts[: len(parts) - node.level + is_package]
        base = ".".join([*parts, base] if base else parts)
    return [base, *(f"{base}.{alias.name}" for alias in node.names)]


def _canonical(node: object) -> str:
    """A syntax tree as text, without the strings that stand alone as statements (docstrings, of attributes too).

    `ast.unparse` and `ast.dump` would do, but write the same tree differently in different versions of Python.
    """
    if isinstance(node, list):
        return f"[{' '.join(_canonical(item) for item in node if not _is_docstring(item))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = ((name, value) for name, value in ast.iter_fields(node) if value is not None and value != [])
    return f"{type(node).__name__}({' '.join(f'{name}={_canonical(value)}' for name, value in fields)})"


def _is_docstring(node: object) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
