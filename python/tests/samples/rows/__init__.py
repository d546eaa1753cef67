"""One row for every Python block of the owner's documents, in their order."""

from __future__ import annotations

from typing import Sequence

from tests.samples.rows.architecture import ARCHITECTURE
from tests.samples.rows.concepts import CONCEPTS
from tests.samples.rows.first_design import FIRST_DESIGN
from tests.samples.rows.security import SECURITY
from tests.samples.sample import Row

TABLE: Sequence[Row] = [*ARCHITECTURE, *CONCEPTS, *FIRST_DESIGN, *SECURITY]
