"""`make audit`: known vulnerabilities of the packages that are installed, by pip-audit. It needs the network.

pip-audit passes where its service knows none of the packages, or cannot be reached through a mirror. Here that is a failure:
what could not be looked up is named.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

COMMAND = (sys.executable, "-m", "pip_audit", "--skip-editable", "--progress-spinner", "off", "--format", "json")


def verdict(packages: list[dict[str, Any]]) -> tuple[bool, list[str]]:
    """Whether all is well, and what to tell. A local version (torch 2.6.0+cpu) is not on PyPI, and is told only."""
    unknown = [one for one in packages if "skip_reason" in one and "editable" not in one["skip_reason"]]
    local = [one for one in unknown if "+" in one["skip_reason"]]
    missing = [one["name"] for one in unknown if one not in local]
    audited = [one for one in packages if "skip_reason" not in one]
    found = [
        f"{one['name']} {one['version']}: {flaw['id']}, mended in {', '.join(flaw['fix_versions']) or 'no version'}"
        for one in audited
        for flaw in one["vulns"]
    ]
    lines = [f"{len(audited)} packages audited, {len(found)} vulnerabilities known", *found]
    lines += [f"not audited, a local version: {one['name']}" for one in local]
    if missing:
        lines.append(
            f"NOT AUDITED, the service does not know them or cannot be reached: {len(missing)} packages, "
            f"{', '.join(missing[:5])}, ... Try again where the network is"
        )
    return bool(audited) and not found and not missing, lines


def main() -> int:
    """Ask pip-audit, and say what it said; 1 where anything is found, or anything could not be asked."""
    done = subprocess.run(COMMAND, capture_output=True, text=True, check=False)
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        why = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        print(f"NOT AUDITED: pip-audit could not ask its service: {why}")
        return 1
    well, lines = verdict(packages)
    print("\n".join(lines))
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
