#!/usr/bin/env python3
"""Packages of Python that checks compare raingauge with: each in a folder of its own in a cache, where it is installed once.

Run by itself, it installs all of them. RAINGAUGE_SERVICES_CACHE says where, ~/.cache/raingauge/services by default.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

VERSIONS = {"growthbook": "4.0.0", "schemathesis": "4.32.5", "standardwebhooks": "1.1.0"}


def package(name):
    """The folder of a package, for PYTHONPATH. It is filled when it is missing."""
    wanted = f"{name}=={VERSIONS[name]}"
    cache = os.environ.get("RAINGAUGE_SERVICES_CACHE") or Path.home() / ".cache/raingauge/services"
    folder = Path(cache) / f"python-{name}-{VERSIONS[name]}"
    if not (folder / "complete").exists():
        print(f"installing {wanted} into {folder}", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--root-user-action", "ignore", "--target", folder, wanted]
        if subprocess.run(command, check=False).returncode != 0:
            sys.exit(f"{wanted} cannot be installed: apt-get install python3-pip, and see whether pip reaches PyPI")
        (folder / "complete").touch()
    return folder


if __name__ == "__main__":
    for name in VERSIONS:
        package(name)
