"""What must hold of the files: no traces of one machine, small modules, documents that agree with each other."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import purax

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
LONGEST_FILE = 900

# Written in pieces, so that this file does not match itself.
FORBIDDEN = {
    "/wor" + "k/": "a path of one machine",
    "/tmp" + "/v": "a path of one machine",
    "/roo" + "t/": "a path of one machine",
    "/opt" + "/": "a path of one machine",
    "py" + "pi.org": "the address of a package registry",
    "python" + "hosted.org": "the address of a package registry",
    "index" + "-url": "the address of a package registry",
}


def repository_files() -> list[Path]:
    """The files under version control and the new ones that are not ignored."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listing.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listing.stdout.splitlines() if (ROOT / name).is_file()]


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_no_file_mentions_a_machine_or_a_registry():
    found = []
    for file in repository_files():
        try:
            text = file.read_text()
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            found += [
                f"{file.relative_to(ROOT)}:{number}: {what} ({word})"
                for word, what in FORBIDDEN.items()
                if word in line
            ]
    assert not found, "\n" + "\n".join(found)


# Tables of small programs, one after the other, are one idea however many there are.
TABLES = ("_programs.py", "_table.py", "_idioms.py")


def test_no_python_file_outgrows_its_idea():
    lengths = {
        file: len(file.read_text().splitlines()) for file in repository_files() if file.suffix == ".py"
    }
    too_long = [
        f"{file.relative_to(ROOT)}: {n} lines"
        for file, n in lengths.items()
        if n >= LONGEST_FILE and not file.name.endswith(TABLES)
    ]
    assert not too_long, f"keep files under {LONGEST_FILE} lines:\n" + "\n".join(too_long)


def test_every_module_says_what_it_is():
    silent = [
        str(file.relative_to(ROOT))
        for file in repository_files()
        if file.suffix == ".py"
        and file.read_text().strip()
        and not file.read_text().startswith(('"""', 'r"""', "#!"))
    ]
    assert not silent, f"modules open with a docstring: {silent}"


def test_version_is_the_same_everywhere():
    version = project()["version"]
    assert purax.__version__ == version
    assert re.search(rf"^## {re.escape(version)}\b", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_commands_of_the_documents_exist(document):
    code = re.findall(r"```(?:sh|bash|console|shell)\n(.*?)```|`([^`\n]+)`", document.read_text(), re.DOTALL)
    commands = re.findall(
        r"^\s*(?:\$ )?make ([a-z]+)", "\n".join(block or span for block, span in code), re.MULTILINE
    )
    unknown = set(commands) - make_targets()
    assert not unknown, f"{document.name} names make targets that do not exist: {unknown}"


@pytest.mark.parametrize("readme", ["README.md", "README.zh.md"])
def test_readme_opens_with_the_two_commands(readme):
    text = (ROOT / readme).read_text()
    first_block = re.search(r"```sh\n(.*?)```", text, re.DOTALL)
    assert first_block is not None
    commands = [line.split("#")[0].strip() for line in first_block[1].strip().splitlines()]
    assert commands == ["make demo", "make test"]
    assert text[: first_block.start()].count("\n") < 8, "the commands come first"


def test_the_two_readmes_show_the_same_code():
    blocks = [
        re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), re.DOTALL)
        for name in ("README.md", "README.zh.md")
    ]
    without_comments = [[re.sub(r"\s*#.*", "", block) for block in each] for each in blocks]
    assert without_comments[0] == without_comments[1]


def test_ci_runs_the_test_command_of_the_readme():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert re.search(r"^make test\b", script.read_text(), re.MULTILINE)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_links_between_documents_lead_somewhere(document):
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", document.read_text())
    local = [target for target in targets if not re.match(r"[a-z]+:", target)]
    missing = [target for target in local if not (document.parent / target).exists()]
    assert not missing, f"{document.name} links to {missing}"


def test_demo_extra_is_small_and_dev_brings_the_oracle():
    extras = project()["optional-dependencies"]
    names = {extra: {re.split(r"[\[<>=]", each)[0] for each in needed} for extra, needed in extras.items()}
    assert names["demo"] == {"matplotlib", "scikit-learn"}
    assert "jax" in names["dev"]
    dependencies = {re.split(r"[\[<>=]", each)[0] for each in project()["dependencies"]}
    assert "jax" not in dependencies


def test_kernels_are_built_with_the_oldest_headers():
    """A runtime takes kernels of older interfaces than its own, but of no newer one."""
    described = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (runtime,) = (line for line in described["project"]["dependencies"] if line.startswith("jaxlib"))
    oldest = re.fullmatch(r"jaxlib>=([\d.]+),<[\d.]+", runtime)
    assert oldest is not None
    assert any(line.startswith(f"jaxlib=={oldest[1]};") for line in described["build-system"]["requires"])
