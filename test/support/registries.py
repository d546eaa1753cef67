"""registries.py DIRECTORY: writes what registries serve, DIRECTORY/HOST/PATH, for the package "greeting" of each; git's repository is DIRECTORY/greeting.git."""

import base64
import hashlib
import io
import json
import pathlib
import subprocess
import sys
import tarfile
import zipfile

top = pathlib.Path(sys.argv[1])


def put(path, content):
    file = top / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)


def tar(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return out.getvalue()


def zipped(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return out.getvalue()


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def npm():
    package = {"name": "greeting", "version": "1.0.0", "main": "index.js"}
    archive = tar({"package/package.json": json.dumps(package), "package/index.js": 'module.exports = "hello from npm";\n'})
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(archive).digest()).decode()
    dist = {"tarball": "https://registry.npmjs.org/greeting/-/greeting-1.0.0.tgz", "integrity": integrity}
    versions = {"1.0.0": {**package, "dist": dist}}
    put("registry.npmjs.org/greeting/index.html", json.dumps({"name": "greeting", "dist-tags": {"latest": "1.0.0"}, "versions": versions}))
    put("registry.npmjs.org/greeting/-/greeting-1.0.0.tgz", archive)


def pypi():
    info = "greeting-1.0.0.dist-info"
    files = {
        "greeting.py": 'text = "hello from PyPI"\n',
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    wheel, name = zipped(files), "greeting-1.0.0-py3-none-any.whl"
    put(f"files.pythonhosted.org/packages/{name}", wheel)
    link = f"https://files.pythonhosted.org/packages/{name}#sha256={sha256(wheel)}"
    put("pypi.org/simple/greeting/index.html", f'<!DOCTYPE html><html><body><a href="{link}">{name}</a></body></html>')


def crates():
    manifest = '[package]\nname = "greeting"\nversion = "0.1.0"\nedition = "2021"\n'
    crate = tar({"greeting-0.1.0/Cargo.toml": manifest, "greeting-0.1.0/src/lib.rs": "// hello from crates.io\n"})
    put("index.crates.io/config.json", json.dumps({"dl": "https://static.crates.io/crates", "api": "https://crates.io"}))
    line = {"name": "greeting", "vers": "0.1.0", "deps": [], "cksum": sha256(crate), "features": {}, "yanked": False}
    put("index.crates.io/gr/ee/greeting", json.dumps(line) + "\n")
    put("static.crates.io/crates/greeting/0.1.0/download", crate)


def go():
    module, version = "greeting.test/greeting", "v0.1.0"
    manifest = f"module {module}\n\ngo 1.19\n"
    files = {"go.mod": manifest, "greeting.go": "package greeting // hello from Go\n"}
    for host in ("proxy.golang.org", "modules.test"):
        place = f"{host}/{module}/@v"
        put(f"{place}/list", version + "\n")
        put(f"{place}/{version}.info", json.dumps({"Version": version, "Time": "2020-01-01T00:00:00Z"}))
        put(f"{place}/{version}.mod", manifest)
        put(f"{place}/{version}.zip", zipped({f"{module}@{version}/{name}": text for name, text in files.items()}))


def debian():
    package = b"hello from Debian\n"
    pool = "pool/main/g/greeting/greeting_1.0_all.deb"
    put(f"deb.debian.org/debian/{pool}", package)
    fields = {"Package": "greeting", "Version": "1.0", "Architecture": "all", "Maintainer": "A <a@b.test>", "Description": "x"}
    fields |= {"Filename": pool, "Size": len(package), "SHA256": sha256(package)}
    index = "".join(f"{name}: {value}\n" for name, value in fields.items()) + "\n"
    put("deb.debian.org/debian/dists/stable/main/binary-amd64/Packages", index)
    put("deb.debian.org/debian/dists/stable/main/binary-arm64/Packages", index)
    sums = "".join(f" {sha256(index.encode())} {len(index)} main/binary-{each}/Packages\n" for each in ("amd64", "arm64"))
    release = "Origin: Debian\nSuite: stable\nCodename: stable\nArchitectures: all amd64 arm64\nComponents: main\n"
    put("deb.debian.org/debian/dists/stable/Release", f"{release}Date: Wed, 01 Jan 2020 00:00:00 UTC\nSHA256:\n{sums}")


def git():
    repository, commit = str(top / "greeting.git"), top / "commit"
    def run(*args):
        subprocess.run(["git", *args], check=True, capture_output=True)
    run("init", "--bare", "-b", "main", repository)
    run("-C", repository, "config", "http.receivepack", "true")
    run("init", "-b", "main", str(commit))
    (commit / "README").write_text("hello from git\n")
    run("-C", str(commit), "add", "README")
    run("-C", str(commit), "-c", "user.name=a", "-c", "user.email=a@b.test", "commit", "-m", "One")
    run("-C", str(commit), "push", repository, "main")


for registry in (npm, pypi, crates, go, debian, git):
    registry()
