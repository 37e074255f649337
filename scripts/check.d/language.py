"""How code reads: its words, the names of its types, and the page that it is set on."""

import re
import subprocess

import register
import source

COLUMNS_MAX = 100
# The share of blank lines in functions of more than LONG_LINES lines.
BLANK_MIN = 0.07
LONG_LINES = 14

# Data that is kept as it was recorded, and the list of words itself.
RAW = re.compile(r"/fixtures/|^Cargo\.lock$|^scripts/check\.d/register\.py$|\.(png|gz|ico|woff2|lock)$")

# Types are nouns of the field.
PARTICIPLES = set("Asked Given Heard Kept Known Left Made Means Parts Said Seen Shown Told Typed Wanted Which".split())

# Words of two names that belong together, and may be bound by one tuple.
PAIRS = [
    set(pair.split())
    for pair in (
        "a b", "x y", "from to", "from end", "old new", "one two", "one other", "first second", "first last", "short long", "before after",
        "start end", "begin end", "head tail", "whole part", "own key", "left right", "min max", "name value", "width height", "sender receiver", "writer reader",
    )
]


def tracked(root, *patterns):
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return [root / name for name in run.stdout.split("\n") if name and (root / name).is_file()]


def check_words(root, fault):
    """Pages are read by check-docs."""
    for path in tracked(root):
        name = str(path.relative_to(root))
        if path.suffix == ".md" or RAW.search(name):
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            for word, advice in register.found(line):
                fault(path, f"line {number}: “{word}”: write {advice}")


def belong_together(names):
    words = [set(name.removeprefix("mut ").split("_")) for name in names]
    if len(words) != 2:
        return bool(set.intersection(*words))
    alike = names[0].rsplit("_", 1)[-1] == names[1].rsplit("_", 1)[-1]
    return alike or any(pair <= words[0] | words[1] and not pair <= words[0] and not pair <= words[1] for pair in PAIRS)


def check_page(path, text, fault):
    lines = list(source.code_lines(text))
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS_MAX:
            fault(path, f"line {number} has {len(line)} columns of code, more than {COLUMNS_MAX}")
        if re.match(r"\s*(true|false) =>", line):
            fault(path, f"line {number}: `match` on a bool: write `if`")
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\s*//", line) and len(line) > COLUMNS_MAX and " " in line.strip(" /!"):
            fault(path, f"line {number}: the comment has {len(line)} columns, more than {COLUMNS_MAX}")
    code = "\n".join(lines)
    for bound in re.finditer(r"^ *let \(((?:mut )?\w+(?:, (?:mut )?\w+)+)\) =\s*\(([^;]*)\);", code, re.M):
        depth = commas = 0
        for character in bound[2]:
            depth += (character in "([{") - (character in ")]}")
            if depth < 0:
                break
            commas += character == "," and not depth
        if depth == 0 and commas and not belong_together(bound[1].split(", ")):
            number = code[: bound.start()].count("\n") + 1
            fault(path, f"line {number}: ({bound[1]}) binds things that do not belong together")
    return lines


def check_types(root, path, code, fault):
    crate = path.relative_to(root).parts[2] if path.is_relative_to(root / "crates/adapters") else None
    for name in re.findall(r"\b(?:struct|enum|trait|type) ([A-Z]\w*)", code):
        if name in PARTICIPLES:
            fault(path, f"the type {name}: types are nouns of the field")
        if crate and re.match(rf"{crate.capitalize()}(?![a-z])", name):
            fault(path, f"the type {name} repeats the name of its crate")


def check_code(root, fault):
    long = blank = 0
    for path in tracked(root, "*.rs"):
        text = path.read_text(encoding="utf-8")
        lines, page = check_page(path, text, fault), text.splitlines()
        check_types(root, path, "\n".join(lines), fault)
        for body in source.functions(lines):
            if len(body) > LONG_LINES:
                long += len(body)
                blank += sum(not page[number].strip() for number in body)
    if blank < BLANK_MIN * long:
        fault("crates", f"{blank / long:.1%} of the lines of long functions are blank; paragraphs need {BLANK_MIN:.0%}")
