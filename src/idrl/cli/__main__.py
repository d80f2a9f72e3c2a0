"""`python -m idrl.cli`."""

import sys

from idrl.cli import main

sys.exit(main())
