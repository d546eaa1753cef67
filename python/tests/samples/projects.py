"""The directories that the samples speak of, by the names they have there."""

from __future__ import annotations

from pathlib import Path
from typing import Mapping

from tests.samples.virtual_environment import write_virtual_environment

_PROJECT = {
    "README.md": "read me\n",
    "app.py": "print('app')\n",
    "heavy_task.py": "print(sum(range(10)))\n",
    "config.yaml": "debug: false\n",
    "app/main.py": "print('main')\n",
    "src/main.py": "print('source')\n",
    "docs/guide.md": "# Guide\n",
    # 1.2 KB and 850 bytes, as the security model lists them.
    "metadata/schema.json": "{}".ljust(1200),
    "metadata/config.yaml": "a: 1".ljust(850),
    "configs/api.yaml": "key: 1\n",
    "configs/db.yaml": "password: 1\n",
    "logs/.keep": "",
    "output/.keep": "",
    "tmp/.keep": "",
    ".env": "KEY=1\n",
    "deploy/server.pem": "private\n",
    "secrets/private.key": "private\n",
    "secrets/public.key": "public\n",
    "secrets/token": "private\n",
    ".git/config": "[core]\n",
}

_REPO = {
    "one.py": "# TODO: the first\n",
    "two.py": "# TODO: the second\n",
    "credentials.py": "# TODO: not for everyone\n",
    "src/main.py": "print('source')\n",
    "secrets/.env": "KEY=1\n",
}

_PYTHON_APP = {
    # All of it is there already: sandboxes have no network.
    "requirements.txt": "pytest\npluggy\n",
    "tests/test_app.py": "\n".join(
        [
            "import os",
            "import sys",
            "",
            "def test_state_of_the_session():",
            "    assert os.environ['DEBUG'] == '1'",
            "    assert os.environ['VIRTUAL_ENV'] == sys.prefix == '/workspace/venv'",
            "    assert os.getcwd() == '/workspace'",
            "",
        ]
    ),
}

_APP = {
    "package.json": '{"name": "app", "scripts": {"build": "mkdir -p build dist && ls -A > dist/list.txt"}}\n',
    "node_modules/left/index.js": "",
    ".env": "KEY=1\n",
}

_PROJECTS: Mapping[str, Mapping[str, str]] = {
    "./project": _PROJECT,
    "./my-project": {"README.md": "read me\n", "src/main.py": "print('source')\n"},
    "./repo": _REPO,
    "./python-app": _PYTHON_APP,
    "./app": _APP,
}


def write_project(directory: Path, name: str, more: Mapping[str, str]) -> None:
    """Writes the project of that name, and more files."""
    for path, content in {**_PROJECTS[name], **more}.items():
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, "utf-8")
    if name == "./python-app":
        write_virtual_environment(directory / "venv")
