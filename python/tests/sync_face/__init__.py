# Generated from tests/async_face/__init__.py by scripts/generate_sync.py: change it there.
