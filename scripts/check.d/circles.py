"""Files of a crate that import each other in circles."""

import re
from pathlib import Path

import source

# Two files may know each other, such as a type and its parts; more are a circle.
CIRCLE_MAX = 2


def modules_of(crate):
    """The files of a crate's library or binary, by module path; `()` is its root."""
    modules = {}
    for path in sorted((crate / "src").glob("**/*.rs")):
        parts = list(path.relative_to(crate / "src").with_suffix("").parts)
        if parts[-1] == "mod":
            parts.pop()
        elif parts in (["lib"], ["main"]):
            parts = []
        if "tests" not in parts:
            modules[tuple(parts)] = path
    return modules


def paths_in(tree, prefix=()):
    """The paths that a `use` names, from its text with braces."""
    depth, item, items = 0, "", []
    for character in tree:
        depth += (character == "{") - (character == "}")
        if character == "," and not depth:
            items.append(item)
            item = ""
        else:
            item += character
    for item in [*items, item]:
        item = item.strip()
        head, brace, rest = item.partition("{")
        words = [word for word in head.split(" as ")[0].strip().split("::") if word]
        if brace:
            yield from paths_in(rest.rsplit("}", 1)[0], (*prefix, *words))
        elif words:
            yield (*prefix, *words)


def resolve(path, here, modules):
    """The module that a path inside the crate leads to, or None."""
    path = list(path)
    if path[0] == "crate":
        place, path = [], path[1:]
    elif path[0] in ("super", "self"):
        place = list(here)
        while path and path[0] in ("super", "self"):
            if path.pop(0) == "super":
                place = place[:-1]
    elif here + (path[0],) in modules:
        place = list(here)
    else:
        return None
    while path and (*place, path[0]) in modules:
        place.append(path.pop(0))
    return tuple(place), path


def imports_of(modules, trees):
    """For each module, the names that it imports, each with the module of the crate that has it; None for other crates."""
    imports = {module: {} for module in modules}
    for module, used in trees.items():
        for _, tree in used:
            for path in paths_in(tree):
                found = resolve(path, module, modules)
                if not found:
                    imports[module][path[-1]] = None
                elif found[1]:
                    imports[module][found[1][-1]] = found[0]
    return imports


def arrows_of(crate):
    modules, trees, codes = modules_of(crate), {}, {}
    for module, path in modules.items():
        text = re.split(r"#\[cfg\(test\)\]\n(?:pub(?:\([^)]*\))? )?mod ", path.read_text(encoding="utf-8"), maxsplit=1)[0]
        code = "\n".join(source.code_lines(text))
        trees[module] = [(bool(public), re.sub(r"\s+", " ", tree)) for public, tree in
                         re.findall(r"^ *(pub(?:\([^)]*\))? )?use ([^;]+);", code, re.M)]
        codes[module] = re.sub(r"^ *(?:pub(?:\([^)]*\))? )?use [^;]+;", "", code, flags=re.M)
    imports = imports_of(modules, trees)
    arrows = {module: set() for module in modules}

    def point(module, path):
        found = resolve(path, module, modules)
        # An import by way of a module that imports the name itself is one of where the name stands.
        passed = set()
        while found and found[1] and found[0] not in passed and found[1][0] in imports[found[0]]:
            passed.add(found[0])
            place = imports[found[0]][found[1][0]]
            found = place is not None and (place, found[1])
        if found and found[0] != module:
            arrows[module].add(found[0])

    for module in modules:
        for is_public, tree in trees[module]:
            for path in paths_in(tree):
                # A table of contents points at its chapters; that is no arrow, unless they point back at it for more than a name.
                if not is_public:
                    point(module, path)
        for path in re.findall(r"(?<![$\w])((?:crate|super)(?:::\w+)+)", codes[module]):
            point(module, path.split("::"))
    return modules, arrows


def circles(arrows):
    """Strongly connected components, by Tarjan's algorithm."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(arrows[node]):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            circle = set()
            while node not in circle:
                circle.add(stack.pop())
            found.append(circle)

    for node in sorted(arrows):
        if node not in index:
            visit(node)
    return found


def check(root, fault):
    for manifest in sorted((root / "crates").glob("**/Cargo.toml")):
        crate = manifest.parent
        modules, arrows = arrows_of(crate)
        for circle in circles(arrows):
            if len(circle) > CIRCLE_MAX:
                names = ", ".join(sorted("::".join(module) or "the root" for module in circle))
                fault(Path(crate), f"a circle of {len(circle)} files: {names}")
