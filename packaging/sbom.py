#!/usr/bin/env python3
"""Corrects a bill of materials by cargo-cyclonedx: `cargo tree ... | sbom.py FILE`.

Cargo's metadata, from which it is made, has the folder of the build in it, and what only the tests need where they need
more features of a crate. What stays is what `cargo tree --prefix none --format {p}` lists for that target.
"""

import json
import pathlib
import re
import sys


def main():
    path = pathlib.Path(sys.argv[1])
    text = path.read_text(encoding="utf-8")
    # path+file:///the/folder#pilotlight@0.1.0, path+file:///the/folder/crates/core#pilotlight-core@0.1.0
    bill = json.loads(re.sub(r'path\+file://[^"#]*#', "", text))
    own = bill["metadata"]["component"]
    # name v1.2.3, and after it what kind of crate it is, or that it was listed before
    used = {tuple(line.split()[:2]) for line in sys.stdin if line.strip()}
    used.remove((own["name"], "v" + own["version"]))
    bill["components"] = [it for it in bill["components"] if (it["name"], "v" + it["version"]) in used]
    missing = used - {(it["name"], "v" + it["version"]) for it in bill["components"]}
    assert not missing, f"{path.name} lacks {sorted(missing)}"
    refs = {own["bom-ref"]} | {it["bom-ref"] for it in bill["components"]}
    bill["dependencies"] = [it for it in bill["dependencies"] if it["ref"] in refs]
    for it in bill["dependencies"]:
        if "dependsOn" in it:
            it["dependsOn"] = [ref for ref in it["dependsOn"] if ref in refs]
    path.write_text(json.dumps(bill, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


main()
