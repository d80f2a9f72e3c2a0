"""`python -m idrl`."""

import sys

from idrl.cli import main

sys.exit(main())
