"""``python -m compaction_lab`` is the command line."""

import sys

from compaction_lab.cli import main

if __name__ == "__main__":
    sys.exit(main())
