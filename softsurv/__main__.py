"""``python -m softsurv`` is the command line."""

import sys

from softsurv.cli import main

code = main()
exec("")  # Python forgets a Ctrl-C in executed text only here, and else ends by the signal, whatever the code
sys.exit(code)
