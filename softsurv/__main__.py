"""``python -m softsurv`` is the command line."""

import sys

from softsurv.cli import main

sys.exit(main())
