"""What differs between the two faces of the SDK and cannot be rewritten word by word.

`async_face` and `sync_face` export the same names with the same meaning; `completion` and `turn` have both in one
module.
"""

from __future__ import annotations
