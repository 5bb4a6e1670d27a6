#!/usr/bin/env python3
"""summary.py FOLDER: adds up the JUnit files of FOLDER and closes with "N passed, N failed".

Fails when a test failed and when none ran.
"""

import pathlib
import sys
import xml.etree.ElementTree


def count(file):
    """(passed, failed, skipped) of one file, as written by ctest, pytest or GoogleTest."""
    passed = failed = skipped = 0
    for case in xml.etree.ElementTree.parse(file).iter("testcase"):
        # ctest writes status="run|fail|notrun|disabled", GoogleTest "run|notrun" and result=.
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            skipped += 1
        elif case.get("status") == "fail":
            failed += 1
        else:
            passed += 1
    return passed, failed, skipped


def main():
    total = [0, 0, 0]
    for file in sorted(pathlib.Path(sys.argv[1]).glob("*.xml")):
        counts = count(file)
        total = [a + b for a, b in zip(total, counts)]
        print("summary: {:36} {} passed, {} failed, {} skipped".format(file.stem, *counts))
    passed, failed, skipped = total
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
